"""Richness, coverage and discovery: published examples, closed forms, and samples of known truth."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.stats.richness import Frequencies, ace, chao1, coverage, discovery

# Spiders in two plots of Harvard Forest (Sackett et al. 2011) as used in Chao et al. 2014 (girdled: 26
# species of 168 individuals, f1 = 12, f2 = 4; logged: 37 of 252, f1 = 14, f2 = 4). How the others were
# abundant plays no part.
GIRDLED = Frequencies({1: 12, 2: 4, 14: 8, 18: 2})
LOGGED = Frequencies({1: 14, 2: 4, 12: 18, 14: 1})


def frequencies(sample: np.ndarray) -> Frequencies:
    return Frequencies(Counter(Counter(sample.tolist()).values()))


def test_published_chao1_with_its_error_and_interval() -> None:
    assert (GIRDLED.seen, GIRDLED.sample) == (26, 168)
    assert (LOGGED.seen, LOGGED.sample) == (37, 252)
    found = chao1(GIRDLED)
    assert [found.value, found.standard_error, found.low, found.high] == pytest.approx(
        [43.893, 14.306, 30.511, 96.971], abs=6e-4
    )
    found = chao1(LOGGED)
    assert [found.value, found.standard_error, found.low, found.high] == pytest.approx(
        [61.403, 18.532, 43.502, 128.583], abs=6e-4
    )


def test_published_coverage() -> None:
    assert coverage(GIRDLED).value == pytest.approx(0.9289, abs=5e-5)
    assert coverage(LOGGED).value == pytest.approx(0.9446, abs=5e-5)


def test_no_doubletons_and_no_singletons() -> None:
    alone = Frequencies({1: 5})
    assert chao1(alone).value == pytest.approx(5 + 4 / 5 * 5 * 4 / 2)
    full = Frequencies({3: 7})
    for found in (chao1(full), ace(full)):
        assert (found.value, found.low, found.high, found.standard_error) == (7, 7, 7, 0)
    assert coverage(full).value == 1.0
    assert coverage(Frequencies({1: 1})).value == 0.0
    assert ace(alone) == chao1(alone)


def test_equally_common_kinds_make_ace_the_kinds_over_coverage() -> None:
    # Poisson counts of mean 1 have no excess of pairs: the correction for inequality is 0.
    poisson = {k: round(1e6 * math.exp(-1) / math.factorial(k)) for k in range(1, 9)}
    found = ace(Frequencies(poisson))
    assert found.value == pytest.approx(1e6, rel=2e-3)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("true", [300, 1000])
def test_intervals_hold_the_truth_of_equal_kinds(true: int) -> None:
    rng = np.random.default_rng(5)
    inside = {"chao1": 0, "ace": 0, "coverage": 0}
    for _ in range(60):
        sample = rng.integers(true, size=true)
        f = frequencies(sample)
        for name, found in (("chao1", chao1(f)), ("ace", ace(f))):
            inside[name] += found.low <= true <= found.high
        covered = coverage(f)
        inside["coverage"] += covered.low <= len(np.unique(sample)) / true <= covered.high
    # Of 60 intervals of 95 %, fewer than 50 hold with a chance below 1e-4.
    assert min(inside.values()) >= 50, inside


def test_chao1_stays_below_where_most_kinds_are_rare() -> None:
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1, 20_001)
    f = frequencies(rng.choice(20_000, p=shares / shares.sum(), size=5000))
    assert f.seen < chao1(f).value < 20_000
    covered = coverage(f)
    assert 0 < covered.low < covered.value < covered.high < 1


kinds = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@given(kinds)
@settings(deadline=None, max_examples=40)
def test_discovery_is_the_mean_over_all_subsets(counts: list[int]) -> None:
    people = [kind for kind, count in enumerate(counts) for _ in range(count)]
    if len(people) > 9:
        people = people[:9]
    f = frequencies(np.array(people))
    for t in range(len(people) + 1):
        subsets = list(itertools.combinations(people, t))
        expected = np.mean([len(set(s)) for s in subsets])
        assert discovery(f, [t])[0] == pytest.approx(expected, abs=1e-9)


@given(st.dictionaries(st.integers(1, 50), st.integers(1, 500), min_size=1, max_size=8))
def test_discovery_climbs_ever_slower_to_what_was_seen(of: dict[int, int]) -> None:
    f = Frequencies(of)
    sizes = np.unique(np.linspace(0, f.sample, 30).round())
    found = discovery(f, sizes)
    assert found[0] == 0
    assert found[-1] == pytest.approx(f.seen)
    slopes = np.diff(found) / np.diff(sizes)
    assert (slopes > -1e-9).all()
    assert (np.diff(slopes) < 1e-6).all()
    assert (found <= sizes + 1e-9).all()


@given(st.dictionaries(st.integers(1, 50), st.integers(1, 500), min_size=1, max_size=8))
def test_estimates_never_fall_below_what_was_seen(of: dict[int, int]) -> None:
    f = Frequencies(of)
    for found in (chao1(f), ace(f)):
        assert f.seen <= found.low <= found.value <= found.high
        assert math.isfinite(found.high)
    covered = coverage(f)
    assert 0 <= covered.low <= covered.value <= covered.high <= 1


def test_bad_input_is_refused() -> None:
    for of in ({}, {0: 3}, {2: 0}):
        with pytest.raises(InputError, match="at least once"):
            Frequencies(of)
    with pytest.raises(InputError, match="0 to 168"):
        discovery(GIRDLED, [169])
    with pytest.raises(InputError, match="confidence"):
        chao1(GIRDLED, confidence=1.0)
