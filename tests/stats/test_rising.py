"""Whether shares rise with length: beside a test of every cut by scipy, and how often it is wrong."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmreach.stats.rising import rise


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=6))
def test_the_chance_is_that_of_fishers_test_at_the_clearest_cut(counts: list[tuple[int, int]]) -> None:
    reached = np.array([a for a, _ in counts])
    tried = reached + np.array([b for _, b in counts])
    tried[tried == 0] = 1
    n = 10 * np.arange(1, len(counts) + 1)
    found = rise(n, reached, tried)
    chances = []
    for k in range(1, len(counts)):
        table = [
            [reached[k:].sum(), (tried - reached)[k:].sum()],
            [reached[:k].sum(), (tried - reached)[:k].sum()],
        ]
        chances.append(stats.fisher_exact(table, alternative="greater").pvalue)
    assert found is not None
    np.testing.assert_allclose(found.chance, min(1.0, min(chances) * len(chances)), rtol=1e-9)


def test_one_length_cannot_rise() -> None:
    assert rise(np.array([4]), np.array([1]), np.array([2])) is None


def test_shares_that_fall_or_stay_are_hardly_ever_called_rising() -> None:
    """Level shares are the worst case: 2,000 of them, at most 2 % and chance (4 standard errors)."""
    rng = np.random.default_rng(0)
    n, tried = np.array([4, 8, 16, 32, 64]), np.array([8, 4, 12, 4, 8])
    for share in (0.2, 0.5, 0.9):
        alarms = sum(rise(n, rng.binomial(tried, share), tried).chance < 0.02 for _ in range(2000))
        assert alarms <= 2000 * 0.02 + 4 * np.sqrt(2000 * 0.02 * 0.98)


def test_a_plain_rise_is_seen_with_four_strings_a_length() -> None:
    found = rise(np.array([8, 16, 32, 64]), np.array([0, 0, 4, 4]), np.full(4, 4))
    assert found.chance < 0.001
    assert found.words() == "0 of 8 up to 16 tokens, 8 of 8 from 32 on"
