"""The published protocol of Meyer et al. 2026, for comparison only: what their replication code does.

It differs from ours in what counts (the first id is given, not scored; success is an argmax under
teacher forcing, never a free decode), in where vectors start (a normal distribution as wide as the raw token
table, whatever the model makes of it) and in the step (AdamW, one absolute learning rate for every model).
What is kept of it: float32 instead of float16 autocast, which does nothing on a CPU. Rows are independent, so
several strings may share a batch: it changes nothing but the rounding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.scoring import score
from lmreach.models.decode import greedy
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped, stoppable

__all__ = ["PublishedOutcome", "PublishedSettings", "PublishedTrial", "cram_published"]

PublishedOutcome = Literal["solved", "gave_up", "spent", "non_finite", "stopped"]


@dataclass(frozen=True, slots=True)
class PublishedSettings:
    """Optimiser of the published runs."""

    lr: float = 0.01
    betas: tuple[float, float] = (0.9, 0.9)
    weight_decay: float = 0.01
    max_steps: int = 3000
    patience: int = 500


@dataclass(frozen=True, slots=True)
class PublishedTrial:
    """One string at one length.

    Attributes
    ----------
    solved
        Whether the n - 1 ids after the first were all argmaxes in some teacher-forced pass.
    best
        Most argmaxes right in one pass, of n - 1.
    steps
        Passes until solved or given up.
    decoded
        Whether greedy decoding from the vectors and the given first id emits the other n - 1, with gaps
        above 0: our check of the same claim. False where ``solved`` is.
    outcome
        ``solved``; ``gave_up``: no growth within the patience; ``spent``: all steps; ``non_finite``: the loss
        stopped being a number; ``stopped``: still running when asked to stop.
    """

    solved: bool
    best: int
    steps: int
    decoded: bool
    outcome: PublishedOutcome


def cram_published(
    model: LoadedModel,
    targets: Int[np.ndarray, "strings n"],
    m: int,
    settings: PublishedSettings = PublishedSettings(),
    *,
    generators: Sequence[np.random.Generator],
    on_result: Callable[[int, PublishedTrial], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[PublishedTrial]:
    """Run the published optimisation on each string, all of them in one batch.

    Parameters
    ----------
    targets
        Ids, n of at least 2.
    m
        Number of prompt vectors.
    generators
        One per string, for its start.
    on_result
        Called with place and trial of each string as it ends.
    stop
        Asked before every step and within its passes; strings still running then count as not solved, with
        outcome ``stopped``.

    Raises
    ------
    InputError
        Lengths below 2, or beyond the context.
    """
    strings, n = targets.shape
    context = model.facts.context
    if n < 2 or (context is not None and m + n > context):
        end = "" if context is None else f", and m + n up to {context}"
        raise InputError(problem(f"n of at least 2{end}", f"m = {m}, n = {n}", "choose other lengths"))
    run = _Batch(model, targets, m, settings, generators)
    found: dict[int, PublishedTrial] = {}
    while len(found) < strings and not stop():
        try:
            with stoppable(stop):
                run.step()
        except PassStopped:
            if not stop():  # somebody else's limit
                raise
            break
        still = set(run.open)
        for i in sorted(set(range(strings)) - still - set(found)):
            found[i] = run.result(i)
            if on_result is not None:
                on_result(i, found[i])
    return [found.get(i) or run.result(i) for i in range(strings)]


class _Batch:
    def __init__(
        self,
        model: LoadedModel,
        targets: Int[np.ndarray, "strings n"],
        m: int,
        settings: PublishedSettings,
        generators: Sequence[np.random.Generator],
    ) -> None:
        self.model, self.settings, self.m, self.targets = model, settings, m, targets
        self.ids = torch.from_numpy(targets).to(model.device)
        spread = _table_spread(model)
        starts = [g.standard_normal((m, model.facts.width), dtype=np.float32) for g in generators]
        self.vectors = [torch.from_numpy(spread * start).to(model.device) for start in starts]
        # One optimiser per string: a string that is done must not be moved by its momentum.
        for vectors in self.vectors:
            vectors.requires_grad_(True)
        self.optimisers = [
            torch.optim.AdamW(
                [vectors], lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
            )
            for vectors in self.vectors
        ]
        count = len(targets)
        self.best, self.best_at, self.steps = [0] * count, [0] * count, [0] * count
        self.solved = [False] * count
        self.finite = [True] * count

    @property
    def open(self) -> list[int]:
        """Return the strings that go on."""
        limits = self.settings
        return [
            i
            for i in range(len(self.targets))
            if not self.solved[i]
            and self.finite[i]
            and self.steps[i] < limits.max_steps
            and self.steps[i] - self.best_at[i] <= limits.patience
        ]

    def step(self) -> None:
        rows = self.open
        vectors = torch.stack([self.vectors[i] for i in rows])
        ids = self.ids[rows]
        inputs = torch.cat([vectors, self.model.input_vectors(ids[:, :-1])], dim=1)
        hidden = self.model.hidden(inputs)[:, self.m :]
        found = score(self.model, hidden, ids[:, 1:], torch.ones_like(ids[:, 1:], dtype=torch.bool))
        for i in rows:
            self.optimisers[i].zero_grad()
        hidden.backward(found.hidden_grad)
        for place, i in enumerate(rows):
            self.steps[i] += 1
            hits = int(found.hits[place])
            self.finite[i] = bool(torch.isfinite(found.loss[place]))
            if hits > self.best[i]:
                self.best[i], self.best_at[i] = hits, self.steps[i]
            self.solved[i] = hits == ids.shape[1] - 1
            if not self.solved[i] and self.finite[i]:
                self.optimisers[i].step()

    def result(self, i: int) -> PublishedTrial:
        decoded = False
        if self.solved[i]:
            first = self.model.input_vectors(self.ids[i, :1])
            prompt = torch.cat([self.vectors[i].detach(), first])
            out = greedy(self.model, prompt, len(self.targets[i]) - 1)
            decoded = bool((out.ids == self.targets[i, 1:]).all() and out.smallest_gap > 0)
        return PublishedTrial(self.solved[i], self.best[i], self.steps[i], decoded, self._outcome(i))

    def _outcome(self, i: int) -> PublishedOutcome:
        if self.solved[i]:
            return "solved"
        if not self.finite[i]:
            return "non_finite"
        if i in self.open:
            return "stopped"
        return "spent" if self.steps[i] >= self.settings.max_steps else "gave_up"


def _table_spread(model: LoadedModel) -> float:
    """Return the standard deviation of the raw token table, before any factor the model applies."""
    table: Tensor = model.wiring.embed.weight  # type: ignore[assignment]
    return float(table.detach().float().std())
