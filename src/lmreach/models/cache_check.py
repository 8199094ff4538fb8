"""Whether decoding with a cache gives what a full recompute gives; found out once, when a model is loaded."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.models.checks import CALL_ERRORS, tolerance
from lmreach.models.decode import Steps
from lmreach.models.loaded import LoadedModel

_PROMPT, _STEPS = 4, 12


def cache_agrees(loaded: LoadedModel) -> bool:
    """Decode greedily with the cache from real vectors, recompute the whole sequence, compare every step.

    The model is causal (checked before), so one pass over the final sequence without a cache gives the
    logits of all steps. Two ids closer than the rounding of the dtype may swap without failing the check.
    """
    if loaded.wiring.body is None:
        return False
    rng = np.random.default_rng(0)
    ids = torch.as_tensor(rng.choice(loaded.usable_ids, size=(1, _PROMPT)))
    try:
        cached, picked = _decode(loaded, loaded.input_vectors(ids))
    except CALL_ERRORS:
        return False
    sequence = torch.cat([ids, picked], dim=1)
    with torch.no_grad():
        hidden = loaded.hidden(loaded.input_vectors(sequence))[0, _PROMPT - 1 :]
        plain = loaded.head_logits(hidden)
    allowed = 2 * tolerance(loaded.model)
    return all(_agree(a, b, allowed) for a, b in zip(plain, cached, strict=True))


def _decode(loaded: LoadedModel, vectors: Float[Tensor, "1 m d"]) -> tuple[list[Tensor], Tensor]:
    """Return the logits of each step and the ids picked from all but the last."""
    context = loaded.facts.context
    count = _STEPS if context is None else max(0, min(_STEPS, context - _PROMPT))
    steps = Steps(loaded, vectors, use_cache=True)
    logits, picked = [steps.logits[0]], list[int]()
    for _ in range(count):
        picked.append(int(logits[-1].argmax()))
        steps.push(torch.tensor(picked[-1:]))
        logits.append(steps.logits[0])
    return logits, torch.tensor([picked], dtype=torch.int64)


def _agree(a: Float[Tensor, " rows"], b: Float[Tensor, " rows"], allowed: float) -> bool:
    difference, size = float((a - b).abs().max()), float(a.abs().max())
    if not difference <= allowed * max(size, 1e-30):
        return False
    lead = float(a.max() - a[b.argmax()])
    return lead <= 2 * difference
