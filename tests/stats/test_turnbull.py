"""Reaches known between two lengths: by hand, against surpyval and Kaplan-Meier, and optimality."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.stats.survival import shares
from lmreach.stats.turnbull import OPEN, brackets, fit_intervals

pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.booleans()), min_size=1, max_size=25)


def arrays(found: list[tuple[int, int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    low = np.array([at for at, _, _ in found])
    return low, np.array([OPEN if open_ else at + more for at, more, open_ in found])


def likelihood(found, mass, low, high) -> float:
    inside = (low[:, None] <= found.low) & (found.high <= high[:, None])
    return float(np.log(inside @ mass).sum())


def test_by_hand() -> None:
    # Two strings in [0, 4], one in [3, 9], one in [6, 9]: cells [3, 4] and [6, 9], both open to the third.
    found = fit_intervals(np.array([0, 0, 3, 6]), np.array([4, 4, 9, 9]))
    assert (found.low.tolist(), found.high.tolist()) == ([3, 6], [4, 9])
    # p1^2 (p1 + p2) p2 with p1 + p2 = 1 is largest at 2/3.
    assert found.mass == pytest.approx([2 / 3, 1 / 3], abs=1e-6)
    assert found.share(3) == pytest.approx((1.0, 1.0))
    assert found.share(4) == pytest.approx((1 / 3, 1.0), abs=1e-6)
    assert found.half_length() == (3, 5)
    assert "between 3 and 5 tokens" in found.words()


def test_against_surpyval() -> None:
    """Answers of surpyval 0.25, Turnbull with turnbull_estimator="Kaplan-Meier" (its default is no maximum).

    There an event lies in (left, right]; a string of reach R fails at token R + 1, so high is right - 1.
    """
    low = [4, 21, 11, 27, 0, 7, 0, 12, 20, 17, 16, 8, 13, 15, 0, 23, 10, 0, 6, 10, 0, 6, 12, 13]
    right = [23, 22, 41, 38, 20, 31, 30, 37, 22, 24, 34, 0, 42, 26, 31, 40, 31, 31, 25, 25, 13, 29, 0, 29]
    found = fit_intervals(np.array(low), np.array([end - 1 if end else OPEN for end in right]))
    expected = {
        12: 1.0,
        13: 0.847364,
        17: 0.847364,
        20: 0.733333,
        21: 0.733333,
        22: 0.2,
        24: 0.183163,
        29: 0.0,
    }
    for n, share in expected.items():
        assert found.share(n) == pytest.approx((share, share), abs=2e-6)


@settings(deadline=None, max_examples=30)
@given(pairs)
def test_no_other_curve_is_likelier(found: list[tuple[int, int, bool]]) -> None:
    low, high = arrays(found)
    curve = fit_intervals(low, high)
    assert curve.excess <= 1e-8
    assert curve.mass.sum() == pytest.approx(1.0)
    best = likelihood(curve, curve.mass, low, high)
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = rng.dirichlet(np.ones(curve.mass.size))
        assert likelihood(curve, other, low, high) <= best + 1e-6


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=25))
def test_with_exact_reaches_it_is_kaplan_meier(rows: list[tuple[int, bool]]) -> None:
    reach, censored = np.array([r for r, _ in rows]), np.array([c for _, c in rows])
    curve = fit_intervals(reach, np.where(censored, OPEN, reach))
    share = shares(np.ones((1, reach.size)), reach, censored, 10)[0]
    # Where Kaplan-Meier stops because nobody is left, mass beyond the last censored reach is open to both.
    last = int(reach.max())
    for n in range(1, last + 1):
        low, high = curve.share(n)
        assert low - 1e-5 <= share[n - 1] <= high + 1e-5


def test_outcomes_become_brackets() -> None:
    low, high = brackets([{4: True, 8: False}, {4: False, 8: True, 16: False}, {4: True}, {4: False}, {}])
    # In the second string the failure at 4 is the optimiser's: what emits 8 tokens emits 4.
    assert low.tolist() == [4, 8, 4, 0, 0]
    assert high.tolist() == [7, 15, OPEN, 3, OPEN]


def test_ends_without_a_bracket_are_said() -> None:
    every = fit_intervals(*brackets([{8: True}] * 5))
    assert every.half_length() == (8, None)
    assert "at least 8" in every.words()
    none = fit_intervals(*brackets([{8: False}] * 5))
    assert none.half_length() == (None, 8)
    assert "below 8" in none.words()


@settings(deadline=None, max_examples=30)
@given(pairs, st.randoms())
def test_order_does_not_matter_and_doubling_changes_nothing(found, random) -> None:
    low, high = arrays(found)
    order = list(range(len(found)))
    random.shuffle(order)
    first = fit_intervals(low, high)
    for other in (fit_intervals(low[order], high[order]), fit_intervals(np.tile(low, 2), np.tile(high, 2))):
        assert likelihood(first, other.mass, low, high) == pytest.approx(
            likelihood(first, first.mass, low, high), abs=1e-6
        )


def test_refusals() -> None:
    for low, high in (([], []), ([3], [2]), ([-1], [2]), ([1, 2], [3])):
        with pytest.raises(InputError, match=r"expected .*; got .*; "):
            fit_intervals(np.array(low, dtype=int), np.array(high, dtype=int))
    with pytest.raises(InputError, match="at least 1 token"):
        brackets([{0: True}])
