"""Whether decoding with a cache gives what a full recompute gives; found out once, when a model is loaded."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.models.decode import Steps
from lmreach.models.loaded import LoadedModel
from lmreach.models.probe import tolerance

_PROMPT, _STEPS = 4, 12


def cache_agrees(loaded: LoadedModel) -> bool:
    """Feed the same ids with and without a cache and compare ids and logits at every step.

    The prompt is four real vectors, then 12 greedy steps. Two ids that are closer than the rounding of the
    dtype may swap without failing the check.
    """
    if loaded.wiring.body is None:
        return False
    rng = np.random.default_rng(0)
    ids = torch.as_tensor(rng.choice(loaded.usable_ids, size=(1, _PROMPT)))
    vectors = loaded.input_vectors(ids)
    plain = Steps(loaded, vectors, use_cache=False)
    try:
        cached = Steps(loaded, vectors, use_cache=True)
        for _ in range(_steps(loaded)):
            if not _agree(plain.logits[0], cached.logits[0], 2 * tolerance(loaded.model)):
                return False
            picked = plain.logits.argmax(dim=-1)
            plain.push(picked)
            cached.push(picked)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, KeyError):
        return False  # an unknown kind of cache, called as it does not want to be called: recompute instead
    return _agree(plain.logits[0], cached.logits[0], 2 * tolerance(loaded.model))


def _steps(loaded: LoadedModel) -> int:
    context = loaded.facts.context
    return _STEPS if context is None else max(0, min(_STEPS, context - _PROMPT))


def _agree(a: Float[Tensor, " rows"], b: Float[Tensor, " rows"], allowed: float) -> bool:
    difference, size = float((a - b).abs().max()), float(a.abs().max())
    if not difference <= allowed * max(size, 1e-30):
        return False
    lead = float(a.max() - a[b.argmax()])
    return lead <= 2 * difference
