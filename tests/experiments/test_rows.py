"""Per-row Adam and bookkeeping against torch's own Adam and against rows that are alone."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.config import CramConfig
from lmreach.experiments.rows import Rows


def start(rows: int, m: int = 2, d: int = 3, seed: int = 0) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    return Rows.start(torch.arange(rows), torch.randn(rows, m, d, generator=generator), frontier=3)


def test_adam_is_torchs_adam_for_a_single_row() -> None:
    rows = start(1)
    reference = torch.nn.Parameter(rows.vectors.clone())
    optimiser = torch.optim.Adam([reference], lr=0.1, betas=(0.9, 0.95), eps=1e-12)
    for step in range(20):
        grad = torch.sin(rows.vectors * (step + 1))
        reference.grad = torch.sin(reference.detach() * (step + 1))
        rows.adam(grad, torch.tensor([0.1]), 0.9, 0.95)
        optimiser.step()
        torch.testing.assert_close(rows.vectors, reference.detach(), rtol=1e-5, atol=1e-6)


@given(late=st.integers(1, 8), total=st.integers(9, 15))
@settings(deadline=None, max_examples=15)
def test_a_row_that_joins_late_moves_as_if_alone(late: int, total: int) -> None:
    """Moments and step counts are the row's own: joining a running batch changes nothing."""
    alone, batch = start(1, seed=1), start(2, seed=2)
    rate = torch.tensor([0.1])
    for step in range(total):
        if step == late:
            batch = batch.join(start(1, seed=1))
        if step >= late:
            alone.adam(torch.cos(alone.vectors), rate, 0.9, 0.9)
        batch.adam(torch.cos(batch.vectors), rate.expand(batch.count), 0.9, 0.9)
    torch.testing.assert_close(batch.vectors[-1:], alone.vectors, rtol=1e-6, atol=1e-7)


def test_the_kept_iterate_is_the_one_that_scored() -> None:
    rows = start(2)
    scored = rows.vectors.clone()
    rows.note(torch.tensor([2, 0]), torch.zeros(2), rows.frontier)
    rows.adam(torch.ones_like(scored), torch.ones(2), 0.9, 0.9)
    rows.note(torch.tensor([1, 0]), torch.zeros(2), rows.frontier)
    assert rows.best.tolist() == [2, 0]
    torch.testing.assert_close(rows.best_vectors[0], scored[0], rtol=0, atol=0)
    assert not torch.equal(rows.vectors[0], scored[0])


def test_a_row_without_a_number_stops_and_leaves_the_others_alone() -> None:
    rows, clean = start(2), start(2)
    loss = torch.tensor([float("nan"), 1.0])
    rows.note(torch.tensor([3, 1]), loss, rows.frontier)
    grad = torch.ones_like(rows.vectors)
    rows.adam(grad, torch.ones(2), 0.9, 0.9)
    clean.adam(grad, torch.ones(2), 0.9, 0.9)
    assert rows.done(n=9, config=CramConfig()).tolist() == [True, False]
    assert rows.best.tolist() == [0, 1], "a prefix seen with a broken loss is not believed"
    assert bool(torch.isfinite(rows.vectors).all())
    torch.testing.assert_close(rows.vectors[1], clean.vectors[1])


def test_rows_end_when_solved_idle_or_out_of_steps() -> None:
    config = CramConfig(max_steps=100, patience=10)
    rows = start(4)
    rows.best = torch.tensor([5, 1, 1, 1])
    rows.steps = torch.tensor([50, 50, 100, 50])
    rows.grown_at = torch.tensor([50, 39, 99, 40])
    assert rows.done(n=5, config=config).tolist() == [True, True, True, False]
