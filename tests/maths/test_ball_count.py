"""Floating-point vectors in a ball: against enumeration, and close to the truth where it is known."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.maths.ball_count import log_ball_count
from lmreach.maths.levels import levels
from lmreach.maths.precision import number_format


def enumerated(name: str, radius: float, width: int) -> int:
    """Count the vectors one by one."""
    values = levels(name).values
    values = values[np.abs(values) <= radius]
    return sum(sum(v * v for v in vector) <= radius**2 for vector in itertools.product(values, repeat=width))


@settings(deadline=None, max_examples=25)
@given(st.floats(0.01, 500.0), st.integers(1, 2))
def test_never_below_the_count_and_never_above_that_of_the_cube(radius: float, width: int) -> None:
    bound = log_ball_count("float8_e4m3", radius, width)
    assert bound >= math.log(enumerated("e4m3", radius, width)) - 1e-9
    side = min(radius, 448.0)
    assert bound <= width * math.log(int(number_format("float8_e4m3").count(-side, side))) + 1e-9


def convolved(radius: int, width: int) -> float:
    """Log of the exact count of e4m3 vectors whose values are multiples of 1/512, by adding squares."""
    values = levels("e4m3").values
    squares = np.unique(np.round((values[np.abs(values) <= radius / 512] * 512) ** 2), return_counts=True)
    ways = np.zeros(radius**2 + 1)
    ways[0] = 1.0
    for _ in range(width):
        new = np.zeros_like(ways)
        for square, count in zip(squares[0].astype(int), squares[1], strict=True):
            new[square:] += count * ways[: len(ways) - square]
        ways = new
    return math.log(ways.sum())


def test_close_to_the_exact_count_in_many_dimensions() -> None:
    exact = convolved(60, 24)
    bound = log_ball_count("float8_e4m3", 60 / 512, 24)
    assert exact <= bound <= exact + 0.08 * exact


@given(st.floats(0.001, 1e6), st.floats(1.0, 10.0))
def test_a_larger_ball_holds_no_less(radius: float, factor: float) -> None:
    small, large = (log_ball_count("float32", r, 64) for r in (radius, radius * factor))
    assert small <= large + 1e-6 * large
    assert large <= 64 * math.log(number_format("float32").finite_values)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_ball_around_everything_holds_every_value(dtype: str) -> None:
    kind = number_format(dtype)
    everything = 3 * math.log(kind.finite_values)
    assert log_ball_count(dtype, 2 * kind.largest, 3) == pytest.approx(everything, rel=1e-12)
