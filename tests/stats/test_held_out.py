"""Concentration from halves: never more than there is, and nearly all of it where draws are many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.stats.held_out import concentration, halves


def true_gini(weights: np.ndarray) -> float:
    """The definition: mean absolute difference over twice the mean."""
    gaps = np.abs(weights[:, None] - weights[None]).sum()
    return float(gaps / (2 * weights.size * weights.sum()))


def zipf(cells: int, power: float) -> np.ndarray:
    weights = np.arange(1, cells + 1) ** -power
    return weights / weights.sum()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20).filter(sum), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_halves_add_up(counts: list[int], seed: int) -> None:
    one, other = halves(np.array(counts), np.random.default_rng(seed))
    assert (one + other == counts).all()
    assert one.min() >= 0
    assert other.min() >= 0


@pytest.mark.parametrize("draws", [200, 2000, 200_000])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 1.5])
def test_the_gini_coefficient_is_a_lower_bound_that_closes(draws: int, power: float) -> None:
    rng = np.random.default_rng(0)
    weights = zipf(500, power)
    found = [concentration(rng.multinomial(draws, weights), rng).gini for _ in range(40)]
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) <= true_gini(weights) + 4 * error + (0.03 if draws == 200 else 0.002)
    if draws == 200_000:
        assert np.mean(found) >= true_gini(weights) - 0.01


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 1.5])
def test_the_number_that_holds_80_percent_is_an_upper_bound_that_closes(power: float) -> None:
    rng = np.random.default_rng(1)
    weights = zipf(500, power)
    truth = int((np.cumsum(weights) < 0.8).sum()) + 1
    few, many = (
        np.mean([concentration(rng.multinomial(draws, weights), rng).holders_80 for _ in range(20)])
        for draws in (1000, 400_000)
    )
    assert truth * 0.98 <= many <= truth * 1.05 + 1
    assert few >= truth * 0.95


def test_one_cell_that_holds_all_and_a_single_draw() -> None:
    rng = np.random.default_rng(0)
    all_in_one = concentration(np.array([0, 900, 0, 0]), rng)
    assert (all_in_one.gini, all_in_one.holders_80) == (pytest.approx(3 / 4), 1)
    once = concentration(np.array([1, 0, 0, 0, 0]), rng)
    assert (once.gini, once.holders_80) == (0.0, 4)
