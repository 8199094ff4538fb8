"""The curve's posterior: no answer where there is none, the truth of simulations elsewhere, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from lmreach.errors import InputError
from lmreach.stats.posterior import CurveFit, fit_points, posterior_of_points, posterior_of_reaches

N = np.array([10, 20, 30, 40])
TRIED = np.full(4, 20)


def fit(reached: list[int], **more: object) -> CurveFit:
    return fit_points(N, np.array(reached), TRIED, **more)


def test_a_separated_cliff_is_a_bracket_and_no_number_from_a_failed_fit() -> None:
    """Least squares on such data returned n50 = -42.8 without a warning."""
    found = fit([20, 20, 0, 0])
    assert found.verdict == "separated"
    assert found.bracket == (20.0, 30.0)
    assert found.n50[1] <= 20 < 30 <= found.n50[2]
    assert found.words().startswith("between 20 and 30 tokens")
    assert "at most" in found.words()


@pytest.mark.parametrize(
    ("reached", "verdict", "words"),
    [
        ([20] * 4, "above_limit", "above 40 tokens"),
        ([0] * 4, "below_first", "below 10 tokens"),
    ],
)
def test_all_or_none_reached(reached: list[int], verdict: str, words: str) -> None:
    found = fit(reached)
    assert (found.verdict, found.n50, found.width) == (verdict, None, None)
    assert found.words().startswith(words)


def test_one_length_gives_no_curve() -> None:
    found = fit_points(np.array([10, 10]), np.array([3, 4]), np.array([10, 10]))
    assert (found.verdict, found.n50) == ("one_length", None)
    assert "20 strings were tried at 10 tokens alone" in found.words()
    assert fit_points(np.array([], int), np.array([], int), np.array([], int)).verdict == "no_data"


@pytest.mark.parametrize("shape", ["logistic", "log-logistic"])
def test_many_strings_give_the_truth(shape: str) -> None:
    """Expected counts of a curve with n50 25, quartile width 20 % and no lapse."""
    n = np.array([10, 15, 18, 20, 22, 24, 26, 28, 30, 35, 45])
    scale = 0.2 / (2 * math.log(3))
    x = (n / 25 - 1) / scale if shape == "logistic" else np.log(n / 25) / scale
    reached = np.round(2000 * special.expit(-x)).astype(int)
    found = fit_points(n, reached, np.full(n.size, 2000), shape=shape)
    assert found.n50[0] == pytest.approx(25, rel=0.01)
    assert found.n50[1] < 25 < found.n50[2]
    level = math.log(9) * scale
    wide = 50 * level if shape == "logistic" else 25 * (math.exp(level) - math.exp(-level))
    assert found.width[0] == pytest.approx(wide, rel=0.05)
    assert found.lapse[1] < 0.01


def test_lapses_are_found() -> None:
    n = np.arange(5, 60, 5)
    reached = np.round(400 * 0.88 * special.expit((32 - n) / 2)).astype(int)
    found = fit_points(n, reached, np.full(n.size, 400))
    assert found.lapse[1] <= 0.12 <= found.lapse[2]
    assert found.n90[0] == 0.0  # nine in ten are reached at no length


def test_the_interval_covers_the_truth() -> None:
    rng, n, covered, runs = np.random.default_rng(4), np.arange(4, 64, 4), 0, 60
    for _ in range(runs):
        reached = rng.binomial(20, special.expit((30 - n) / 3))
        found = fit_points(n, reached, np.full(n.size, 20))
        covered += found.n50[1] <= 30 <= found.n50[2]
    assert abs(covered / runs - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / runs)


def test_reaches_say_more_than_one_length_would() -> None:
    reach = np.random.default_rng(1).poisson(30, 40)
    found = posterior_of_reaches(reach, np.zeros(40, dtype=bool))
    _, low, high = found.interval(found.n50, 0.95)
    assert low < 30.5 < high
    assert found.spread() < 0.05
    at_30 = posterior_of_points(np.array([30]), np.array([(reach >= 30).sum()]), np.array([40]))
    assert found.spread() < at_30.spread()


def test_censored_reaches_leave_n50_open_above() -> None:
    found = posterior_of_reaches(np.full(20, 12), np.ones(20, dtype=bool))
    _, low, high = found.interval(found.n50, 0.95)
    assert low > 11
    assert high > 20


def test_the_next_string_tells_most_near_n50() -> None:
    found = posterior_of_points(N, np.array([20, 17, 6, 0]), TRIED)
    spreads = {n: found.expected_spread(n) for n in (5, 26, 80)}
    assert spreads[26] < spreads[5]
    assert spreads[26] < spreads[80]
    assert all(spread <= found.spread() + 1e-12 for spread in spreads.values())


counts = st.lists(st.integers(0, 20), min_size=4, max_size=4)


@settings(deadline=None, max_examples=12)
@given(counts, st.permutations(range(4)))
def test_order_does_not_matter_and_nothing_is_not_a_number(reached: list[int], order: list[int]) -> None:
    found = fit(reached)
    again = fit_points(N[order], np.array(reached)[order], TRIED)
    assert found == again
    for value in (found.n50, found.n10, found.n90, found.width, found.lapse):
        assert value is None or all(map(math.isfinite, value))
        assert value is None or value[1] <= value[0] <= value[2]


def test_four_times_the_strings_halve_the_interval() -> None:
    once, more = (
        fit_points(N, np.array([20, 17, 6, 0]) * k, TRIED * k, shape="logistic").n50 for k in (4, 16)
    )
    assert (more[2] - more[1]) / (once[2] - once[1]) == pytest.approx(0.5, abs=0.1)


def test_units_scale_through() -> None:
    once, tenfold = (fit_points(N * k, np.array([19, 17, 6, 1]), TRIED).n50 for k in (1, 10))
    assert tenfold == pytest.approx([10 * value for value in once], rel=1e-9)


def test_refusals() -> None:
    for n, reached, tried in (([0], [1], [2]), ([3], [3], [2]), ([3, 4], [1], [2])):
        with pytest.raises(InputError, match=r"expected .*; got .*; "):
            fit_points(np.array(n), np.array(reached), np.array(tried))
    with pytest.raises(InputError, match="at least one reach"):
        posterior_of_reaches(np.zeros(0, dtype=int), np.zeros(0, dtype=bool))
