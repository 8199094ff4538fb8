"""Where the next strings tell most."""

import math

import numpy as np
import pytest

from lmreach.stats.placement import Standing, gain, next_look, slope_width


def test_looks_are_few_and_fixed() -> None:
    looks = [0]
    while looks[-1] < 200:
        looks.append(next_look(looks[-1]))
    assert looks[1:] == [16, 24, 32, 48, 64, 96, 128, 192, 256]
    assert next_look(17) == 24


def test_errors_fall_with_the_root_of_strings() -> None:
    point = Standing(1, 20.0, 2.0, 10)
    assert point.width(30) == pytest.approx(point.width() / 2)
    assert point.width() == pytest.approx(2 * 1.96 * 0.1, rel=1e-3)


def test_the_slope_is_that_of_least_squares() -> None:
    points = [Standing(m, 5.0 * m, 0.5 * m, 10) for m in (1, 2, 4)]
    m = np.array([1.0, 2.0, 4.0])
    pull = (m - m.mean()) / ((m - m.mean()) ** 2).sum()
    error = math.sqrt(((pull * 0.5 * m) ** 2).sum())
    assert slope_width(points) == pytest.approx(2 * 1.96 * error / 5, rel=1e-3)
    assert slope_width(points[:1]) is None
    assert slope_width([Standing(1, 5.0, 1.0, 9), Standing(2, 4.0, 1.0, 9)]) is None


def test_only_what_is_too_wide_gains() -> None:
    points = [Standing(1, 20.0, 0.1, 10), Standing(2, 40.0, 8.0, 10)]
    assert gain(points, 0, 8, 0.1, own=True, slope=False) == 0.0
    assert gain(points, 1, 8, 0.1, own=True, slope=False) > 0.0
    assert gain(points, 1, 8, 0.1, own=False, slope=False) == 0.0
    # The outer points turn the line; more strings at either end help the slope, the wide one more.
    at = [gain(points, i, 8, 0.1, own=False, slope=True) for i in (0, 1)]
    assert 0 <= at[0] < at[1]
