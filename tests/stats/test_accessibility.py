"""Accessibility curves and n50: every verdict, laws, and coverage of the interval by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmreach.errors import InputError
from lmreach.results import Interval
from lmreach.stats.accessibility import HalfLength, curve, half_length

LIMIT = 12
rows = st.lists(st.tuples(st.integers(0, LIMIT), st.booleans()), min_size=1, max_size=30)


def arrays(pairs: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([r for r, _ in pairs]), np.array([c for _, c in pairs])


def at_limit(reaches: list[int], limit: int = LIMIT) -> tuple[np.ndarray, np.ndarray]:
    """Reaches of a run with one length limit: those that arrive there are censored."""
    reach = np.minimum(reaches, limit)
    return reach, reach >= limit


def half(reaches: list[int], limit: int = LIMIT, confidence: float = 0.95) -> HalfLength:
    return half_length(*at_limit(reaches, limit), limit=limit, confidence=confidence)


def none() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(0, dtype=int), np.zeros(0, dtype=bool)


# The curve -----------------------------------------------------------------------------------------


def test_without_early_censoring_the_curve_is_the_plain_share_with_its_exact_interval() -> None:
    reach, censored = at_limit([0, 3, 3, 5, 7, 12, 20])
    found = curve(reach, censored)
    assert found.n.tolist() == list(range(1, 13))
    for n, share, low, high in zip(found.n, found.share, found.low, found.high, strict=True):
        reached = int((reach >= n).sum())
        interval = stats.binomtest(reached, reach.size).proportion_ci(0.95, method="exact")
        assert share == reached / reach.size
        assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-10)


def test_the_curve_ends_where_the_last_string_fails() -> None:
    found = curve(*at_limit([2, 4]))
    assert found.n.tolist() == [1, 2, 3, 4, 5]
    assert found.share.tolist() == [1, 1, 0.5, 0.5, 0]


def test_nothing_reached_and_nothing_measured() -> None:
    assert curve(*at_limit([0, 0])).share.tolist() == [0.0]
    nothing = curve(*none())
    assert [len(column) for column in (nothing.n, nothing.share, nothing.low, nothing.high)] == [0] * 4
    assert curve(*none()).strings == 0


# n50 by hand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reaches", "value"),
    [
        ([5, 5, 5], 5.5),  # from 1 at 5 to 0 at 6
        ([3, 9], 6.5),  # rests on 1/2 from 4 to 9
        ([2, 4, 6], 4 + (2 / 3 - 1 / 2) / (2 / 3 - 1 / 3)),
        ([0, 1], 1.0),  # exactly half at one token
        ([4, 4, 12, 12, 12, 3, 3, 3], 4 + (5 / 8 - 1 / 2) / (5 / 8 - 3 / 8)),
    ],
)
def test_n50_by_hand(reaches: list[int], value: float) -> None:
    found = half(reaches)
    assert found.verdict == "estimated"
    assert found.value == pytest.approx(value, abs=1e-12)


def test_ends_of_the_interval_by_hand() -> None:
    found = half([5] * 6)
    # At 5 + f the statistic is sqrt(k (1 - 2 f)) when all strings end at 5.
    half_width = stats.norm.ppf(0.975) ** 2 / 6 / 2
    assert found.low == pytest.approx(5.5 - half_width, abs=1e-9)
    assert found.high == pytest.approx(5.5 + half_width, abs=1e-9)
    assert found.words() == "5.5 tokens (95 % interval 5.2 to 5.8, 6 strings)"
    assert found.relative_width == pytest.approx(2 * half_width / 5.5)


# Where there is no number --------------------------------------------------------------------------


def test_all_at_the_limit() -> None:
    found = half([12] * 32)
    assert (found.verdict, found.value, found.low, found.high) == ("above_limit", None, 12.0, None)
    assert found.words().startswith(
        "above 12 tokens, the length limit (95 % interval from 12.0, no upper end"
    )


def test_resting_on_one_half_is_not_crossing_it() -> None:
    found = half([3] * 10 + [12] * 10)
    assert (found.verdict, found.value) == ("above_limit", None)
    assert found.low is not None
    assert 3 <= found.low <= 4


def test_hardly_any_at_one_token() -> None:
    found = half([0] * 32)
    assert (found.verdict, found.value, found.low, found.high) == ("below_one", None, None, 1.0)
    assert found.words().startswith("below 1 token (95 % interval up to 1.0, no lower end")
    some = half([0, 0, 0, 7])
    assert (some.verdict, some.value, some.low) == ("below_one", None, None)


def test_no_strings() -> None:
    found = half_length(*none(), limit=12)
    assert (found.verdict, found.value, found.low, found.high) == ("no_data", None, None, None)
    assert found.words() == "not known: no strings were measured"


def test_too_few_strings_leave_the_interval_open() -> None:
    found = half([5, 5])
    assert (found.value, found.low, found.high) == (5.5, None, None)
    assert "open at both ends" in found.words()
    assert "1 string)" in half([5]).words()


def test_strings_stopped_early_count_as_far_as_they_were_tried() -> None:
    # Two strings stopped at 2 say nothing about token 3; of the others one fails at 3 and one at 5.
    reach, censored = np.array([2, 2, 2, 4]), np.array([True, True, False, False])
    found = curve(reach, censored)
    assert found.share.tolist() == [1, 1, 0.5, 0.5, 0]
    assert half_length(reach, censored, limit=12).value == 3.5


def test_the_words_name_the_last_length_tried() -> None:
    reach, censored = np.array([4, 4, 4]), np.array([True, True, True])
    assert "above 4 tokens, the last length tried" in half_length(reach, censored, limit=12).words()


def test_every_answer_is_an_interval_of_results() -> None:
    for found in (half([5] * 9), half([12] * 9), half([0] * 9), half_length(*none(), limit=3)):
        entry = Interval.from_object(found)
        assert (entry.value, entry.low, entry.high) == (found.value, found.low, found.high)
        assert (entry.verdict, entry.confidence) == (found.verdict, 0.95)
        assert entry.words == found.words() != ""
        assert entry.relative_width == found.relative_width


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_the_level_is_a_share(confidence: float) -> None:
    with pytest.raises(InputError, match="confidence"):
        half([3, 4], confidence=confidence)


def test_the_limit_is_a_length() -> None:
    with pytest.raises(InputError, match="length limit"):
        half_length(*at_limit([3]), limit=0)


# Laws ----------------------------------------------------------------------------------------------


def ordered(found: HalfLength) -> float:
    """n50, or what is known of it where it has no number: below 1, or above the last length tried."""
    known = {"below_one": 0.0, "above_limit": float(found.last)}
    return found.value if found.value is not None else known[found.verdict]


@settings(deadline=None)
@given(rows, st.randoms())
def test_order_of_strings_does_not_matter(pairs: list[tuple[int, bool]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert half_length(*arrays(pairs), limit=LIMIT) == half_length(*arrays(shuffled), limit=LIMIT)


@settings(deadline=None)
@given(rows)
def test_adding_a_success_never_lowers_n50(pairs: list[tuple[int, bool]]) -> None:
    before, after = (half_length(*arrays(p), limit=LIMIT) for p in (pairs, [*pairs, (LIMIT + 1, True)]))
    assert ordered(after) >= ordered(before) - 1e-9


@settings(deadline=None)
@given(st.lists(st.integers(0, LIMIT), min_size=1, max_size=30), st.data())
def test_a_longer_reach_never_lowers_n50(reaches: list[int], data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(reaches) - 1))
    longer = [reach + (i == which) for i, reach in enumerate(reaches)]
    assert ordered(half(longer)) >= ordered(half(reaches)) - 1e-9


@settings(deadline=None)
@given(rows)
def test_measuring_everything_twice_narrows_the_interval(pairs: list[tuple[int, bool]]) -> None:
    once, twice = (half_length(*arrays(p), limit=LIMIT) for p in (pairs, pairs * 2))
    assert ordered(twice) == pytest.approx(ordered(once), abs=1e-9)
    if once.low is not None:
        assert twice.low is not None
        assert twice.low >= once.low - 1e-9
    if once.high is not None:
        assert twice.high is not None
        assert twice.high <= once.high + 1e-9


@settings(deadline=None)
@given(rows)
def test_the_interval_holds_the_value(pairs: list[tuple[int, bool]]) -> None:
    found = half_length(*arrays(pairs), limit=LIMIT)
    assert found.words()
    if found.value is not None:
        assert found.low is None or found.low <= found.value + 1e-9
        assert found.high is None or found.value <= found.high + 1e-9


def test_four_times_the_strings_halve_the_interval() -> None:
    rng = np.random.default_rng(0)
    reaches = rng.poisson(30, 400).tolist()
    widths = []
    for copies in (1, 4):
        found = half(reaches * copies, limit=1000)
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[1] / widths[0] == pytest.approx(0.5, abs=0.1)


# Coverage ------------------------------------------------------------------------------------------


def true_n50(distribution: object) -> float:
    """Crossing of the true curve P(reach >= n), joined as the estimate joins its own."""
    n = np.arange(0, 200)
    share = distribution.sf(n - 1)  # type: ignore[attr-defined]
    at = int((share >= 0.5).nonzero()[0][-1])
    return at + (share[at] - 0.5) / (share[at] - share[at + 1])


@pytest.mark.parametrize("mixed_limits", [False, True])
@pytest.mark.parametrize("distribution", [stats.poisson(9), stats.geom(0.08, loc=-1)], ids=["cliff", "slope"])
def test_the_interval_covers_the_truth(distribution: object, mixed_limits: bool) -> None:
    rng = np.random.default_rng(7)
    truth, runs, strings, covered = true_n50(distribution), 500, 32, 0
    for _ in range(runs):
        reach = distribution.rvs(strings, random_state=rng)  # type: ignore[attr-defined]
        limit = rng.choice([6, 20, 40], strings) if mixed_limits else np.full(strings, 40)
        found = half_length(np.minimum(reach, limit), reach >= limit, limit=40)
        low = -math.inf if found.low is None else found.low
        high = math.inf if found.high is None else found.high
        covered += low <= truth <= high
    # Four standard errors on either side of 95 %.
    assert abs(covered / runs - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / runs)
