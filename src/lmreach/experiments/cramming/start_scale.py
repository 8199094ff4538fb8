"""How long the first vectors should be: a short cramming run at each of a few lengths chooses.

The scale decides more than any other setting, and no one value serves all models. Where the first position
is an attention sink, vectors as long as real inputs are hardly read, and those a thousand times longer are;
other models do best at the length of real inputs. The step size needs no search of its own: it is in units of
the vectors' own length (docs/cramming.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.cram import check_settings, cram
from lmreach.experiments.targets.draw import draw
from lmreach.models.loaded import LoadedModel

# Powers of ten: first every second one, then the neighbours of the best.
_COARSE, _LONGEST = (0, 2, 4), 6
_STRINGS, _STEPS = 8, 40
# Blocks are short: the probe's few steps would not win a long one.
_PROBING = {
    "protocol": "frontier",
    "max_steps": _STEPS,
    "patience": _STEPS,
    "restarts": 1,
    "lookahead": 8,
}
# Strings are drawn and started as no measured one is.
_SEED = 0x5CA1E


@dataclass(frozen=True, slots=True)
class StartScale:
    """The chosen length and what it was chosen from.

    Attributes
    ----------
    scale
        Length of the first vectors, in units of the root mean square of real inputs.
    reaches
        Scale tried -> reach of each probing string, in tokens.
    """

    scale: float
    reaches: dict[float, tuple[int, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Return the record of a run."""
        return {
            "scale": self.scale,
            "strings": _STRINGS,
            "steps": _STEPS,
            "mean_reach": {f"{scale:g}": float(np.mean(reach)) for scale, reach in self.reaches.items()},
        }


def choose_start_scale(
    model: LoadedModel,
    config: OptimiserConfig,
    *,
    m: int = 1,
    search: LoadedModel | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> StartScale:
    """Cram a few random strings from starts of each length and take the shortest that is not clearly worse.

    Parameters
    ----------
    m
        Number of prompt vectors.
    search
        The copy to take steps on, as in `lmreach.experiments.cramming.cram.cram`.
    stop
        Asked before every step; a yes ends the search with what is known.

    Returns
    -------
    StartScale
        The smallest length whose reaches fall short of the furthest's by no more than one standard error of
        the differences string by string; 1, that of real inputs, where nothing was finished. Vectors near
        real inputs are bound by more limits than long ones, so length is not taken for nothing.

    Notes
    -----
    8 uniformly random strings, 40 steps with the decay of the step size within them; all scales see the same
    strings and the same directions.
    """
    check_settings(config)
    room = model.facts.context
    n = 32 * m if room is None else min(32 * m, max(1, room // 2 - m))
    ids = draw(model, "random", _STRINGS, n, seed=_SEED).ids
    reaches: dict[float, tuple[int, ...]] = {}

    def attempt(scale: float) -> None:
        found = cram(
            model,
            ids,
            m,
            config.model_copy(update={**_PROBING, "start_scale": scale}),
            generators=[np.random.default_rng([_SEED, i]) for i in range(_STRINGS)],
            batch_size=_STRINGS,
            search=search,
            stop=stop,
        )
        if len(found) == _STRINGS:
            reaches[scale] = tuple(one.reach for one in found)

    for power in _COARSE:
        attempt(10.0**power)
    best = round(np.log10(_furthest(reaches)))
    for power in (best - 1, best + 1):
        if 0 <= power <= _LONGEST:
            attempt(10.0**power)
    return StartScale(_shortest_good(reaches), dict(sorted(reaches.items())))


def _furthest(reaches: dict[float, tuple[int, ...]]) -> float:
    """Return the scale of the largest mean reach, the smallest of equals; 1 if none is known."""
    return max(reaches, key=lambda scale: (sum(reaches[scale]), -scale), default=1.0)


def _shortest_good(reaches: dict[float, tuple[int, ...]]) -> float:
    best = np.asarray(reaches.get(_furthest(reaches), ()))
    for scale in sorted(reaches):
        short = best - np.asarray(reaches[scale])
        if short.mean() <= short.std(ddof=1) / np.sqrt(short.size):
            return scale
    return 1.0
