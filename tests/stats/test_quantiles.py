"""Where the share crosses a level: a slow reference, other levels than one half, and small samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from lmreach.stats.quantiles import crossing
from lmreach.stats.survival import check_reaches


def crossed(reaches, limit=10**6, level=0.5, confidence=0.95):
    reach = np.minimum(np.asarray(reaches), limit)
    return crossing(*check_reaches(reach, reach >= limit), level=level, confidence=confidence)


def statistic(reaches: list[int], theta: float, level: float) -> float:
    """The score test by brute force: probabilities of Y's three values found by a bounded search."""
    j, f = math.floor(theta), theta - math.floor(theta)
    y = np.select([np.array(reaches) > j, np.array(reaches) == j], [1.0, 1.0 - f], 0.0)
    counts = [np.sum(np.array(reaches) < j), np.sum(np.array(reaches) == j), np.sum(np.array(reaches) > j)]
    top = min(level / (1 - f), (1 - level) / f)

    def unlikely(equal: float) -> float:
        chances = [1 - level - f * equal, equal, level - (1 - f) * equal]
        return -sum(
            count * math.log(max(chance, 1e-300))
            for count, chance in zip(counts, chances, strict=True)
            if count
        )

    equal = optimize.minimize_scalar(unlikely, bounds=(0, top), method="bounded", options={"xatol": 1e-12}).x
    variance = level - (1 - f) * equal + (1 - f) ** 2 * equal - level**2
    return (y.mean() - level) * math.sqrt(len(reaches) / variance)


# Every length from 3 to 7 holds strings, so no stretch rests and nothing is interpolated.
dense = st.lists(st.integers(3, 7), min_size=5, max_size=40).map(lambda more: [3, 4, 5, 6, 7, *more])


@settings(deadline=None, max_examples=25)
@given(dense, st.sampled_from([0.3, 0.5, 0.8]))
def test_the_ends_are_where_the_test_just_rejects(reaches: list[int], level: float) -> None:
    found = crossed(reaches, level=level)
    z = stats.norm.ppf(0.975)
    for end, wanted in ((found.low, z), (found.high, -z)):
        if end is not None and 1e-3 < end % 1 < 1 - 1e-3:
            assert statistic(reaches, end, level) == pytest.approx(wanted, abs=2e-3)


def test_wilson_is_the_case_of_a_whole_length() -> None:
    # At the level where Wilson's interval of 25 of 40 ends, the crossing is just not excluded.
    reaches = [5] * 15 + [20] * 25
    wilson = stats.binomtest(25, 40).proportion_ci(0.95, method="wilson")
    for level, end in ((wilson.low, "low"), (wilson.high, "high")):
        found = crossed(reaches, level=level)
        # On the stretch from 6 to 20 the share rests on 25/40: the end lies in its middle.
        assert getattr(found, end) == pytest.approx(13, abs=1e-6)


def test_few_strings_exclude_nothing() -> None:
    for strings in range(1, 6):
        found = crossed([9] * strings)
        assert (found.low, found.high) == (None, None)
    assert crossed([9] * 6).low is not None
    assert crossed([9] * 30, level=0.9).low is None  # 0.9^30 = 0.042
    assert crossed([9] * 40, level=0.9).low is not None


def test_ends_are_interpolated_between_reaches_that_lie_apart() -> None:
    # Hettmansperger and Sheather: between the fifth and sixth of 15 order statistics at 95 %.
    found = crossed(np.arange(1, 16) * 100)
    assert 400 < found.low < 500
    assert 1100 < found.high < 1201


def test_levels_are_ordered() -> None:
    reaches = np.random.default_rng(0).poisson(30, 60)
    at = [crossed(reaches, level=level).value for level in (0.9, 0.5, 0.1)]
    assert at == sorted(at)


def test_beyond_the_limit_only_a_lower_end() -> None:
    found = crossed([9] * 30 + [50] * 30, limit=20, level=0.25)
    assert (found.side, found.value, found.high) == (1, None, None)
    assert found.low == 20.0
