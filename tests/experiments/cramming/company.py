"""What rows do in one another's company: the steps themselves, and what is claimed at their end.

How a product rounds depends on how many rows it has, and steps are large: in float32 two roundings of one row
are apart by their whole size after some 40 steps. So equality is asked of a model in float64 over a few
steps, where rounding stays far below anything that rows could do to each other.
"""

from collections import deque
from dataclasses import replace

import numpy as np
import torch

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming import cram as engine
from lmreach.models.decode import emitted_prefix
from lmreach.models.search_copy import twin

STEPS = 12


def walk(model, ids, index: list[int], *, m: int, config: OptimiserConfig) -> torch.Tensor:
    """Return the vectors of some strings after each of 12 steps in float64, shape (strings, steps, m, d)."""
    exact = twin(model, torch.float64)
    starts = [np.random.default_rng(i) for i in index]
    run = engine._Shared(exact, exact, ids[index], m, config, starts, None)
    rows = run.fill(None, deque(range(len(index))), len(index))
    seen = []
    for _ in range(STEPS):
        run.step(rows)
        seen.append(rows.vectors.clone())
    return torch.stack(seen, dim=1)


def outcomes(model, ids, index: list[int], *, m: int, config: OptimiserConfig, batch: int) -> list:
    """Cram some strings, each from its own seed, and check every claim by decoding it."""
    starts = [np.random.default_rng(i) for i in index]
    found = engine.cram(model, ids[index], m, config, generators=starts, batch_size=batch)
    for one, i in zip(found, index, strict=True):
        emission = emitted_prefix(model, torch.from_numpy(one.vectors), ids[i])
        assert (one.reach, one.smallest_gap) == (emission.reach, emission.smallest_gap)
        assert one.reach >= one.proposed, "what was proposed was seen in all logits"
    return found


def equal(first: list, second: list) -> bool:
    """Whether two lists of results are the same to the bit, whatever their places."""
    plain = ([replace(one, index=0, vectors=0, free=0) for one in some] for some in (first, second))
    pairs = zip(first, second, strict=True)
    return next(plain) == next(plain) and all(np.array_equal(a.vectors, b.vectors) for a, b in pairs)


def far_apart(first: list, second: list) -> bool:
    """Whether the reaches of the same strings differ by more than 4.5 standard errors of their mean."""
    gap = np.array([a.reach - b.reach for a, b in zip(first, second, strict=True)])
    return abs(gap.mean()) > 4.5 * gap.std(ddof=1) / np.sqrt(gap.size)
