"""What a study would measure, for how long, in how much memory."""

from typing import ClassVar

from lmreach.results.base import Result
from lmreach.results.shown import Shown

__all__ = ["PlanResults", "PlannedCondition"]


class PlannedCondition(Result):
    """One target kind at one number of vectors.

    Attributes
    ----------
    steps
        Optimiser steps per string.
    seconds
        Expected, of all its strings.
    """

    target: str
    m: int
    steps: int
    strings: int
    seconds: float


class PlanResults(Shown):
    """The plan of a study, from steps timed on this machine under its present load.

    Attributes
    ----------
    budget_s
        None: no limit; then ``conditions`` are all that was asked for.
    before_s
        From the beginning until the first step: loading, timing, and the length of the first vectors.
    conditions
        What comes first; under a budget more strings and steps follow in ``then_s``.
    elsewhere_s
        At most, for hidden states, decoder cells, census and report. None: as long as they take.
    waiting
        What was asked for and begins only if time is left.
    threads
        That steps are taken with.
    step_s
        Seconds of a step of the first condition.
    peak_bytes
        Most memory that the process holds, on the device that is named in ``device``.
    """

    _table: ClassVar[str] = "conditions"

    model: str
    device: str
    threads: int
    budget_s: float | None
    before_s: float
    conditions: tuple[PlannedCondition, ...]
    measuring_s: float
    then_s: float | None
    elsewhere_s: float | None
    waiting: tuple[str, ...]
    step_s: float
    peak_bytes: int
