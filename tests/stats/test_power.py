"""The exponent of a power law: exact where points lie on one, wider where they scatter."""

import numpy as np
import pytest

from lmreach.stats.power import power_law


def test_points_on_a_power_law_give_its_exponent() -> None:
    x = [1.0, 2.0, 4.0, 8.0]
    y = [3 * one**0.7 for one in x]
    found = power_law(x, y, [0.9 * one for one in y], [1.1 * one for one in y])
    assert found is not None
    assert found.exponent == pytest.approx(0.7)
    assert found.low < 0.7 < found.high
    assert found.points == 4


def test_its_interval_holds_the_truth_in_19_of_20_draws() -> None:
    rng, held = np.random.default_rng(0), 0
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    for _ in range(400):
        y = 3 * x**0.5 * np.exp(0.1 * rng.standard_normal(x.size))
        found = power_law(x, y, y * np.exp(-0.196), y * np.exp(0.196))
        assert found is not None
        held += found.low <= 0.5 <= found.high
    # Widened where points scatter, never narrowed: at least 95 %, within four standard errors.
    assert held / 400 >= 0.95 - 4 * (0.05 * 0.95 / 400) ** 0.5


def test_scatter_beyond_the_intervals_widens_it() -> None:
    x, y = [1.0, 2.0, 4.0], [1.0, 4.0, 4.0]
    close = power_law(x, y, [0.99 * one for one in y], [1.01 * one for one in y])
    assert close is not None
    assert close.high - close.low > 1


@pytest.mark.parametrize(("low", "high"), [([0.0, 1.0], [1.0, 3.0]), ([1.0, 1.0], [1.0, 3.0])])
def test_points_without_an_interval_are_left_out(low: list[float], high: list[float]) -> None:
    assert power_law([1.0, 2.0], [1.0, 2.0], low, high) is None
    assert power_law([2.0, 2.0], [1.0, 2.0], [0.5, 1.0], [2.0, 3.0]) is None
