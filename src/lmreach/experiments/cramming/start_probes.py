"""Short cramming runs from starts of one length: a full one tells by reach, a quick one by loss."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.cram import CramResult, StepReport, cram
from lmreach.experiments.targets.draw import draw
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped

__all__ = ["Probe", "full_probe", "quick_probe"]

_STRINGS, _STEPS = 8, 40
_FEW_STRINGS, _FEW_STEPS, _FEW_TOKENS = 4, 10, 8
# Blocks are short: the probe's few steps would not win a long one.
_FULL = {"protocol": "frontier", "restarts": 1, "lookahead": 8, "flips": 0}
_QUICK = {"protocol": "fixed", "restarts": 1, "flips": 0}
# Strings are drawn and started as no measured one is.
_SEED = 0x5CA1E
# Steps that are timed, after one that pays for memory and kernels.
_TIMED = 2
# The loss of a string that stops being a number: worse than any.
_NO_LOSS = 1e9


@dataclass(frozen=True)
class Probe:
    """What is run at each length.

    Attributes
    ----------
    strings, steps
        Probing strings and their optimiser steps.
    n
        Tokens of each at most.
    by_loss
        Whether losses tell lengths apart, or reaches.
    """

    model: LoadedModel
    config: OptimiserConfig
    m: int
    search: LoadedModel | None
    strings: int
    steps: int
    n: int
    by_loss: bool

    def step_seconds(self, over: Callable[[], bool]) -> float | None:
        """Time a few steps; None: there was no time for them."""
        ticks: list[float] = []
        self._cram(1.0, lambda _: ticks.append(time.monotonic()), lambda: over() or len(ticks) > _TIMED)
        return None if len(ticks) <= _TIMED else (ticks[-1] - ticks[0]) / _TIMED

    def attempt(
        self, scale: float, over: Callable[[], bool]
    ) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """Cram from starts of one length; reaches and last losses, None if time was up before all strings."""
        losses = [_NO_LOSS] * self.strings

        def note(report: StepReport) -> None:
            # Rows that are solved have left.
            losses[:] = [0.0] * self.strings
            losses[: report.rows] = [x if np.isfinite(x) else _NO_LOSS for x in report.losses.tolist()]

        reaches = self._cram(scale, note if self.by_loss else lambda _: None, over)
        return (
            (tuple(reaches), tuple(losses) if self.by_loss else ()) if len(reaches) == self.strings else None
        )

    def _cram(
        self, scale: float, on_step: Callable[[StepReport], None], stop: Callable[[], bool]
    ) -> list[int]:
        """Return the reaches of the strings that ended; none where a pass was stopped."""
        settings: dict[str, Any] = {"max_steps": self.steps, "patience": self.steps, "start_scale": scale}
        found: list[CramResult] = []
        with suppress(PassStopped):
            found = cram(
                self.model,
                draw(self.model, "random", _STRINGS, self.n, seed=_SEED).ids[: self.strings],
                self.m,
                self.config.model_copy(update=(_QUICK if self.by_loss else _FULL) | settings),
                generators=[np.random.default_rng([_SEED, i]) for i in range(self.strings)],
                batch_size=self.strings,
                search=self.search,
                on_step=on_step,
                stop=stop,
            )
        # Starts from which the loss stops being a number are no good ones, whatever came out before.
        return [0 if one.outcome == "non_finite" else one.reach for one in found]


def full_probe(model: LoadedModel, config: OptimiserConfig, m: int, search: LoadedModel | None) -> Probe:
    """Return the probe that tells by reach."""
    return Probe(model, config, m, search, _STRINGS, _STEPS, _room(model, m, 32 * m), by_loss=False)


def quick_probe(model: LoadedModel, config: OptimiserConfig, m: int, search: LoadedModel | None) -> Probe:
    """Return the probe that tells by loss, at a fiftieth of the cost."""
    n = _room(model, m, _FEW_TOKENS * m)
    return Probe(model, config, m, search, _FEW_STRINGS, _FEW_STEPS, n, by_loss=True)


def _room(model: LoadedModel, m: int, n: int) -> int:
    context = model.facts.context
    return n if context is None else min(n, max(1, context // 2 - m))
