"""Per-row steps and bookkeeping against a slow reference and against rows that are alone."""

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.rows import Rows


def start(rows: int, m: int = 2, d: int = 3, seed: int = 0) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    return Rows.start(torch.arange(rows), torch.randn(rows, m, d, generator=generator), frontier=3)


def reference(vectors: np.ndarray, grads: list[np.ndarray], rate: float, beta1: float, beta2: float) -> Any:
    """Nesterov-Adam of one row in double precision, written out as weighted sums of all gradients so far."""
    unit = [g / np.sqrt(np.mean(g**2)) if np.any(g) else g for g in grads]
    for t in range(1, len(unit) + 1):
        first = sum((1 - beta1) * beta1 ** (t - 1 - i) * unit[i] for i in range(t))
        second = sum((1 - beta2) * beta2 ** (t - 1 - i) * unit[i] ** 2 for i in range(t)) / (1 - beta2**t)
        ahead = beta1 * first / (1 - beta1 ** (t + 1)) + (1 - beta1) * unit[t - 1] / (1 - beta1**t)
        vectors = vectors - rate * ahead / (np.sqrt(second) + 1e-12)
    return vectors


@given(seed=st.integers(0, 2**16), steps=st.integers(1, 12), size=st.sampled_from([1e-25, 1e-6, 1.0, 1e6]))
@settings(deadline=None, max_examples=30)
def test_a_step_is_nesterov_adam_along_unit_gradients(seed: int, steps: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    rows = start(1)
    first = rows.vectors[0].double().numpy()
    # sizes that jump a thousandfold from one step to the next
    grads = [size * 10 ** rng.uniform(-2, 1) * rng.normal(size=(2, 3)) for _ in range(steps)]
    for grad in grads:
        rows.descend(torch.from_numpy(grad).float()[None], torch.tensor([0.1]), 0.9, 0.95)
    expected = reference(first, grads, 0.1, 0.9, 0.95)
    np.testing.assert_allclose(rows.vectors[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_gradient_of_zero_is_no_step() -> None:
    rows = start(2)
    before = rows.vectors.clone()
    rows.descend(torch.zeros_like(before), torch.ones(2), 0.9, 0.9)
    torch.testing.assert_close(rows.vectors, before, rtol=0, atol=0)


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
            alone.descend(torch.cos(alone.vectors), rate, 0.9, 0.9)
        batch.descend(torch.cos(batch.vectors), rate.expand(batch.count), 0.9, 0.9)
    torch.testing.assert_close(batch.vectors[-1:], alone.vectors, rtol=1e-6, atol=1e-7)


def test_the_kept_iterate_is_the_one_that_scored() -> None:
    rows = start(2)
    scored = rows.vectors.clone()
    rows.note(torch.tensor([2, 0]), torch.zeros(2), rows.frontier)
    rows.descend(torch.ones_like(scored), torch.ones(2), 0.9, 0.9)
    rows.note(torch.tensor([1, 0]), torch.zeros(2), rows.frontier)
    assert rows.best.tolist() == [2, 0]
    torch.testing.assert_close(rows.best_vectors[0], scored[0], rtol=0, atol=0)
    assert not torch.equal(rows.vectors[0], scored[0])


def test_a_row_without_a_number_stops_and_leaves_the_others_alone() -> None:
    rows, clean = start(2), start(2)
    loss = torch.tensor([float("nan"), 1.0])
    rows.note(torch.tensor([3, 1]), loss, rows.frontier)
    grad = torch.ones_like(rows.vectors)
    rows.descend(grad, torch.ones(2), 0.9, 0.9)
    clean.descend(grad, torch.ones(2), 0.9, 0.9)
    assert rows.done(n=9, config=OptimiserConfig()).tolist() == [True, False]
    assert rows.best.tolist() == [0, 1], "a prefix seen with a broken loss is not believed"
    assert bool(torch.isfinite(rows.vectors).all())
    torch.testing.assert_close(rows.vectors[1], clean.vectors[1])


def test_rows_end_when_solved_idle_or_out_of_steps() -> None:
    config = OptimiserConfig(max_steps=100, patience=10)
    rows = start(4)
    rows.best = torch.tensor([5, 1, 1, 1])
    rows.steps = torch.tensor([50, 50, 100, 50])
    rows.grown_at = torch.tensor([50, 39, 99, 40])
    assert rows.done(n=5, config=config).tolist() == [True, True, True, False]
    assert rows.done(n=5, config=config, earliest=60).tolist() == [True, False, True, False]
