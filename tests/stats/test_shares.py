"""Shares from counts: exact intervals, limits of unhit cells, and the numbers about all cells together."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmreach.errors import InputError
from lmreach.stats.shares import cell_shares, unhit_limit

COUNTS = st.lists(st.integers(0, 50), min_size=1, max_size=30).filter(sum)


def test_an_unhit_cell_has_a_limit_and_no_log() -> None:
    found = cell_shares(np.array([5000, 5000, 0]))
    assert found.share[2] == 0
    assert found.high[2] == pytest.approx(3.0e-4, rel=2e-3)
    assert found.words(2) == "no hit in 10,000: below 3.0e-04 (95 %)"
    assert found.log_words(2) == f"below {math.log(found.high[2]):.2f}"
    assert "inf" not in found.log_words(2)
    assert found.log_words(0) == "-0.69"
    assert "interval 0.49 to 0.51" in found.words(0)


def test_the_limit_is_where_no_hit_has_five_percent() -> None:
    for samples in (1, 7, 10_000, 10**9):
        limit = unhit_limit(samples)
        assert samples * math.log1p(-limit) == pytest.approx(math.log(0.05), rel=1e-9)


@given(COUNTS)
@settings(max_examples=60, deadline=None)
def test_intervals_are_those_of_beta_quantiles(counts: list[int]) -> None:
    found = cell_shares(np.array(counts))
    total = sum(counts)
    for cell, c in enumerate(counts):
        if c == 0:
            assert found.low[cell] == 0
            assert found.high[cell] == pytest.approx(1 - 0.05 ** (1 / total), rel=1e-9)
            continue
        low = stats.beta.ppf(0.025, c, total - c + 1)
        high = stats.beta.ppf(0.975, c + 1, total - c) if c < total else 1.0
        np.testing.assert_allclose([found.low[cell], found.high[cell]], [low, high], rtol=1e-8)
    assert found.share.sum() == pytest.approx(1)


@given(COUNTS)
@settings(max_examples=60, deadline=None)
def test_summary_against_slow_counting(counts: list[int]) -> None:
    summary = cell_shares(np.array(counts)).summary()
    total, cells = sum(counts), len(counts)
    assert summary.hit == sum(c > 0 for c in counts)
    assert summary.unseen_mass == counts.count(1) / total
    assert 0 <= summary.gini <= (cells - 1) / cells + 1e-12
    assert 1 <= summary.holders_80 <= cells
    json.dumps(asdict(summary), allow_nan=False)


def test_good_turing_foretells_the_next_states() -> None:
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 5001)
    weights /= weights.sum()
    counts = rng.multinomial(4000, weights)
    truth = weights[counts == 0].sum()
    summary = cell_shares(counts).summary()
    # sd of the difference is about sqrt(f1 + 2 f2) / N
    assert abs(summary.unseen_mass - truth) < 4 * math.sqrt(summary.hit_once + 2 * summary.hit_twice) / 4000


def test_rank_plot_stays_small() -> None:
    assert len(cell_shares(np.arange(1, 200_001)).summary().ranks) <= 60


def test_words_say_what_was_not_seen() -> None:
    said = cell_shares(np.array([9_000, 999, 1, 0])).summary().words()
    assert said == (
        "3 of 4 cells were hit by 10,000 states; 80 % of the measure lies in at most 1 cell (25 %); "
        "Gini at least 0.700; without a hit: 1 cell, about 0.01 % of the measure together, each below "
        "3.0e-04 (95 %)"
    )


@pytest.mark.parametrize(
    "counts",
    [
        np.zeros(3, dtype=int),
        np.array([-1, 2]),
        np.array([0.5, 1.0]),
        np.zeros((0,), dtype=int),
        np.ones((2, 2), int),
    ],
)
def test_bad_counts_are_refused(counts: np.ndarray) -> None:
    with pytest.raises(InputError, match="expected"):
        cell_shares(counts)


def test_bad_levels_are_refused() -> None:
    with pytest.raises(InputError):
        cell_shares(np.array([1]), confidence=1.0)
    with pytest.raises(InputError):
        unhit_limit(0)


def test_equal_cells_do_not_look_unequal_for_being_seen_seldom() -> None:
    """2,207 draws over 49,152 equal cells had a Gini coefficient of 0.957 and 80 % in 1,714 cells."""
    counts = np.random.default_rng(0).multinomial(2207, np.full(49152, 1 / 49152))
    summary = cell_shares(counts).summary()
    assert summary.gini < 0.03
    assert summary.share_holding_80 > 0.78
    assert "at most" in summary.words()


def test_the_largest_cells_have_unbiased_shares() -> None:
    """Of 1,000 equal cells the ten with the most hits are no larger: their shares are 1/1000 in the mean."""
    rng = np.random.default_rng(1)
    told, covered = [], []
    for _ in range(200):
        top = cell_shares(rng.multinomial(4000, np.full(1000, 1e-3))).largest(10)
        told += top.shares.share[top.cells].tolist()
        covered += ((top.shares.low <= 1e-3) & (top.shares.high >= 1e-3))[top.cells].tolist()
    assert np.mean(told) == pytest.approx(1e-3, abs=4 * np.std(told) / np.sqrt(len(told)))
    assert np.mean(covered) > 0.95
    assert cell_shares(np.array([1, 0])).largest(1) is None


def test_bands_of_ranks_hold_what_the_other_half_has() -> None:
    rng = np.random.default_rng(2)
    weights = 1 / np.arange(1, 2001)
    weights /= weights.sum()
    ranks = cell_shares(rng.multinomial(400_000, weights)).summary().ranks
    assert ranks[0]["rank"] == 1
    for one in ranks[:20]:
        assert one["low"] <= one["share"] <= one["high"]
        assert one["share"] == pytest.approx(weights[one["rank"] - 1], rel=0.25)
