"""The limit beside copying: what counting allows, and what optimised vectors reach, on the same model."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from lmreach.config import CramPlan
from lmreach.experiments.cramming.cram import CramResult, cram
from lmreach.models.loaded import LoadedModel
from lmreach.results import Interval
from lmreach.results.base import Columns
from lmreach.results.copying import Crammed
from lmreach.runs.study.search import prepare
from lmreach.stats.accessibility import curve, half_length

__all__ = ["cram_entry", "cram_strings"]

_PER_VECTOR, _MOST = 64, 256  # length limits in tokens: per vector, and whatever m


def cram_strings(
    model: LoadedModel,
    symbols: Int[np.ndarray, " alphabet"],
    m: int,
    *,
    strings: int,
    steps: int,
    seed: int,
    stop: Callable[[], bool],
) -> Crammed | None:
    """Optimise m vectors for random strings of the copier's own symbols; None if stopped on the way.

    The strings are random over the alphabet that was copied, so that the two lengths are of the same kind.
    """
    context = model.facts.context
    room = _MOST if context is None else min(_MOST, context - m)
    limit = max(1, min(_PER_VECTOR * m, room))
    config = CramPlan(strings=strings, max_steps=steps, n_max=limit, seed=seed)
    search = prepare(model, config, m=m, stop=stop)
    drawn = [np.random.default_rng([seed, 12, i]).integers(symbols.size, size=limit) for i in range(strings)]
    found = cram(
        model,
        symbols[np.stack(drawn)],
        m,
        search.optimiser,
        generators=[np.random.default_rng([seed, 13, m, i]) for i in range(strings)],
        batch_size=strings,
        search=search.model,
        stop=stop,
    )
    if len(found) < strings:
        return None
    return cram_entry(m, limit, found, search.optimiser.start_scale)


def cram_entry(m: int, limit: int, found: list[CramResult], start_scale: float | None = None) -> Crammed:
    """Return reaches, n50 and curve of crammed strings; one whose loss stopped being a number is none."""
    sound = [one for one in found if one.outcome != "non_finite"]
    reach = np.asarray([one.reach for one in sound], dtype=np.int64)
    censored = np.asarray([one.censored for one in sound], dtype=bool)
    return Crammed(
        m=m,
        strings=len(sound),
        failed=len(found) - len(sound),
        limit=limit,
        reaches=tuple(reach.tolist()),
        censored=tuple(censored.tolist()),
        n50=Interval.from_object(half_length(reach, censored, limit=limit)),
        curve=Columns.from_object(curve(reach, censored)),
        steps=sum(one.steps for one in found),
        start_scale=start_scale,
    )
