"""How long the first vectors should be: a short cramming run at each of a few lengths chooses.

The scale decides more than any other setting, and no one value serves all models. Where the first position
is an attention sink, vectors as long as real inputs are hardly read, and those a thousand times longer are;
other models do best at the length of real inputs. The step size needs no search of its own: it is in units of
the vectors' own length (docs/cramming.md). `find_start` is what everything that crams asks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.cram import check_settings, cram
from lmreach.experiments.cramming.start_cache import recall, remember, start_key
from lmreach.experiments.targets.draw import draw
from lmreach.models.loaded import LoadedModel

__all__ = ["StartScale", "choose_start_scale", "find_start"]

# Powers of ten: first every second one, then the neighbours of the best.
_COARSE, _LONGEST = (0, 2, 4), 6
_LENGTHS = len(_COARSE) + 2
_STRINGS, _STEPS = 8, 40
# In less time a probe has fewer steps, then fewer strings; with fewer than these it would not tell.
_FEWEST_STRINGS, _FEWEST_STEPS = 4, 10
# Frontiers grow while a row does, and steps with them.
_GROWTH, _TIMED = 1.5, 2
# Blocks are short: the probe's few steps would not win a long one.
_PROBING = {"protocol": "frontier", "restarts": 1, "lookahead": 8, "flips": 0}
# Strings are drawn and started as no measured one is.
_SEED = 0x5CA1E


@dataclass(frozen=True, slots=True)
class StartScale:
    """The chosen length and what it was chosen from.

    Attributes
    ----------
    scale
        Length of the first vectors, in units of the root mean square of real inputs.
    m
        Prompt vectors of the probe.
    reaches
        Scale tried -> reach of each probing string, in tokens.
    steps
        Optimiser steps of each string.
    seconds
        Spent, when it was found.
    why
        Why the choice is not founded, in words; empty where it is.
    """

    scale: float
    m: int
    reaches: dict[float, tuple[int, ...]]
    steps: int = _STEPS
    seconds: float = 0.0
    why: str = ""

    @property
    def strings(self) -> int:
        """Return the number of probing strings."""
        return len(next(iter(self.reaches.values()), ()))

    def as_dict(self) -> dict[str, Any]:
        """Return the record of a run, with every number."""
        return {
            "scale": self.scale,
            "m": self.m,
            "strings": self.strings,
            "steps": self.steps,
            "mean_reach": {f"{scale:g}": float(np.mean(reach)) for scale, reach in self.reaches.items()},
            "reaches": {f"{scale:g}": list(reach) for scale, reach in self.reaches.items()},
            "seconds": self.seconds,
            "why": self.why,
        }

    @classmethod
    def of(cls, record: dict[str, Any]) -> "StartScale":
        """Return what `as_dict` wrote down."""
        reaches = {float(scale): tuple(reach) for scale, reach in record["reaches"].items()}
        named = {name: record[name] for name in ("scale", "m", "steps", "seconds", "why")}
        return cls(reaches=reaches, **named)


def find_start(
    model: LoadedModel,
    config: OptimiserConfig,
    *,
    m: int,
    search: LoadedModel | None = None,
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> StartScale:
    """Return the length of the first vectors for a model and m: as found before, else by a probe, kept.

    Parameters are those of `choose_start_scale`. Only a probe of full size is kept on disk.
    """
    check_settings(config)
    key = start_key(model, config, m)
    kept = recall(key)
    if kept is not None:
        return StartScale.of(kept)
    found = choose_start_scale(model, config, m=m, search=search, seconds=seconds, stop=stop)
    if not found.why and (found.strings, found.steps) == (_STRINGS, _STEPS):
        remember(key, found.as_dict())
    return found


def choose_start_scale(
    model: LoadedModel,
    config: OptimiserConfig,
    *,
    m: int = 1,
    search: LoadedModel | None = None,
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> StartScale:
    """Cram a few random strings from starts of each length and take the shortest that is not clearly worse.

    Parameters
    ----------
    m
        Number of prompt vectors.
    search
        The copy to take steps on, as in `lmreach.experiments.cramming.cram.cram`.
    seconds
        Most time for it: timed steps then decide how many steps and strings there are. None: all of them.
    stop
        Asked before every step; a yes ends the search with what is known.

    Returns
    -------
    StartScale
        The smallest length whose reaches fall short of the furthest's by no more than one standard error of
        the differences string by string. Vectors near real inputs are bound by more limits than long ones, so
        length is not taken for nothing. Where the time was too short, the best of the lengths that were
        tried, or 1, and ``why`` says so.

    Notes
    -----
    8 uniformly random strings, 40 steps with the decay of the step size within them; in less time fewer
    steps, down to 10, then 4 strings. All scales see the same strings and the same directions.
    """
    check_settings(config)
    begun = time.monotonic()
    probe = _Probe(model, config, m, search, None if seconds is None else begun + seconds, stop)
    strings, steps = probe.size()
    if steps == 0:
        why = "the run was stopped" if stop() else "the time was too short for even a small probe"
        return StartScale(1.0, m, {}, 0, round(time.monotonic() - begun, 3), why)
    reaches: dict[float, tuple[int, ...]] = {}
    missed = 0
    for power in _COARSE:
        missed += not probe.attempt(10.0**power, strings, steps, reaches)
    best = round(np.log10(_furthest(reaches)))
    for power in (best - 1, best + 1):
        if 0 <= power <= _LONGEST:
            missed += not probe.attempt(10.0**power, strings, steps, reaches)
    why = f"time was up before {missed} of its lengths were tried" if missed else ""
    spent = round(time.monotonic() - begun, 3)
    return StartScale(_shortest_good(reaches), m, dict(sorted(reaches.items())), steps, spent, why)


@dataclass(frozen=True)
class _Probe:
    """One probe: strings of its own, crammed from starts of one length after the other."""

    model: LoadedModel
    config: OptimiserConfig
    m: int
    search: LoadedModel | None
    ends: float | None
    stop: Callable[[], bool]

    def over(self) -> bool:
        return self.stop() or (self.ends is not None and time.monotonic() > self.ends)

    def size(self) -> tuple[int, int]:
        """Return how many strings and steps there is time for; no steps where it would not tell."""
        if self.over():
            return 0, 0
        if self.ends is None:
            return _STRINGS, _STEPS
        ticks: list[float] = []
        self._cram(1.0, _STRINGS, _STEPS, on_step=lambda: ticks.append(time.monotonic()), most=1 + _TIMED)
        if len(ticks) < 1 + _TIMED:
            return 0, 0
        step = _GROWTH * (ticks[-1] - ticks[0]) / _TIMED
        steps = int((self.ends - time.monotonic()) / (_LENGTHS * max(step, 1e-9)))
        if steps >= _FEWEST_STEPS:
            return _STRINGS, min(steps, _STEPS)
        # Half of the strings take about half of the time.
        half = steps * _STRINGS // _FEWEST_STRINGS
        return (_FEWEST_STRINGS, half) if half >= _FEWEST_STEPS else (0, 0)

    def attempt(self, scale: float, strings: int, steps: int, reaches: dict[float, tuple[int, ...]]) -> bool:
        """Cram from starts of one length; whether there was time for all strings."""
        found = self._cram(scale, strings, steps)
        if len(found) == strings:
            reaches[scale] = tuple(found)
        return len(found) == strings

    def _cram(
        self,
        scale: float,
        strings: int,
        steps: int,
        *,
        on_step: Callable[[], None] = lambda: None,
        most: int | None = None,
    ) -> list[int]:
        """Return the reaches of the strings that ended; ``most``: stop after so many steps."""
        room = self.model.facts.context
        n = 32 * self.m if room is None else min(32 * self.m, max(1, room // 2 - self.m))
        taken = [0]

        def count() -> None:
            taken[0] += 1
            on_step()

        found = cram(
            self.model,
            draw(self.model, "random", _STRINGS, n, seed=_SEED).ids[:strings],
            self.m,
            self.config.model_copy(
                update={**_PROBING, "max_steps": steps, "patience": steps, "start_scale": scale}
            ),
            generators=[np.random.default_rng([_SEED, i]) for i in range(strings)],
            batch_size=strings,
            search=self.search,
            on_step=lambda _report: count(),
            stop=lambda: self.over() or (most is not None and taken[0] >= most),
        )
        # Starts from which the loss stops being a number are no good ones, whatever came out before.
        return [0 if one.outcome == "non_finite" else one.reach for one in found]


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
