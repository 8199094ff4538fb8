"""Whether decoding with a cache gives what a full recompute gives; found out once, when a model is loaded."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.models.checks import CALL_ERRORS, tolerance
from lmreach.models.decode import Steps
from lmreach.models.loaded import LoadedModel

_PROMPT = 4
_SHAPES = ((1, 12), (3, 4))  # rows, and steps they are decoded


def cache_agrees(loaded: LoadedModel) -> bool:
    """Decode greedily with the cache from real vectors, recompute the sequences, compare every step.

    One row, and three at once. The model is causal (checked before), so one pass over the final sequences
    without a cache gives the logits of all steps. Two ids closer than the rounding of the dtype may swap
    without failing the check.
    """
    if loaded.wiring.body is None:
        return False
    rng = np.random.default_rng(0)
    return all(_agrees(loaded, rng, rows, steps) for rows, steps in _SHAPES)


def _agrees(loaded: LoadedModel, rng: np.random.Generator, rows: int, steps: int) -> bool:
    ids = torch.as_tensor(rng.choice(loaded.usable_ids, size=(rows, _PROMPT)))
    try:
        cached, picked = _decode(loaded, loaded.input_vectors(ids), steps)
    except CALL_ERRORS:
        return False
    sequences = torch.cat([ids, picked], dim=1)
    with torch.no_grad():
        hidden = loaded.hidden(loaded.input_vectors(sequences))[:, _PROMPT - 1 :]
        plain = loaded.head_logits(hidden)
    allowed = 2 * tolerance(loaded.model)
    return all(_agree(a, b, allowed) for a, b in zip(plain.flatten(0, 1), cached.flatten(0, 1), strict=True))


def _decode(
    loaded: LoadedModel, vectors: Float[Tensor, "rows m d"], most: int
) -> tuple[Float[Tensor, "rows steps V"], Int[Tensor, "rows steps-1"]]:
    """Return the logits of each step and the ids picked from all but the last."""
    context = loaded.facts.context
    count = most if context is None else max(0, min(most, context - _PROMPT))
    steps = Steps(loaded, vectors, use_cache=True)
    logits, picked = [steps.logits], [torch.empty(len(vectors), 0, dtype=torch.int64)]
    for _ in range(count):
        picks = logits[-1].argmax(dim=-1)
        picked.append(picks.cpu()[:, None])
        steps.push(picks)
        logits.append(steps.logits)
    return torch.stack(logits, dim=1), torch.cat(picked, dim=1)


def _agree(a: Float[Tensor, " rows"], b: Float[Tensor, " rows"], allowed: float) -> bool:
    difference, size = float((a - b).abs().max()), float(a.abs().max())
    if not difference <= allowed * max(size, 1e-30):
        return False
    lead = float(a.max() - a[b.argmax()])
    return lead <= 2 * difference
