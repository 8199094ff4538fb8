"""What all stages of the search for proofs share: the head, its coordinates, and what is known so far."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.experiments.reach.leads import Judge, Scores
from lmreach.experiments.reach.proof import UnreachableProof, unreachable_proof
from lmreach.experiments.reach.rows import BoundedRows, bounded_rows
from lmreach.experiments.reach.verdicts import Verdicts
from lmreach.experiments.reach.whitening import Lead, WhiteningFrame, frame_of
from lmreach.maths.cells import Region
from lmreach.maths.supports import Box, Ellipsoid

__all__ = ["BLOCK", "OnProgress", "Setting", "Tried", "setting_of"]

BLOCK = 256
"""Tokens whose scores are held at once."""

OnProgress = Callable[[str, int, int], None]
"""Told the stage, tokens done and tokens in it."""

Tried = tuple[Lead, Float[np.ndarray, " x"]]
"""A token's question and an x that answers it for the rivals met so far."""

_ROUNDS = 200  # of row generation, per token


@dataclass(frozen=True, eq=False)
class Setting:
    """One head on one region, with the verdicts on its rows.

    Attributes
    ----------
    head
        On a bounded region.
    frame
        Its whitened coordinates.
    scores
        The same rows as the model has them, where ``head`` is lifted.
    verdicts
        What is known so far.
    shrink
        Factor of states that keeps logits below half of a soft cap.
    bias_range
        Largest bias minus smallest.
    over
        Whether the run has to end.
    """

    head: BoundedRows
    frame: WhiteningFrame
    scores: Scores
    verdicts: Verdicts
    shrink: float
    bias_range: float
    over: Callable[[], bool]
    on_progress: OnProgress

    def states(self, x: Float[Tensor, "n x"], lead: Float[Tensor, " n"]) -> Float[Tensor, "n h"]:
        """Return hidden states of x, float64; where R^d was lifted, as far out as half of a lead allows."""
        if not self.head.lifted:
            return self.frame.states(x) * self.shrink
        return self._unlift(x, lead / (2 * self.bias_range))

    def _unlift(self, x: Float[Tensor, "n x"], least: Float[Tensor, " n"]) -> Float[Tensor, "n h"]:
        full = torch.zeros(len(x), self.head.rows.shape[1], dtype=torch.float64)
        full[:, self.frame.live] = x
        return full[:, :-1] / torch.maximum(full[:, -1], least.clamp_min(1e-300))[:, None]

    def direction_states(self, rows: Int[Tensor, " n"]) -> Float[Tensor, "n h"]:
        """Return the states at the whitened directions of some rows, float32."""
        x = self.frame.directions(rows)
        over_mean = (x * self.frame.centred(rows)).sum(dim=1)
        return self.states(x, 0.4 * over_mean).float()

    def solve(
        self, lead: Lead, frame: WhiteningFrame
    ) -> tuple[Float[np.ndarray, " x"] | None, Float[np.ndarray, " r"], float] | None:
        """Return what `Lead.solve` does; None once the token is given up."""
        lead.rounds += 1
        if lead.rounds > _ROUNDS:
            self.verdicts.give_up([lead.token], f"still open after {_ROUNDS} rounds")
            return None
        try:
            return lead.solve(frame)
        except RuntimeError:
            self.verdicts.give_up([lead.token], "the least-squares solver gave up")
            return None

    def certificate(
        self, lead: Lead, weights: Float[np.ndarray, " r"], mean: float, region: Box | Ellipsoid
    ) -> UnreachableProof | None:
        """Return the combination with what it proves; see `reach_proof.unreachable_proof`."""
        return unreachable_proof(self.head, self.scores.ids, lead, weights, mean=mean, region=region)

    def in_pools(
        self, stage: str, leads: list[Lead], advance: Callable[[list[Lead]], list[Lead]], unfinished: str
    ) -> None:
        """Advance a block of questions at a time until none is open.

        Parameters
        ----------
        advance
            Takes open questions one round further and returns those still open.
        unfinished
            Why what is still open when the run has to end is undetermined.
        """
        waiting, pool, total = deque(leads), list[Lead](), len(leads)
        while waiting or pool:
            while waiting and len(pool) < BLOCK:
                pool.append(waiting.popleft())
            if self.over():
                self.verdicts.give_up([one.token for one in [*pool, *waiting]], unfinished)
                break
            pool = advance(pool)
            self.on_progress(stage, total - len(pool) - len(waiting), total)


def setting_of(
    scores: Scores, region: Region, verdicts: Verdicts, over: Callable[[], bool], on_progress: OnProgress
) -> Setting:
    """Bound and whiten a head of at least two distinct rows."""
    bias = scores.bias
    head = bounded_rows(scores.rows, bias, region)
    frame = frame_of(head.rows, head.bias, head.region, head.ordinary)
    scores = replace(scores, ordinary=torch.from_numpy(head.ordinary).to(scores.rows.device))
    shrink = 1.0 if frame.projective else _shrink(scores.judge, head.size)
    bias_range = float(bias.max() - bias.min())
    return Setting(head, frame, scores, verdicts, shrink, bias_range, over, on_progress)


def _shrink(judge: Judge | None, size: float) -> float:
    """Return the factor of states: a saturated soft cap makes logits equal that differ before it."""
    if judge is None or judge.soft_cap is None:
        return 1.0
    return min(1.0, judge.soft_cap / (2 * size * judge.scale))
