"""Lines in closed form, and bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.stats.line import bounded_lines, fit_line

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
values = st.lists(st.floats(-50, 50), min_size=5, max_size=5).map(np.array)
weights = st.lists(st.floats(0.1, 10), min_size=5, max_size=5).map(np.array)


@given(values, weights)
def test_against_the_normal_equations(y: np.ndarray, weight: np.ndarray) -> None:
    root = np.sqrt(weight)
    for origin, columns in ((False, [X, np.ones(5)]), (True, [X])):
        expected, *_ = np.linalg.lstsq(np.stack(columns, 1) * root[:, None], y * root, rcond=None)
        found = fit_line(X, y, weight, origin=origin)
        assert found.slope == pytest.approx(expected[0], abs=1e-9)
        assert found.intercept == pytest.approx(0.0 if origin else expected[1], abs=1e-8)


@given(values, st.floats(0.1, 10), st.floats(0.1, 10))
def test_units_scale_through(y: np.ndarray, a: float, b: float) -> None:
    first, scaled = fit_line(X, y), fit_line(a * X, b * y)
    assert scaled.slope == pytest.approx(first.slope * b / a, abs=1e-7)
    assert scaled.intercept == pytest.approx(first.intercept * b, abs=1e-6)


def test_equal_values_have_slope_0_and_no_r2() -> None:
    found = fit_line(X, np.full(5, 7.0))
    assert (found.slope, found.r2) == (0.0, None)
    assert fit_line(X[:2], np.array([1.0, 2.0])).r2 is None


def cost(x: np.ndarray, y: np.ndarray, side: np.ndarray, slope: float, intercept: float) -> float:
    away = y - intercept - slope * x
    return float(np.where(side == 0, away**2, np.maximum(side * away, 0) ** 2).sum())


@settings(deadline=None)
@given(values, st.lists(st.sampled_from([0, 1, -1]), min_size=3, max_size=3))
def test_no_line_near_by_costs_less_with_bounds(y: np.ndarray, rest: list[int]) -> None:
    side = np.array([0, 0, *rest])
    slope, intercept = (float(part[0]) for part in bounded_lines(X, y[None], side))
    best = cost(X, y, side, slope, intercept)
    for ds, di in ((0.01, 0), (-0.01, 0), (0, 0.1), (0, -0.1), (0.01, -0.1), (-0.01, 0.1)):
        assert best <= cost(X, y, side, slope + ds, intercept + di) + 1e-6


def test_refusals() -> None:
    with pytest.raises(InputError, match="two different x"):
        fit_line(np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="weights above 0"):
        fit_line(X, X, np.zeros(5))
