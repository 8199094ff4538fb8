"""Survival shares and bands: a hand-worked textbook table, slow references, and scipy."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmreach.errors import InputError
from lmreach.stats.survival import (
    band,
    check_reaches,
    clopper_pearson,
    crossings,
    last_length,
    shares,
)

# Freireich et al. (1963), 21 patients under 6-MP: weeks to relapse, with + for those still in remission. The
# table of survival and Greenwood errors is worked by hand in most textbooks (Collett; Kleinbaum and Klein).
RELAPSES = [6, 6, 6, 7, 10, 13, 16, 22, 23]
REMISSIONS = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
TABLE = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
ERRORS = {6: 0.0764, 7: 0.0869, 10: 0.0963, 13: 0.1068, 16: 0.1141, 22: 0.1282, 23: 0.1346}


def textbook() -> tuple[np.ndarray, np.ndarray]:
    """The table as reaches: a relapse in week t is a failure at token t, so a reach of t - 1."""
    reach = np.array([t - 1 for t in RELAPSES] + REMISSIONS)
    return reach, np.array([False] * len(RELAPSES) + [True] * len(REMISSIONS))


def slow_shares(reach: np.ndarray, censored: np.ndarray, length: int) -> list[Fraction]:
    """Kaplan-Meier token by token, in exact fractions, by looking at every string."""
    share, found = Fraction(1), []
    for n in range(1, length + 1):
        tried = sum(1 for r, c in zip(reach, censored, strict=True) if r >= n or (r == n - 1 and not c))
        failed = sum(1 for r, c in zip(reach, censored, strict=True) if r == n - 1 and not c)
        share *= 1 - Fraction(failed, tried) if tried else 1
        found.append(share)
    return found


def alike(reach: np.ndarray) -> np.ndarray:
    return np.ones((1, reach.size))


rows = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=25)


def arrays(pairs: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([r for r, _ in pairs]), np.array([c for _, c in pairs])


def test_the_textbook_table() -> None:
    reach, censored = textbook()
    share = shares(alike(reach), reach, censored, 35)[0]
    reference = slow_shares(reach, censored, 35)
    for week, value in TABLE.items():
        assert share[week - 1] == pytest.approx(value, abs=5e-4)  # half of the table's last digit
        assert float(reference[week - 1]) == pytest.approx(value, abs=6e-4)


def test_the_band_uses_greenwoods_error() -> None:
    reach, censored = textbook()
    share = shares(alike(reach), reach, censored, 35)[0]
    low, high = band(reach, censored, share, 0.95)
    for week, error in ERRORS.items():
        at = share[week - 1]
        # Nothing is censored before week 6: the plain binomial of 21 patients.
        strings = 21.0 if week == 6 else at * (1 - at) / error**2
        expected = clopper_pearson(np.array(at * strings), np.array(strings), 0.95)
        assert low[week - 1] == pytest.approx(float(expected[0]), abs=2e-3)
        assert high[week - 1] == pytest.approx(float(expected[1]), abs=2e-3)


@settings(deadline=None)
@given(rows)
def test_shares_agree_with_the_slow_reference(pairs: list[tuple[int, bool]]) -> None:
    reach, censored = arrays(pairs)
    length = max(1, last_length(reach, censored))
    found = shares(alike(reach), reach, censored, length)[0]
    assert found == pytest.approx([float(share) for share in slow_shares(reach, censored, length)], abs=1e-12)


@settings(deadline=None)
@given(rows)
def test_shares_agree_with_scipy(pairs: list[tuple[int, bool]]) -> None:
    reach, censored = arrays(pairs)
    data = stats.CensoredData(uncensored=reach[~censored] + 1, right=reach[censored])
    length = max(1, last_length(reach, censored))
    expected = stats.ecdf(data).sf.evaluate(np.arange(1, length + 1))
    assert shares(alike(reach), reach, censored, length)[0] == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(rows, st.integers(0, 2**32 - 1))
def test_weights_stand_for_repeated_strings(pairs: list[tuple[int, bool]], seed: int) -> None:
    reach, censored = arrays(pairs)
    length = max(1, last_length(reach, censored))
    draws = np.random.default_rng(seed).integers(0, reach.size, (4, reach.size))
    weights = np.array([np.bincount(draw, minlength=reach.size) for draw in draws]).astype(float)
    found = shares(weights, reach, censored, length)
    for row, draw in zip(found, draws, strict=True):
        slow = slow_shares(reach[draw], censored[draw], length)
        assert row == pytest.approx([float(share) for share in slow], abs=1e-12)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 7, 32, 500])
def test_clopper_pearson_agrees_with_scipy(trials: int, confidence: float) -> None:
    successes = np.unique(np.linspace(0, trials, 12).astype(int))
    low, high = clopper_pearson(successes.astype(float), np.full(successes.size, float(trials)), confidence)
    for k, lower, upper in zip(successes.tolist(), low, high, strict=True):
        interval = stats.binomtest(k, trials).proportion_ci(confidence, method="exact")
        assert lower == pytest.approx(interval.low, abs=1e-10)
        assert upper == pytest.approx(interval.high, abs=1e-10)


@settings(deadline=None)
@given(rows, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_band_holds_the_share_and_never_leaves_0_to_1(
    pairs: list[tuple[int, bool]], level: float
) -> None:
    reach, censored = arrays(pairs)
    share = shares(alike(reach), reach, censored, max(1, last_length(reach, censored)))[0]
    low, high = band(reach, censored, share, level)
    assert np.isfinite([low, high]).all()
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (low <= share + 1e-12).all()
    assert (share <= high + 1e-12).all()
    assert (np.diff(high) <= 1e-12).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_crossing_agrees_with_a_walk_along_the_curve(drops: list[int]) -> None:
    share = 1 - np.cumsum(drops) / max(1, 2 * sum(drops)) * 1.5
    share = np.clip(share, 0, 1)
    length, side = crossings(share[None, :])
    known = np.concatenate([[1.0], share])
    if share[0] < 0.5:
        assert side[0] == -1
    elif (share >= 0.5).all():
        assert side[0] == 1
    else:
        grid = np.linspace(0, share.size, 40 * share.size + 1)
        walk = np.interp(grid, np.arange(known.size), known)
        first, last = grid[walk <= 0.5 + 1e-9][0], grid[walk >= 0.5 - 1e-9][-1]
        assert side[0] == 0
        assert length[0] == pytest.approx((first + last) / 2, abs=1 / 30)


@pytest.mark.parametrize(
    ("share", "length", "side"),
    [
        ([1.0, 1.0, 0.0], 2.5, 0),
        ([0.5, 0.0], 1.0, 0),
        ([0.75, 0.25], 1.5, 0),
        ([1.0, 0.5, 0.5, 0.25], 2.5, 0),
        ([0.4, 0.0], 0.0, -1),
        ([1.0, 0.5, 0.5], 0.0, 1),
        ([1.0], 0.0, 1),
    ],
)
def test_crossings_by_hand(share: list[float], length: float, side: int) -> None:
    found, which = crossings(np.array([share]))
    assert (found[0], which[0]) == (length, side)


def test_last_length() -> None:
    assert last_length(np.array([3, 5]), np.array([False, False])) == 6
    assert last_length(np.array([3, 5]), np.array([False, True])) == 5
    assert last_length(np.array([5, 5]), np.array([False, True])) == 5


@pytest.mark.parametrize(
    ("reach", "censored", "words"),
    [
        (np.array([1, 2]), np.array([True]), "one shape"),
        (np.array([[1]]), np.array([[True]]), "one shape"),
        (np.array([1.5]), np.array([True]), "integer reaches"),
        (np.array([1]), np.array([1]), "boolean flags"),
        (np.array([-1]), np.array([True]), "at least 0 tokens"),
    ],
)
def test_what_is_no_reach_is_refused(reach: np.ndarray, censored: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_reaches(reach, censored)
