"""Frontiers: blocks begin when most is won, what is won stays, and at the end only the prefix is left."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.frontier import CLOSED, CLOSING, block_length, next_frontier

STEPS = 100


def after(frontier: int, best: int, hits: int, step: int, *, block: int = 8) -> int:
    one = (torch.tensor([each]) for each in (frontier, best, hits, step))
    return int(next_frontier(*one, block=block, max_steps=STEPS))


def test_blocks_follow_the_coordinates_unless_a_length_is_asked_for() -> None:
    """SmolLM2-135M has 576 coordinates a vector, builtin:random 64."""
    assert block_length(OptimiserConfig(), 1, 576) == 16
    assert block_length(OptimiserConfig(), 3, 576) == 48
    assert block_length(OptimiserConfig(), 4, 64) == 8
    assert block_length(OptimiserConfig(lookahead=5), 3, 576) == 5


def test_the_next_block_begins_when_three_quarters_are_won_in_any_order() -> None:
    assert after(16, best=0, hits=11, step=10) == 16
    assert after(16, best=0, hits=12, step=10) == 24
    assert after(16, best=15, hits=15, step=10) == 24
    # What was once emitted counts, even where the step just taken has lost it.
    assert after(16, best=15, hits=3, step=10) == 24


def test_it_closes_in_from_half_the_steps_to_nine_tenths() -> None:
    lengths = [after(40, best=5, hits=20, step=step) for step in (50, 60, 66, 80, 90, 100)]
    assert lengths == [40, 11, 10, 8, 6, 6]


@given(
    frontier=st.integers(1, 200),
    hits=st.integers(0, 200),
    best=st.integers(0, 200),
    step=st.integers(0, STEPS),
    block=st.integers(1, 64),
)
def test_a_row_always_has_a_token_to_win(frontier: int, hits: int, best: int, step: int, block: int) -> None:
    """The loss covers the best prefix and one more, shrinks only in the closing, and ends right there."""
    best = min(best, frontier)
    found = after(frontier, best, min(hits, frontier), step, block=block)
    assert found >= best + 1
    if step <= CLOSING * STEPS:
        assert found in (frontier, frontier + block)
    if step >= CLOSED * STEPS:
        assert found <= best + 1


def test_rows_do_not_see_each_other() -> None:
    state = [torch.tensor(each) for each in ([16, 30, 9], [0, 8, 8], [13, 9, 2], [10, 70, 99])]
    together = next_frontier(*state, block=8, max_steps=STEPS)
    alone = [next_frontier(*(each[i : i + 1] for each in state), block=8, max_steps=STEPS) for i in range(3)]
    assert torch.equal(together, torch.cat(alone))
