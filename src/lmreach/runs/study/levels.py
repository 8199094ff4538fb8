"""n50 against the optimiser's steps: from one run's own growth, and from runs of fewer steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lmreach.results import Interval
from lmreach.results.records import Trial
from lmreach.results.study import BySteps, Level
from lmreach.runs.study.ledger import reach_arrays
from lmreach.stats.accessibility import HalfLength, half_length
from lmreach.stats.levelling import levelling

__all__ = ["half_of", "steps_fields"]

_READINGS = 12


def half_of(kept: Sequence[Trial]) -> HalfLength:
    """Return n50 of the counted trials of a condition whose reaches were measured."""
    return half_length(*reach_arrays(kept), limit=kept[0].limit)


def steps_fields(kept: Sequence[Trial], levels: Sequence[Sequence[Trial]]) -> dict[str, Any]:
    """Return what an entry says of the steps behind its numbers; see `lmreach.results.study.Accessibility`.

    Parameters
    ----------
    kept
        Counted trials of a condition.
    levels
        Counted trials of the same kind and m at every number of steps, ``kept`` among them.
    """
    by_steps = {steps: own for own in levels if own and (steps := own[0].max_steps) is not None}
    asked = kept[0].max_steps
    taken = [trial.steps for trial in kept]
    fewer = by_steps.get(asked // 2) if asked else None
    verdict = levelling(None, half_of(kept))
    if fewer is not None:
        # Strings that only one of both has would make a difference of their own.
        both = min(len(fewer), len(kept))
        verdict = levelling(half_of(fewer[:both]), half_of(kept[:both]))
    return {
        "max_steps": asked,
        "steps_taken": (min(taken), max(taken)),
        "cut": sum(trial.outcome == "cut" for trial in kept),
        "by_steps": _by_steps(kept),
        "levels": tuple(
            Level(steps=steps, strings=len(own), n50=Interval.from_object(half_of(own)))
            for steps, own in sorted(by_steps.items())
        ),
        "levelling": verdict,
    }


def _by_steps(kept: Sequence[Trial]) -> BySteps | None:
    """Return n50 at rising steps from the growth of each prefix; None without a record of it."""
    if any(trial.growth is None for trial in kept):
        return None
    most = max(trial.steps for trial in kept)
    at = sorted({max(round(s), 1) for s in np.geomspace(min(4, most), most, _READINGS).tolist()})
    found = [half_of([_after(trial, steps) for trial in kept]) for steps in at]
    return BySteps(
        steps=tuple(at),
        n50=tuple(one.value for one in found),
        low=tuple(one.low for one in found),
        high=tuple(one.high for one in found),
    )


def _after(trial: Trial, steps: int) -> Trial:
    """Return a trial as it stood after so many steps."""
    reach = max((tokens for grown, tokens in trial.growth or () if grown <= steps), default=0)
    outcome = "hit_limit" if reach >= trial.limit else "cut"
    return trial.model_copy(update={"reach": reach, "outcome": outcome})
