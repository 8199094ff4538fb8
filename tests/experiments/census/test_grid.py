"""Grids of prompts: every prompt once, in numbered blocks."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.experiments.census.grid import Grid

small = st.integers(1, 3)


@given(st.integers(2, 4), small, small, st.integers(1, 500), st.sampled_from(["all", "sorted"]))
def test_blocks_hold_every_prompt_once(q: int, d: int, m: int, size: int, order: str) -> None:
    grid = Grid.even(q, 1.5, d, m, order)  # type: ignore[arg-type]
    if grid.prompts > 5000:
        return
    blocks = [grid.block(start, size) for start in range(0, grid.prompts, size)]
    prompts = np.concatenate(blocks).reshape(grid.prompts, m * d)
    assert len(np.unique(prompts, axis=0)) == grid.prompts
    assert prompts.dtype == np.float32
    assert np.abs(prompts).max() == 1.5


def test_there_are_as_many_prompts_as_the_formula_says() -> None:
    assert Grid.even(4, 1.0, 3, 2).prompts == 4**6
    assert Grid.even(2, 1.0, 2, 10, "sorted").prompts == 4 * math.comb(4 + 8, 9)


def test_sorted_prompts_are_one_order_of_what_stands_before_the_last_vector() -> None:
    def unordered(grid: Grid) -> list[tuple]:
        prompts = grid.block(0, grid.prompts).tolist()
        return [(tuple(sorted(map(tuple, prompt[:-1]))), tuple(prompt[-1])) for prompt in prompts]

    kept, every = unordered(Grid.even(2, 1.0, 2, 3, "sorted")), unordered(Grid.even(2, 1.0, 2, 3))
    assert len(set(kept)) == len(kept)
    assert set(kept) == set(every)


def test_digits_count_up_like_a_product() -> None:
    grid = Grid.even(3, 1.0, 1, 2)
    expected = sorted(itertools.product([-1.0, 0.0, 1.0], repeat=2))
    assert sorted(map(tuple, grid.block(0, 9)[..., 0].tolist())) == expected
    assert len(grid.block(7, 100)) == 2
    assert len(grid.block(9, 100)) == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((1, 1.0, 2, 1), "at least 2"),
        ((2, 0.0, 2, 1), "above 0"),
        ((2, 1.0, 2, 0), "at least 1"),
        ((16, 1.0, 64, 9), "10\\^694"),
    ],
)
def test_grids_that_cannot_be_counted_are_refused(asked: tuple[int, float, int, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Grid.even(*asked)
