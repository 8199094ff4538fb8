"""Rows into passes: every row once, never more than a pass holds, and as cheap as any division."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmreach.experiments.cramming.buckets import buckets

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=40).map(np.array)


def cost(lengths: np.ndarray, parts: list[np.ndarray], overhead: int) -> int:
    return sum(overhead + int(lengths[part].max()) * len(part) for part in parts)


@given(LENGTHS, st.integers(0, 100), st.integers(1, 200))
def test_every_row_has_one_pass_and_no_pass_is_too_large(lengths, overhead, most) -> None:
    found = buckets(lengths, overhead=overhead, most=most)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(lengths)))
    assert all(len(part) == 1 or int(lengths[part].max()) * len(part) <= most for part in found)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(np.array), st.integers(0, 20))
def test_no_division_is_cheaper(lengths, overhead) -> None:
    """All assignments of rows to passes are tried."""
    count = len(lengths)  # 4^4 assignments at most
    best = min(
        cost(
            lengths,
            [np.flatnonzero(np.array(labels) == k) for k in range(count) if np.any(np.array(labels) == k)],
            overhead,
        )
        for labels in product(range(count), repeat=count)
    )
    assert cost(lengths, buckets(lengths, overhead=overhead, most=10**6), overhead) == best


@given(LENGTHS)
def test_equal_rows_share_one_pass_and_free_passes_pad_nothing(lengths) -> None:
    assert len(buckets(np.full(7, 5), overhead=10, most=1000)) == 1
    free = buckets(lengths, overhead=0, most=1000)
    assert cost(lengths, free, 0) == lengths.sum()


def test_a_row_longer_than_a_pass_goes_alone() -> None:
    found = buckets(np.array([50, 3, 3]), overhead=1, most=10)
    assert [part.tolist() for part in found] == [[0], [1, 2]]
