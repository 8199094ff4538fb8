"""Slopes: closed forms, every verdict, laws, and coverage of the bootstrap interval."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmreach.errors import InputError
from lmreach.runs.study.slopes import slope_record
from lmreach.stats.accessibility import half_length
from lmreach.stats.posterior import CurveFit, fit_points
from lmreach.stats.slope import Slope, fit_slope, fit_slope_of_curves

M = np.array([1, 2, 4, 8])


def fit(
    reaches: Sequence[Sequence[int]], *, m: Sequence[int] = (1, 2, 4, 8), limit: int = 1000, **options: object
) -> Slope:
    arrays = [np.minimum(np.asarray(reach, dtype=int), limit) for reach in reaches]
    options.setdefault("rng", np.random.default_rng(0))
    flags = [reach >= limit for reach in arrays]
    return fit_slope(np.array(m, dtype=int), arrays, flags, [limit] * len(arrays), **options)


def drawn(
    seed: int, strings: int = 32, per_vector: float = 5.0, m: Sequence[int] = (1, 2, 4, 8)
) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.poisson(per_vector * at, strings) for at in m]


def test_the_line_agrees_with_the_closed_form() -> None:
    reaches = drawn(0)
    found = fit(reaches)
    n50 = np.array([half_length(r, np.zeros(r.size, dtype=bool), limit=1000).value for r in reaches])
    reference = stats.linregress(M, n50)
    assert found.slope == pytest.approx(reference.slope, rel=1e-12)
    assert found.intercept == pytest.approx(reference.intercept, rel=1e-9)
    assert found.r2 == pytest.approx(reference.rvalue**2, rel=1e-12)
    assert found.n50 == pytest.approx(n50)
    assert found.verdict == "estimated"


def test_the_interval_agrees_with_a_plain_bootstrap() -> None:
    reaches = drawn(3)
    found = fit(reaches, resamples=4000)
    rng, slopes = np.random.default_rng(99), []
    for _ in range(600):
        again = [rng.choice(r, r.size) for r in reaches]
        n50 = [half_length(r, np.zeros(r.size, dtype=bool), limit=1000).value for r in again]
        slopes.append(stats.linregress(M, n50).slope)
    spread = np.std(slopes)
    # A 2.5 % quantile of 600 draws has an error of 0.11 of the spread; four times that.
    assert (found.low, found.high) == pytest.approx(np.quantile(slopes, [0.025, 0.975]), abs=0.45 * spread)


def test_pairing_draws_whole_strings() -> None:
    # The same strings with a common shift: paired draws cancel it, independent ones do not.
    easy = np.random.default_rng(1).integers(0, 20, 64)
    reaches = [5 * at + easy for at in M]
    paired, free = fit(reaches, paired=True), fit(reaches)
    assert paired.slope == pytest.approx(5.0)
    # Every paired resample has exactly the same line, so the intervals of n50 stand for the spread.
    assert paired.low < 5.0 < paired.high
    assert free.low is not None
    assert free.low < 5.0


def test_equal_n50_give_slope_zero_with_an_error() -> None:
    same = np.random.default_rng(0).integers(1, 8, 32)
    found = fit([same] * 4)
    assert found.slope == 0.0
    assert found.r2 is None
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.0 < found.high


def test_two_points_have_no_r2() -> None:
    found = fit(drawn(0, m=(1, 4)), m=(1, 4))
    assert found.r2 is None
    assert found.slope is not None
    assert "R^2" not in found.words()


# Where there is no number --------------------------------------------------------------------------


def test_one_number_of_vectors_is_too_few() -> None:
    for found in (fit([[5, 6, 7]], m=[3]), fit([[5, 6, 7], [6, 7, 8]], m=[3, 3]), fit([], m=[])):
        assert (found.verdict, found.slope, found.low, found.high) == ("too_few_points", None, None, None)
        assert found.words().startswith("not known")


def test_points_beyond_the_limit_are_kept_but_carry_no_line() -> None:
    found = fit(drawn(0), limit=8)
    assert found.verdict == "censored"
    assert found.n50[0] is not None
    assert found.n50[1:] == (None, None, None)
    assert found.words() == "not known: n50 lies within the tried lengths at 1 of 4 points"
    longer = fit(drawn(0), limit=30)
    assert longer.verdict == "estimated"
    assert [value is None for value in longer.n50] == [False, False, False, True]
    assert "3 of 4 points" in longer.words()


def test_a_point_without_strings_is_no_point() -> None:
    found = fit([[], drawn(0)[1]], m=[1, 2])
    assert found.verdict == "too_few_points"
    assert found.n50[0] is None


def test_resamples_that_leave_the_limit_open_the_upper_end() -> None:
    # At m = 2 just over half of the strings stop short of the limit: in many resamples n50 is above it.
    reaches = [[3, 4, 5, 6] * 8, [10] * 17 + [50] * 15]
    found = fit(reaches, m=[1, 2], limit=50)
    assert found.verdict == "estimated"
    assert found.high is None
    assert found.low is not None
    assert "no upper end: n50 leaves the tried lengths" in found.words()
    assert found.ratio(100.0)[1] is None


def test_few_strings_and_no_spread_give_no_interval() -> None:
    few = fit([[1, 2, 3], [4, 5, 6]], m=[1, 2])
    assert few.slope is not None
    assert (few.low, few.high) == (None, None)
    assert "3 strings" in few.words()
    flat = fit([[5] * 5, [10] * 5], m=[1, 2])
    assert (flat.low, flat.high) == (None, None)
    assert "reach the same length" in flat.words()


def test_strings_that_all_reach_the_same_length_still_have_an_error() -> None:
    found = fit([[5] * 32, [10] * 32, [15] * 32], m=[1, 2, 3])
    assert found.slope == pytest.approx(5.0)
    assert 4.8 < found.low < 5.0 < found.high < 5.2
    same = fit([[5] * 32] * 4)
    assert same.slope == 0.0
    assert same.low < 0.0 < same.high
    assert same.covariance[0] > 0


def test_the_same_strings_in_unequal_numbers_are_still_paired() -> None:
    easy = np.random.default_rng(1).integers(0, 20, 64)
    reaches = [5 * at + easy[:k] for at, k in zip(M, (64, 48, 32, 32), strict=True)]
    paired, free = fit(reaches, paired=True), fit(reaches)
    assert paired.high - paired.low < 0.8 * (free.high - free.low)


def test_a_point_beyond_the_limit_holds_the_line_only_on_its_wrong_side() -> None:
    reaches = [[4, 5, 6] * 8, [9, 10, 11] * 8, [60] * 24]
    kept = fit(reaches, m=[1, 2, 4], limit=15)
    assert kept.bounds == 1
    assert kept.slope == pytest.approx(5.0)  # the line runs above 15 at m = 4 by itself
    held = fit(reaches, m=[1, 2, 4], limit=40)
    assert held.slope > 5.5  # and below 40
    assert "1 more as a bound" in held.words()


def test_line_and_power_law_are_told_apart() -> None:
    rng, m = np.random.default_rng(2), (1, 2, 4, 8, 16)
    straight = fit([rng.poisson(6 * at, 200) for at in m], m=m)
    assert straight.exponent[0] == pytest.approx(1, abs=0.05)
    assert straight.better != "power law"
    bent = fit([rng.poisson(20 * at**0.5, 200) for at in m], m=m)
    assert bent.better == "power law"
    assert bent.exponent[1] < 0.5 < bent.exponent[2] < 0.7
    assert "power law fits better" in bent.shape_words()


def test_the_band_is_narrowest_among_the_points_and_wide_far_out() -> None:
    found = fit(drawn(0))
    widths = [high - low for _, low, high in (found.at(at) for at in (3, 8, 80))]
    assert widths[0] < widths[1] < widths[2]
    value, low, high = found.at(80)
    assert low < value < high
    assert value == pytest.approx(found.intercept + 80 * found.slope)
    assert fit([], m=[]).at(3) is None


# Ratios --------------------------------------------------------------------------------------------


def line(slope: float | None, low: float | None, high: float | None) -> Slope:
    return Slope(
        m=(1, 2), n50=(1.0, 2.0), verdict="estimated", confidence=0.95, slope=slope, low=low, high=high
    )


def test_ratio_carries_the_interval_through() -> None:
    assert line(5.0, 4.0, 8.0).ratio(40.0) == (8.0, 5.0, 10.0)
    assert line(5.0, 0.0, 8.0).ratio(40.0) == (8.0, 5.0, None)
    assert line(5.0, -1.0, 8.0).ratio(40.0) == (8.0, 5.0, None)
    assert line(-1.0, -2.0, -0.5).ratio(40.0) == (None, None, None)
    assert line(None, None, None).ratio(40.0) == (None, None, None)
    with pytest.raises(InputError, match="limit above 0"):
        line(1.0, 1.0, 1.0).ratio(0.0)


def test_every_answer_is_a_slope_of_results() -> None:
    for found in (fit(drawn(0)), fit([], m=[])):
        kept = slope_record("random", found, ())
        assert (kept.slope.value, kept.slope.low, kept.slope.high) == (found.slope, found.low, found.high)
        assert kept.slope.relative_width == found.relative_width
        assert kept.slope.words == found.words()
        assert kept.m == found.m


# Bad input -----------------------------------------------------------------------------------------


def test_lists_must_match() -> None:
    with pytest.raises(InputError, match="pair them up"):
        fit([[1]], m=[1, 2])
    with pytest.raises(InputError, match="m of at least 1"):
        fit([[1]], m=[0])
    with pytest.raises(InputError, match="resample"):
        fit([[1], [2]], m=[1, 2], resamples=0)


# Laws ----------------------------------------------------------------------------------------------


def test_the_same_generator_gives_the_same_interval() -> None:
    assert fit(drawn(0)) == fit(drawn(0))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.randoms())
def test_order_of_points_and_strings_does_not_move_the_line(seed: int, random: object) -> None:
    reaches = drawn(seed)
    order = [0, 1, 2, 3]
    random.shuffle(order)  # type: ignore[attr-defined]
    moved = [np.random.default_rng(seed).permutation(reaches[i]) for i in order]
    first = fit(reaches, resamples=50)
    second = fit(moved, m=[int(M[i]) for i in order], resamples=50)
    assert second.slope == pytest.approx(first.slope, rel=1e-9)
    assert second.intercept == pytest.approx(first.intercept, abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_units_scale_through(seed: int, factor: int) -> None:
    reaches = drawn(seed)
    first = fit(reaches, resamples=50)
    more_vectors = fit(reaches, m=[factor * int(at) for at in M], resamples=50)
    assert more_vectors.slope == pytest.approx(first.slope / factor, rel=1e-9)
    assert (more_vectors.low, more_vectors.high) == pytest.approx((first.low / factor, first.high / factor))


def test_four_times_the_strings_halve_the_interval() -> None:
    reaches = drawn(5, strings=100)
    widths = []
    for copies in (1, 4):
        found = fit([np.tile(reach, copies) for reach in reaches], resamples=3000)
        widths.append(found.high - found.low)
    assert widths[1] / widths[0] == pytest.approx(0.5, abs=0.15)


def test_the_interval_covers_the_truth() -> None:
    curves = [stats.poisson(5.0 * at).sf(np.arange(-1, 100)) for at in M]
    true_n50 = []
    for share in curves:
        at = int((share >= 0.5).nonzero()[0][-1])
        true_n50.append(at + (share[at] - 0.5) / (share[at] - share[at + 1]))
    truth, runs, covered = stats.linregress(M, true_n50).slope, 200, 0
    for seed in range(runs):
        found = fit(drawn(seed, strings=40), rng=np.random.default_rng(seed + 10_000), resamples=400)
        covered += found.low <= truth <= found.high
    # A percentile bootstrap of 40 strings falls a little short; four standard errors on either side of 94 %.
    assert abs(covered / runs - 0.94) <= 4 * math.sqrt(0.94 * 0.06 / runs)


# From curves at single lengths ---------------------------------------------------------------------------


def curve_at(m: int, strings: int = 200, lengths: tuple[float, ...] = (0.5, 0.8, 1.0, 1.2, 1.6)) -> CurveFit:
    """Expected counts of a curve whose n50 is 20 m."""
    n = np.array([round(20 * m * part) for part in lengths])
    reached = np.round(strings / (1 + np.exp((n - 20 * m) / (2 * m)))).astype(int)
    return fit_points(n, reached, np.full(n.size, strings))


def test_curves_give_the_line_through_their_n50() -> None:
    m, curves = np.array([1, 2, 4]), [curve_at(m) for m in (1, 2, 4)]
    found = fit_slope_of_curves(m, curves, rng=np.random.default_rng(0))
    assert found.n50 == tuple(curve.n50[0] for curve in curves)
    assert found.slope == pytest.approx(stats.linregress(m, found.n50).slope)
    # The closed form's error, from the posteriors' own errors.
    pull = (m - m.mean()) / ((m - m.mean()) ** 2).sum()
    errors = np.array([curve.posterior.spread() * curve.n50[0] for curve in curves])
    error = np.sqrt(((pull * errors) ** 2).sum())
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.15)
    assert found.low < 20 < found.high
    assert found.exponent[1] < 1 < found.exponent[2]


def test_curves_beyond_the_lengths_tried_are_bounds() -> None:
    n, tried = np.array([20, 40]), np.full(2, 8)
    above, below = fit_points(n, tried, tried), fit_points(n, np.zeros(2, dtype=int), tried)
    one = fit_points(np.array([20]), np.array([3]), np.array([8]))
    known = [curve_at(m) for m in (1, 2)]
    rng = np.random.default_rng(0)
    plain = fit_slope_of_curves(np.array([1, 2]), known, rng=rng)
    held = fit_slope_of_curves(np.array([1, 2, 4]), [*known, above], rng=rng)
    assert (held.bounds, held.slope) == (1, plain.slope)  # 80 tokens lie above 40 anyway
    broken = fit_slope_of_curves(np.array([1, 2, 4]), [*known, below], rng=rng)
    assert broken.slope < plain.slope
    assert fit_slope_of_curves(np.array([1, 2, 4]), [*known, one], rng=rng).slope == plain.slope
    assert fit_slope_of_curves(np.array([1, 2]), [above, below], rng=rng).verdict == "censored"
    assert fit_slope_of_curves(np.array([2]), [known[0]], rng=rng).verdict == "too_few_points"


def test_separated_curves_carry_a_line() -> None:
    tried = np.full(2, 8)
    curves = [fit_points(np.array([9 * m, 11 * m]), np.array([8, 0]), tried) for m in (1, 2, 4)]
    assert {curve.verdict for curve in curves} == {"separated"}
    found = fit_slope_of_curves(np.array([1, 2, 4]), curves, rng=np.random.default_rng(0))
    assert found.low < 10 < found.high


def test_curves_and_m_must_pair_up() -> None:
    for m, curves in (([1, 2], [curve_at(1)]), ([0], [curve_at(1)])):
        with pytest.raises(InputError, match="one curve per m"):
            fit_slope_of_curves(np.array(m), curves, rng=np.random.default_rng(0))
