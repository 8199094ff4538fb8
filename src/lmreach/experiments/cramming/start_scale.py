"""How long the first vectors should be: a short cramming run at each of a few lengths chooses.

The scale decides more than any other setting, and no one value serves all models. Where the first position
is an attention sink, vectors as long as real inputs are hardly read, and those a thousand times longer are;
other models do best at the length of real inputs. The step size needs no search of its own: it is in units of
the vectors' own length (docs/cramming.md). `find_start` is what everything that crams asks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.cram import check_settings
from lmreach.experiments.cramming.start_cache import recall, remember, start_key
from lmreach.experiments.cramming.start_probes import Probe, full_probe, quick_probe
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import stoppable
from lmreach.results.study import StartProbe

__all__ = ["StartScale", "choose_start_scale", "find_start"]

# Powers of ten. A full probe tries every second one, then the neighbours of the best; a quick one these.
_COARSE, _LONGEST = (0, 2, 4), 6
_QUICK = (0, 2, 4, 6)
_FULL_LENGTHS = len(_COARSE) + 2
# Frontiers grow while a row does, and steps with them.
_GROWTH = 1.5


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
    losses
        Of a quick probe: scale tried -> loss of each probing string after its steps, in nats a token.
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
    steps: int = 0
    seconds: float = 0.0
    why: str = ""
    losses: dict[float, tuple[float, ...]] = field(default_factory=dict)

    @property
    def strings(self) -> int:
        """Return the number of probing strings."""
        return len(next(iter(self.reaches.values()), ()))

    @property
    def is_quick(self) -> bool:
        """Whether losses after a few steps chose, not reaches."""
        return bool(self.losses)

    def written(self) -> StartProbe:
        """Return the record of a run, with every number."""
        return StartProbe(
            scale=self.scale,
            m=self.m,
            strings=self.strings,
            steps=self.steps,
            mean_reach={f"{scale:g}": float(np.mean(reach)) for scale, reach in self.reaches.items()},
            reaches={f"{scale:g}": reach for scale, reach in self.reaches.items()},
            losses={f"{scale:g}": loss for scale, loss in self.losses.items()},
            seconds=self.seconds,
            why=self.why,
        )

    @classmethod
    def of(cls, record: StartProbe) -> "StartScale":
        """Return what `written` wrote down."""
        assert record.m is not None, "it is kept from the first version on that keeps probes"
        assert record.seconds is not None
        reaches = {float(scale): reach for scale, reach in record.reaches.items()}
        losses = {float(scale): loss for scale, loss in record.losses.items()}
        return cls(record.scale, record.m, reaches, record.steps, record.seconds, record.why, losses)


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

    Parameters are those of `choose_start_scale`. A full probe is kept for everything that comes later, a
    quick one for what has no time for a full one either.
    """
    check_settings(config)
    full, quick = start_key(model, config, m), start_key(model, config, m, quick=True)
    for key in (full,) if seconds is None else (full, quick):
        kept = recall(key)
        if kept is not None:
            return StartScale.of(kept)
    found = choose_start_scale(model, config, m=m, search=search, seconds=seconds, stop=stop)
    if not found.why:
        remember(quick if found.is_quick else full, found.written())
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
        Most time for it: timed steps decide whether the probe is a full one or a quick one. None: full.
    stop
        Asked before every step; a yes ends the search with what is known. The time is also asked for within
        passes of the model.

    Returns
    -------
    StartScale
        The smallest length that is worse than the best by no more than one standard error of the differences
        string by string. Vectors near real inputs are bound by more limits than long ones, so longer ones
        have to reach further by more than chance. Where the time was too short, the best of the lengths that
        were tried, or 1, and ``why`` says so.

    Notes
    -----
    Full: 8 uniformly random strings, 40 steps with the decay of the step size within them, by reach. Quick:
    4 strings of 8 tokens, 10 steps, by loss. After so few steps hardly a token is reached whatever the
    length, while losses differ already (SmolLM2-135M: 14.1, 10.5, 7.8 and 5.0 nats a token at 1, 10^2, 10^4
    and 10^6). All scales see the same strings and the same directions.
    """
    check_settings(config)
    begun = time.monotonic()
    ends = None if seconds is None else begun + seconds

    def late() -> bool:
        return ends is not None and time.monotonic() > ends

    def over() -> bool:
        return stop() or late()

    def spent() -> float:
        return round(time.monotonic() - begun, 3)

    full, quick = (make(model, config, m, search) for make in (full_probe, quick_probe))
    with stoppable(late):
        chosen = _affordable(full, quick, ends, over)
        tried = None if chosen is None else _tried(chosen, over)
    if chosen is None or tried is None:
        why = "the run was stopped" if stop() else "the time was too short for even a small probe"
        return StartScale(1.0, m, {}, seconds=spent(), why=why)
    return StartScale(
        tried.shortest_good(),
        m,
        dict(sorted(tried.reaches.items())),
        losses=dict(sorted(tried.losses.items())) if chosen.by_loss else {},
        steps=chosen.steps,
        seconds=spent(),
        why=f"time was up before {tried.missed} of its lengths were tried" if tried.missed else "",
    )


def _affordable(full: Probe, quick: Probe, ends: float | None, over: Callable[[], bool]) -> Probe | None:
    """Return the probe that there is time for, by timed steps."""
    if ends is None:
        return None if over() else full

    def seconds(probe: Probe, lengths: int, step: float) -> float:
        return lengths * probe.steps * _GROWTH * step

    step = None if over() else quick.step_seconds(over)
    if step is None or seconds(quick, len(_QUICK), step) > ends - time.monotonic():
        return None
    # A step of the full probe takes no less than one of the quick: often that settles it, untimed.
    if seconds(full, _FULL_LENGTHS, step) > ends - time.monotonic():
        return quick
    step = full.step_seconds(over)
    fits = step is not None and seconds(full, _FULL_LENGTHS, step) <= ends - time.monotonic()
    return full if fits else quick


def _tried(probe: Probe, over: Callable[[], bool]) -> "_Tried":
    """Try the lengths of a probe."""
    tried = _Tried(probe, over)
    if probe.by_loss:
        tried.at(*_QUICK)
        return tried
    tried.at(*_COARSE)
    best = round(np.log10(tried.best()))
    tried.at(*(power for power in (best - 1, best + 1) if 0 <= power <= _LONGEST))
    return tried


class _Tried:
    """Lengths that a probe has tried, and how good each is, string by string."""

    def __init__(self, probe: Probe, over: Callable[[], bool]) -> None:
        self._probe, self._over = probe, over
        self.reaches: dict[float, tuple[int, ...]] = {}
        self.losses: dict[float, tuple[float, ...]] = {}
        self.missed = 0

    def at(self, *powers: int) -> None:
        """Try powers of ten."""
        for power in powers:
            seen = self._probe.attempt(10.0**power, self._over)
            self.missed += seen is None
            if seen is not None:
                self.reaches[10.0**power], self.losses[10.0**power] = seen

    def _good(self, scale: float) -> tuple[float, ...]:
        if self._probe.by_loss:
            return tuple(-loss for loss in self.losses[scale])
        return self.reaches[scale]

    def best(self) -> float:
        """Return the scale that is best on average, the smallest of equals; 1 if none is known."""
        return max(self.reaches, key=lambda scale: (sum(self._good(scale)), -scale), default=1.0)

    def shortest_good(self) -> float:
        """Return the smallest scale that may well be as good as the best."""
        for scale in sorted(self.reaches):
            short = np.subtract(self._good(self.best()), self._good(scale))
            if short.mean() <= short.std(ddof=1) / np.sqrt(short.size):
                return scale
        return 1.0
