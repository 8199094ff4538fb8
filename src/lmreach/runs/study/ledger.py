"""Trials as the ledger keeps them, and which of them count."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
from jaxtyping import Bool, Int

from lmreach.results.records import Trial
from lmreach.runs.study.reach_schedule import FOR_AN_INTERVAL

__all__ = ["counted", "is_failed", "not_counted", "reach_arrays", "whole_rounds"]


def is_failed(trial: Trial) -> bool:
    """Say whether a trial broke: its loss stopped being a number, which says nothing about the string."""
    return trial.outcome == "non_finite"


def counted(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of one condition that count: those of whole rounds that did not fail."""
    return [trial for trial in whole_rounds(trials) if not is_failed(trial)]


def whole_rounds(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of one condition up to the first string missing: 0, 1, 2, ...

    Of an interrupted batch the early finishers are the ones that gave up early, so counting whoever
    happened to finish would bias the curve; a run of whole indices does not. Trials at single lengths count
    by whole chunks. Strings that were all cut at the same step count, too, as a lower bound at fewer steps,
    unless those before them are enough for an interval at all steps.
    """
    if trials and trials[0].chunk is not None:
        return _whole_chunks(trials)
    # A string that was cut and then run again counts once, with more steps.
    cut = sorted((trial for trial in trials if trial.outcome == "cut"), key=lambda trial: trial.steps)
    by_index = {trial.index: trial for trial in cut}
    by_index |= {trial.index: trial for trial in trials if trial.outcome != "cut"}
    kept: list[Trial] = []
    while len(kept) in by_index:
        kept.append(by_index[len(kept)])
    whole = list(takewhile(lambda trial: trial.outcome != "cut", kept))
    return whole if len(whole) >= FOR_AN_INTERVAL else kept


def not_counted(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials outside `whole_rounds`, but for those that were run again as a whole."""
    kept, known = {trial.key for trial in whole_rounds(trials)}, {trial.key for trial in trials}
    return [t for t in trials if t.key not in kept and t.cut_of not in known]


def _whole_chunks(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of chunks that are all there, by length and string."""
    chunks: dict[tuple[int, int, int], list[Trial]] = defaultdict(list)
    for trial in trials:
        assert trial.chunk is not None, "all trials of a condition are of one protocol"
        chunks[(trial.limit, *trial.chunk)].append(trial)
    whole = [own for (_, first, last), own in chunks.items() if len(own) == last - first]
    return sorted((trial for own in whole for trial in own), key=lambda t: (t.limit, t.index))


def reach_arrays(
    trials: Sequence[Trial],
) -> tuple[Int[np.ndarray, " strings"], Bool[np.ndarray, " strings"]]:
    """Return reaches and censoring flags of some trials, in their order."""
    reach = np.asarray([t.reach for t in trials], dtype=np.int64)
    return reach, np.asarray([t.outcome == "hit_limit" for t in trials], dtype=bool)
