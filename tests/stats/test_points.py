"""Success at single lengths: verdicts, laws, and what three readings of the same trials agree on."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmreach.errors import InputError
from lmreach.results.study import Points
from lmreach.runs.study.accessibility import point_parts
from lmreach.stats.points import PointCurve, point_curve
from lmreach.stats.posterior import fit_points, posterior_of_brackets, posterior_of_points
from lmreach.stats.slope import fit_slope_of_curves
from lmreach.stats.turnbull import OPEN

LENGTHS = (8, 12, 16, 24)
reaches = st.lists(st.integers(0, 40), min_size=2, max_size=14)


def tried(reach: list[int], lengths: tuple[int, ...] = LENGTHS) -> list[dict[int, bool]]:
    """Every string at every length, as long as it reaches."""
    return [{n: r >= n for n in lengths} for r in reach]


def assert_same(one: PointCurve, other: PointCurve) -> None:
    assert one.fit == other.fit
    assert Points.from_object(one) == Points.from_object(other)
    assert one.free == other.free


@pytest.mark.parametrize(
    ("outcomes", "verdict", "words"),
    [
        ([], "no_data", "not known"),
        ([{8: True}, {8: False}], "one_length", "no curve: all 2 strings"),
        (tried([30, 30, 30]), "above_limit", "above 24 tokens"),
        (tried([0, 3, 7]), "below_first", "below 8 tokens"),
        (tried([13] * 8), "separated", "between 12 and 16 tokens"),
        (tried([9, 13, 13, 17, 20, 30]), "estimated", "logistic curve, 6 strings"),
        ([{n: n >= 64} for n in (8, 16, 32, 64, 128, 256) for _ in range(10)], "rises", "rises with length"),
        (tried([30, 30, 30, 30, 30, 20]), "above_limit", "above 24 tokens: the curve is above one half"),
        (tried([0, 0, 0, 0, 0, 9]), "below_first", "below 8 tokens: the curve is below one half"),
    ],
)
def test_every_kind_of_answer(outcomes: list[dict[int, bool]], verdict: str, words: str) -> None:
    found = point_curve(outcomes)
    assert found.verdict == verdict
    assert words in found.words()
    value, _, _ = found.n50
    assert (value is not None) == (verdict == "estimated")
    kept = point_parts(found)
    assert kept["n50"].verdict == verdict
    assert kept["n50"].relative_width == found.relative_width


def test_separated_data_bound_the_steepness_only() -> None:
    found = point_curve(tried([13] * 8))
    assert found.steepness().startswith("from 90 % to 10 % within at most")
    assert found.fit.bracket == (12, 16)
    assert found.intervals is not None
    assert found.intervals.half_length() == (12, 16)


def test_points_have_exact_intervals() -> None:
    found = point_curve(tried([9, 13, 13, 17, 20, 30]))
    for place, (reached, count) in enumerate(zip(found.reached, found.tried, strict=True)):
        exact = stats.binomtest(int(reached), int(count)).proportion_ci(method="exact")
        assert (found.low[place], found.high[place]) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_one_string_at_several_lengths_is_one_string() -> None:
    """Points counted as independent would know n50 far better than 20 strings can."""
    reach = np.random.default_rng(2).normal(20, 5, 20).round().astype(int).tolist()
    found = point_curve(tried(reach, tuple(range(6, 36))))
    independent = fit_points(found.n, found.reached, found.tried).n50
    assert found.fit.n50[2] - found.fit.n50[1] > 2 * (independent[2] - independent[1])


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.sampled_from(LENGTHS), st.booleans()), min_size=1, max_size=20))
def test_with_one_length_a_string_brackets_and_points_are_the_same_likelihood(
    trials: list[tuple[int, bool]],
) -> None:
    low = np.array([n if solved else 0 for n, solved in trials])
    high = np.array([OPEN if solved else n - 1 for n, solved in trials])
    n = np.array([at for at, _ in trials])
    brackets = posterior_of_brackets(low, high)
    points = posterior_of_points(n, np.array([s for _, s in trials]).astype(int), np.ones(n.size, int))
    assert brackets.interval(brackets.n50, 0.95) == pytest.approx(points.interval(points.n50, 0.95), rel=1e-9)


@settings(deadline=None, max_examples=15)
@given(reaches, st.randoms())
def test_order_of_strings_does_not_matter(reach: list[int], random) -> None:
    mixed = list(reach)
    random.shuffle(mixed)
    assert_same(point_curve(tried(reach)), point_curve(tried(mixed)))


@settings(deadline=None, max_examples=15)
@given(reaches, st.sampled_from(LENGTHS))
def test_adding_a_success_never_lowers_n50(reach: list[int], n: int) -> None:
    before, after = (point_curve(tried(reach) + more) for more in ([], [{n: True}]))
    if before.fit.n50 is not None and after.fit.n50 is not None:
        # The grid is laid anew where the mass is, so equal curves agree only to its spacing.
        assert after.fit.n50[0] >= before.fit.n50[0] * (1 - 0.01)
    ends = [one.intervals.half_length() for one in (before, after)]
    for old, new in zip(*ends, strict=True):
        # No lower end lies below every length, no upper end beyond.
        assert new is None or old is None or new >= old


@settings(deadline=None, max_examples=15)
@given(reaches, st.integers(0, 13), st.integers(1, 12))
def test_a_longer_reach_never_lowers_a_share(reach: list[int], which: int, more: int) -> None:
    longer = list(reach)
    longer[which % len(reach)] += more
    before, after = point_curve(tried(reach)), point_curve(tried(longer))
    assert (after.share >= before.share).all()
    for end in (0, 1):
        old, new = before.free[end], after.free[end]
        assert new is None or old is None or new >= old


def test_every_trial_twice_narrows_by_the_root_of_two() -> None:
    reach = np.random.default_rng(5).normal(15, 4, 60).round().astype(int).tolist()
    once, twice = (point_curve(tried(reach * k)).fit.n50 for k in (1, 2))
    assert (twice[2] - twice[1]) / (once[2] - once[1]) == pytest.approx(1 / math.sqrt(2), abs=0.06)


def test_units_scale_through() -> None:
    reach = [9, 13, 13, 17, 20, 30]
    once = point_curve(tried(reach)).fit.n50
    tenfold = point_curve(tried([10 * r for r in reach], tuple(10 * n for n in LENGTHS))).fit.n50
    # A reach is a whole number, so brackets end one token, not ten, below the next length.
    assert tenfold == pytest.approx([10 * value for value in once], rel=2e-2)


def test_a_curve_that_does_not_fit_is_not_believed() -> None:
    """Three in ten strings reach any length: no logistic curve falls to a floor."""
    lengths = (6, 9, 12, 15, 18, 24, 30, 40, 60)
    reach = [7, 8, 10, 10, 11, 11, 13, 13, 14, 16, 17, 19, 20, 20] * 5 + [100] * 30
    found = point_curve(tried(reach, lengths))
    assert found.fits < 0.02
    assert found.verdict == "curve_does_not_fit"
    value, low, high = found.n50
    assert value is None
    assert (low, high) == found.free
    assert low < np.median(reach) < high
    assert "no logistic curve fits" in found.words()


def test_a_true_logistic_curve_is_hardly_ever_refused() -> None:
    rng, runs = np.random.default_rng(0), 40
    drawn = [np.round(rng.logistic(20, 3, 40)).astype(int).clip(0).tolist() for _ in range(runs)]
    found = [point_curve(tried(reach, (10, 14, 17, 20, 23, 26, 30))) for reach in drawn]
    assert sum(one.verdict == "curve_does_not_fit" for one in found) <= 4
    held = sum(one.n50[1] <= 20 <= one.n50[2] for one in found if one.verdict == "estimated")
    assert held >= 0.95 * runs - 4 * math.sqrt(runs * 0.05 * 0.95) - 4


def dense(n: np.ndarray, reached: np.ndarray, tried: np.ndarray) -> np.ndarray:
    """Slow reference: the same prior and likelihood on one even grid, median and 95 % ends of n50."""
    n50 = np.exp(np.linspace(np.log(n[0] / 3), np.log(n[-1] * 3), 500))
    width = np.exp(np.linspace(np.log(0.005), np.log(3.0), 120))
    middle, wide, lapse = np.meshgrid(n50, width, np.linspace(0, 0.24, 7), indexing="ij")
    log = np.zeros(middle.shape)
    for at, hit, count in zip(n, reached, tried, strict=True):
        distance = (at - middle) * 2 * np.log(3) / (wide * middle)
        share = (1 - lapse) / (1 + (1 - 2 * lapse) * np.exp(np.clip(distance, -700, 700)))
        share = np.clip(share, 1e-12, 1 - 1e-12)
        log += hit * np.log(share) + (count - hit) * np.log1p(-share)
    mass = np.exp(log - log.max()).sum(axis=(1, 2))
    return np.interp([0.5, 0.025, 0.975], np.cumsum(mass) / mass.sum(), n50)


@pytest.mark.parametrize(
    ("reached", "count", "answer"),
    [
        ([39, 38, 31, 20, 8, 3, 0], 40, (19.99, 18.89, 21.16)),
        ([20, 20, 16, 3, 0, 0, 0], 20, (17.83, 16.79, 19.16)),
        ([36, 35, 36, 18, 3, 0, 1], 40, (19.78, 18.74, 20.78)),
    ],
)
def test_the_posterior_against_a_dense_grid_and_frozen(
    reached: list[int], count: int, answer: tuple[float, float, float]
) -> None:
    n, hits, counts = np.arange(8, 36, 4), np.array(reached), np.full(7, count)
    found = fit_points(n, hits, counts).n50
    assert found == pytest.approx(answer, abs=0.006)  # half the last digit, and the grid's own rounding
    assert found == pytest.approx(tuple(dense(n, hits, counts)), rel=0.01)


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least 1 token"):
        point_curve([{0: True}])
    with pytest.raises(InputError, match="confidence"):
        point_curve([{3: True}], confidence=1.0)
    with pytest.raises(InputError, match="at least one length"):
        posterior_of_brackets(np.array([0]), np.array([OPEN]))
    with pytest.raises(InputError, match="low <= high"):
        posterior_of_brackets(np.array([4]), np.array([3]))


def test_shares_that_rise_have_no_n50_whatever_a_curve_says() -> None:
    """No string at 8, 16 and 32 tokens and all at 64, 128 and 256: "553 tokens (241 to 768)" was said."""
    found = point_curve([{n: n >= 64} for n in (8, 16, 32, 64, 128, 256) for _ in range(10)])
    assert found.n50 == (None, None, None)
    assert found.relative_width is None
    assert found.words() == (
        "not known: the share reached rises with length (0 of 30 up to 32 tokens, 30 of 30 from 64 on), "
        "no curve does"
    )


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from(LENGTHS)), min_size=2, max_size=6))
def test_n50_is_never_beyond_the_lengths_tried(counts: list[tuple[int, int]]) -> None:
    """A value lies among the lengths; what is known beyond them is an end, not past the outermost."""
    outcomes = [{n: i < hits} for hits, n in counts for i in range(8)]
    found = point_curve(outcomes)
    value, low, high = found.n50
    lengths = sorted({n for _, n in counts})
    assert value is None or lengths[0] <= value <= lengths[-1]
    if found.verdict == "above_limit":
        assert high is None
        assert low is None or low <= lengths[-1]
    if found.verdict == "below_first":
        assert low is None
        assert high is None or high >= lengths[0]


def test_a_line_takes_what_lies_beyond_the_lengths_for_a_bound_only() -> None:
    curves = [
        point_curve(tried([9, 13, 13, 17, 20, 30])),
        point_curve(tried([30, 30, 30, 30, 30, 20])),
        point_curve([{n: n >= 12} for n in LENGTHS for _ in range(10)]),
    ]
    slope = fit_slope_of_curves(
        np.array([1, 2, 3]), [one.fit for one in curves], rng=np.random.default_rng(0)
    )
    assert slope.slope is None
    assert slope.n50[1:] == (None, None)
