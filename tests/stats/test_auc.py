"""Area under the ROC curve by ranks, against all pairs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.stats.auc import auc, auc_over_tokens


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_ranks_give_what_all_pairs_give(given_pairs: list[tuple[int, bool]]) -> None:
    scores = np.array([s for s, _ in given_pairs], dtype=float)
    positive = np.array([p for _, p in given_pairs])
    pairs = list(itertools.product(scores[positive], scores[~positive]))
    found = auc(scores, positive)
    if not pairs:
        assert found is None
    else:
        assert found == pytest.approx(np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]))


def test_order_alone_matters(rng: np.random.Generator) -> None:
    scores, positive = rng.normal(size=50), rng.random(50) < 0.4
    assert auc(np.exp(scores), positive) == auc(scores, positive)
    assert auc(-scores, positive) == pytest.approx(1 - auc(scores, positive))


def test_the_interval_comes_from_tokens() -> None:
    ids = np.array(list(itertools.product(range(6), repeat=2)))
    weight = np.array([5.0, 4, 3, 2, 1, 0])
    scores = weight[ids].sum(axis=1)
    clear = auc_over_tokens(scores, scores > 5, ids)
    assert clear is not None
    assert (clear.value, clear.low, clear.high) == (1.0, 1.0, 1.0)
    noisy = auc_over_tokens(scores, np.random.default_rng(0).random(36) < 0.5, ids)
    assert noisy is not None
    assert noisy.low < noisy.value < noisy.high
    assert noisy.positives + noisy.negatives == 36
    few = auc_over_tokens(scores[:2], np.array([True, False]), ids[:2])
    assert few is not None
    assert (few.low, few.high) == (0.0, 1.0)
    assert auc_over_tokens(scores, np.ones(36, dtype=bool), ids) is None
