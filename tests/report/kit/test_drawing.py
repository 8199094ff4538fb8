"""Label places and ticks."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from lmreach.report.kit.drawing import COLOURS, SHAPES, count_ticks, log_ticks, look, spread

PLACES = st.lists(st.floats(min_value=0, max_value=300), min_size=1, max_size=8)


@given(PLACES)
def test_labels_keep_order_distance_and_bounds(wanted):
    places = spread(wanted, 30, 10, 290)
    by_wish = [places[i] for i in sorted(range(len(wanted)), key=lambda i: wanted[i])]
    assert all(later - earlier >= 30 - 1e-9 for earlier, later in pairwise(by_wish))
    assert all(10 - 1e-9 <= place <= 290 + 1e-9 for place in places)


@given(PLACES)
def test_labels_that_fit_do_not_move(wanted):
    ordered = sorted(wanted)
    assume(all(later - earlier >= 30 for earlier, later in pairwise(ordered)))
    assert spread(wanted, 30, 0, 300) == pytest.approx(wanted)


@pytest.mark.parametrize("wanted", [[5, 6, 7], [100, 104, 200], [0, 300, 299, 150], [40, 41, 70, 75, 260]])
def test_spread_is_the_least_squares_answer(wanted):
    # Slow reference: the same problem given to a general solver. It stops at about 1e-6.
    target = np.sort(np.array(wanted, dtype=float))
    gaps = {"type": "ineq", "fun": lambda x: np.diff(x) - 30}
    start = np.linspace(10, 290, len(wanted))
    best = minimize(
        lambda x: ((x - target) ** 2).sum(), start, bounds=[(10, 290)] * len(wanted), constraints=gaps
    )
    assert sorted(spread(wanted, 30, 10, 290)) == pytest.approx(best.x, abs=1e-3)


def test_too_many_labels_are_spaced_evenly():
    assert spread([5] * 5, 100, 0, 40) == pytest.approx([0, 10, 20, 30, 40])
    assert spread([], 10, 0, 1) == []


@given(st.floats(min_value=1e-3, max_value=1e3), st.floats(min_value=12, max_value=1e7))
def test_log_ticks_are_round_and_inside(low, factor):
    ticks = log_ticks(low, low * factor)
    assert ticks
    assert all(low * 0.99 <= tick <= low * factor * 1.01 for tick in ticks)
    assert all(math.log10(tick) % 1 == pytest.approx(0, abs=1e-9) or factor < 300 for tick in ticks)


@given(st.floats(min_value=1, max_value=1e9))
def test_count_ticks_are_whole_and_few(high):
    ticks = count_ticks(high)
    assert ticks[0] == 0
    assert 2 <= len(ticks) <= 8
    assert ticks[-1] <= high


def test_kinds_differ_without_colour():
    looks = [look(index) for index in range(len(COLOURS))]
    assert len({style.shape for style in looks}) == len({tuple(style.dash) for style in looks}) == len(SHAPES)
