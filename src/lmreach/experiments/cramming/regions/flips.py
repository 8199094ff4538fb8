"""Local search on a grid: single coordinates are moved to other values where the gradient promises most.

The gradient at a grid point ranks all moves of single coordinates at the cost of one step; a few sets of
moves that are drawn by that rank are then tried exactly, in one batch, and the best is taken if it is better
(greedy coordinate search, as Zou et al. 2023 use it for tokens, arXiv 2307.15043).

Letters of shapes: c candidates, m prompt vectors, k free coordinates of each, f target ids in the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.experiments.cramming.scoring import leading
from lmreach.models.decode import lead, leads
from lmreach.models.frame import NO_FRAME, PromptFrame, framed
from lmreach.models.loaded import LoadedModel

__all__ = ["improve"]

_CANDIDATES = 16
_SIZES = (1, 2, 4, 8)  # coordinates moved at once
# Of the gumbel noise on ranks, in standard deviations of the promised gains.
_NOISE = 0.5
_UNSOLVED = 4.0  # weight in the loss of a position not emitted, beside 1


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a pass showed of c candidates: the loss and the leading ids that come out."""

    loss: Float[Tensor, " c"]
    prefix: Int[Tensor, " c"]


def improve(
    model: LoadedModel,
    held: Grid,
    free: Float[Tensor, "m k"],
    target: Int[np.ndarray, " n"],
    *,
    reach: int,
    rounds: int,
    generator: np.random.Generator,
    frame: PromptFrame = NO_FRAME,
    stop: Callable[[], bool] = lambda: False,
) -> Float[Tensor, "m k"]:
    """Return a member that emits at least as long a prefix in a teacher-forced pass.

    Parameters
    ----------
    free
        Free coordinates of a member that emits ``reach`` ids of ``target``.
    rounds
        Gradients taken; each is followed by one batch of candidates.
    generator
        The source of the candidates.
    stop
        Asked before every round.

    Notes
    -----
    The loss covers the ids that come out and the next one. Only evenly spaced formats with one scale for the
    run have moves of one size; others are returned as they came.
    """
    if not held.evenly_spaced or held.run_scale is None:
        return free
    current, best, longest = free, free, reach
    ids = torch.from_numpy(target).to(model.device)
    for _ in range(rounds):
        if longest >= len(target) or stop():
            break
        ahead = ids[: longest + 1]
        seen, grad = _gradient(model, held, current, ahead, frame)
        candidates = _candidates(held, current, grad, generator)
        tried = _look(model, held, candidates, ahead, frame)
        place = int(tried.loss.argmin())
        if int(tried.prefix.max()) > longest:
            place = int(tried.prefix.argmax())
            longest, best, current = int(tried.prefix[place]), candidates[place], candidates[place]
        elif float(tried.loss[place]) < float(seen.loss[0]):
            current = candidates[place]
    return best


def _gradient(
    model: LoadedModel,
    held: Grid,
    free: Float[Tensor, "m k"],
    ids: Int[Tensor, " f"],
    frame: PromptFrame,
) -> tuple[_Seen, Float[Tensor, "m k"]]:
    leaf = free[None].detach().requires_grad_(True)
    with torch.enable_grad():
        seen = _pass(model, held, leaf, ids, frame)
    (grad,) = torch.autograd.grad(seen.loss.sum(), leaf)
    return seen, grad[0]


@torch.no_grad()
def _look(
    model: LoadedModel,
    held: Grid,
    free: Float[Tensor, "c m k"],
    ids: Int[Tensor, " f"],
    frame: PromptFrame,
) -> _Seen:
    return _pass(model, held, free, ids, frame)


def _pass(
    model: LoadedModel,
    held: Grid,
    free: Float[Tensor, "c m k"],
    ids: Int[Tensor, " f"],
    frame: PromptFrame,
) -> _Seen:
    rows, count = len(free), len(ids)
    after = model.input_vectors(ids[: count - 1]).expand(rows, -1, -1)
    inputs = torch.cat([framed(model, held.point(free), frame), after], dim=1)
    logits = model.head_logits(model.hidden(inputs)[:, -count:]).flatten(0, 1)
    wanted = ids.repeat(rows)
    hit = leads(lead(logits.detach(), wanted)).reshape(rows, count)
    entropy = nn.functional.cross_entropy(logits, wanted, reduction="none").reshape(rows, count)
    weight = torch.where(hit, 1.0, _UNSOLVED)
    return _Seen((entropy * weight).sum(dim=1), leading(hit))


def _candidates(
    held: Grid, free: Float[Tensor, "m k"], grad: Float[Tensor, "m k"], generator: np.random.Generator
) -> Float[Tensor, "c m k"]:
    """Return members that differ from ``free`` in a few coordinates, those of large promised gain rather."""
    places, top = held.places(free), held.levels.count - 1
    scales = held.scales_of(free)
    found = []
    for number in range(_CANDIDATES):
        stride = 2 ** int(generator.integers(0, max(1, held.levels.bits - 1)))
        # Against the gradient; at an end the only way is back.
        moved = torch.where(grad > 0, places - stride, places + stride)
        moved = torch.where((moved < 0) | (moved > top), 2 * places - moved, moved).clamp(0, top)
        there = held.at(moved, scales)
        gain = (-(there - free) * grad).flatten()
        gain = gain / gain.std().clamp(min=torch.finfo(gain.dtype).tiny)
        noise = torch.from_numpy(generator.gumbel(size=gain.numel())).to(gain)
        chosen = (gain + _NOISE * noise).topk(min(_SIZES[number % len(_SIZES)], gain.numel())).indices
        candidate = free.flatten().clone()
        candidate[chosen] = there.flatten()[chosen]
        found.append(candidate.view_as(free))
    return torch.stack(found)
