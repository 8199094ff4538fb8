"""Rows of a cramming batch: vectors with their own Adam moments, step counts and frontiers."""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.config import OptimiserConfig

_ADAM_EPS = 1e-12
_TINY = torch.finfo(torch.float32).tiny


@dataclass(slots=True)
class Rows:
    """State of r rows; every field has the row as its first axis.

    Attributes
    ----------
    index
        Which string a row works on.
    vectors, moment1, moment2
        Shape (r, m, d): the vectors and Adam's moments, float32.
    steps
        Steps taken by each row: bias correction and decay follow the row's own count.
    frontier
        Number of target ids in the row's loss.
    best, best_vectors, grown_at
        Longest prefix seen, the iterate that showed it, and the step at which it grew.
    finite
        Whether the loss and gradient have been numbers throughout.
    loss
        Nats a scored token before the last step, unsolved ones weighted; NaN before the first.
    """

    index: Int[Tensor, " r"]
    vectors: Float[Tensor, "r m d"]
    moment1: Float[Tensor, "r m d"]
    moment2: Float[Tensor, "r m d"]
    steps: Int[Tensor, " r"]
    frontier: Int[Tensor, " r"]
    best: Int[Tensor, " r"]
    best_vectors: Float[Tensor, "r m d"]
    grown_at: Int[Tensor, " r"]
    finite: Bool[Tensor, " r"]
    loss: Float[Tensor, " r"]

    @classmethod
    def start(cls, index: Int[Tensor, " r"], vectors: Float[Tensor, "r m d"], *, frontier: int) -> "Rows":
        """Return fresh rows at the given vectors."""
        zeros = torch.zeros_like(index)
        return cls(
            index=index,
            vectors=vectors,
            moment1=torch.zeros_like(vectors),
            moment2=torch.zeros_like(vectors),
            steps=zeros.clone(),
            frontier=torch.full_like(index, frontier),
            best=zeros.clone(),
            best_vectors=vectors.clone(),
            grown_at=zeros.clone(),
            finite=torch.ones_like(index, dtype=torch.bool),
            loss=torch.full_like(vectors[:, 0, 0], torch.nan),
        )

    @property
    def count(self) -> int:
        """Return r."""
        return int(self.index.shape[0])

    def select(self, keep: Bool[Tensor, " r"]) -> "Rows":
        """Return the rows under the mask."""
        return Rows(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    def join(self, other: "Rows") -> "Rows":
        """Return these rows followed by the other's."""
        pairs = {f.name: torch.cat([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)}
        return Rows(**pairs)

    def note(self, prefix: Int[Tensor, " r"], loss: Float[Tensor, " r"], frontier: Int[Tensor, " r"]) -> None:
        """Record what the current vectors (before the step) were seen to do."""
        self.loss = loss
        self.finite &= torch.isfinite(loss)
        grew = (prefix > self.best) & self.finite
        self.best = torch.where(grew, prefix, self.best)
        self.best_vectors[grew] = self.vectors[grew]
        self.grown_at = torch.where(grew, self.steps, self.grown_at)
        self.frontier = frontier

    def descend(
        self, grad: Float[Tensor, "r m d"], rate: Float[Tensor, " r"], beta1: float, beta2: float
    ) -> None:
        """Take one Nesterov-Adam step (Dozat 2016) along unit gradients, with each row's own step count.

        Only the direction of a row's gradient enters its moments: its size jumps as tokens are solved and
        lost, and a large one that is remembered would hold back the steps after it (docs/log/cramming.md).
        """
        self.finite &= torch.isfinite(grad).flatten(1).all(dim=1)
        grad = _unit(torch.where(self.finite[:, None, None], grad, torch.zeros_like(grad)))
        self.steps += 1
        self.moment1.lerp_(grad, 1 - beta1)
        self.moment2.lerp_(grad * grad, 1 - beta2)
        count = self.steps.float()[:, None, None]
        coming = beta1 * self.moment1 / (1 - beta1 ** (count + 1)) + (1 - beta1) * grad / (1 - beta1**count)
        second = self.moment2 / (1 - beta2**count)
        self.vectors = self.vectors - rate[:, None, None] * coming / (second.sqrt() + _ADAM_EPS)

    def done(self, n: int, config: OptimiserConfig, *, earliest: float = 0.0) -> Bool[Tensor, " r"]:
        """Return which rows are finished: all solved, out of steps or patience, or not finite.

        No row gives up before the step ``earliest``.
        """
        idle = (self.steps - self.grown_at > config.patience) & (self.steps >= earliest)
        return (self.best >= n) | (self.steps >= config.max_steps) | idle | ~self.finite


def _unit(grad: Float[Tensor, "r m d"]) -> Float[Tensor, "r m d"]:
    """Return each row's gradient with a root mean square coordinate of 1; zeros stay."""
    # By the largest coordinate first: squares of gradients at very long vectors would underflow.
    grad = grad / grad.abs().amax(dim=(1, 2), keepdim=True).clamp(min=_TINY)
    return grad / grad.square().mean(dim=(1, 2), keepdim=True).sqrt().clamp(min=_TINY)
