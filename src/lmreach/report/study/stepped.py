"""After how many steps numbers stand, and whether they had levelled off: the same words in every place."""

from collections.abc import Sequence

from lmreach.report.kit.format import number, prose
from lmreach.results.study import Accessibility

__all__ = ["level", "of_own", "steps_each", "steps_told", "steps_with_level"]

_LEVELS = {
    "still growing": "still growing",
    "not tested": "more steps not tried",
    "converged": "levelled off",
}
"""Verdicts in short, the one that casts most doubt first."""


def steps_each(record: Accessibility) -> int | None:
    """Return the optimiser steps of a string, on average; None where none was finished."""
    trials = record.trials or record.finished
    return round(record.steps / trials) if trials else None


def steps_told(entries: Sequence[Accessibility]) -> str:
    """Say how many steps a string had, or from how many to how many; empty where that is not known."""
    ends = [end for entry in entries for end in _steps(entry)]
    if not ends:
        return ""
    least, most = min(ends), max(ends)
    return f"{number(most)} steps" if least == most else f"{number(least)} to {number(most)} steps"


def _steps(entry: Accessibility) -> list[int]:
    """Return the steps that strings were to take; where some were cut, also the least that one took."""
    if entry.max_steps is not None:
        cut_at = [entry.steps_taken[0]] if entry.cut and entry.steps_taken else []
        return [*cut_at, entry.max_steps]
    mean = steps_each(entry)
    return [] if mean is None else [mean]


def level(entries: Sequence[Accessibility]) -> str:
    """Say whether n50 had levelled off everywhere; empty where no entry tells."""
    verdicts = {entry.levelling for entry in entries}
    return next((said for verdict, said in _LEVELS.items() if verdict in verdicts), "")


def steps_with_level(entries: Sequence[Accessibility]) -> str:
    """Say both: ``300 steps each, still growing``; empty where the steps are not known."""
    steps = steps_told(entries)
    return ", ".join(filter(None, (f"{steps} each", level(entries)))) if steps else ""


def of_own(entry: Accessibility) -> str:
    """Say how n50 grew within the run: at about half of its steps, and at the end; empty if not known."""
    found = entry.by_steps
    if found is None or not found.steps:
        return ""
    known = [(at, n50) for at, n50 in zip(found.steps, found.n50, strict=True) if n50 is not None]
    if not known or known[-1][0] != found.steps[-1]:
        return ""
    last, end = known[-1]
    half = min(known, key=lambda one: abs(one[0] - last / 2))
    if half[0] == last:
        return f"n50 {prose(end)} after {number(last)} steps"
    return f"n50 {prose(half[1])} after {number(half[0])} steps, {prose(end)} after {number(last)}"
