"""Rounds of strings under a clock: which schedule a run has, and serving it until time or strings run out."""

from collections.abc import Callable

from lmreach.config import StudyConfig
from lmreach.engine.clock import Clock
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress
from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.length_schedule import LengthSchedule
from lmreach.runs.study.placing import Placing, chosen, given, published_grid
from lmreach.runs.study.probe import seconds_per_string
from lmreach.runs.study.reach_schedule import ReachSchedule
from lmreach.runs.study.schedule import AbstractSchedule
from lmreach.runs.study.search import Search
from lmreach.runs.study.trials import Finished

__all__ = ["choose_rounds", "serve"]

_ROUND_SIZES = (8, 6, 4)
_ROUND_WITHOUT_BUDGET = 32


def choose_rounds(
    model: LoadedModel,
    config: StudyConfig,
    search: Search,
    limit: Callable[[int], int],
    *,
    remaining: float | None,
    say: Callable[[str], None],
) -> AbstractSchedule:
    """Choose the strings per round: as many as let every condition have two rounds within the budget.

    Parameters
    ----------
    limit
        Longest length at an m.
    remaining
        Seconds left of the budget; None: no limit.
    say
        Told before a step is timed.
    """
    asked = config.cram
    if asked.protocol != "frontier":
        return _lengths(config, limit)
    size = _ROUND_WITHOUT_BUDGET
    if remaining is not None:
        say("timing one step")
        each = seconds_per_string(model, search.optimiser, rows=_ROUND_SIZES[0], search=search.model)
        weight = each * sum(config.m) * len(config.targets)
        size = next((s for s in _ROUND_SIZES if 2 * s * weight <= remaining), _ROUND_SIZES[-1])
    return ReachSchedule.of(config.targets, config.m, asked.strings, size, config.relative_width)


def _lengths(config: StudyConfig, limit: Callable[[int], int]) -> LengthSchedule:
    """Place lengths as asked for, by what is seen, or on the published grid."""
    asked = config.cram
    free = asked.protocol == "fixed" and not asked.length

    def place(condition: Condition) -> Placing:
        if asked.length:
            return given(asked.length, asked.strings)
        by = chosen if free else published_grid
        return by(condition.m, limit(condition.m), asked.strings)

    # Strings at lengths that were asked for are all run: only where lengths are chosen is there a choice.
    width = config.relative_width if free else None
    most = asked.strings * max(len(set(asked.length)), 1)
    return LengthSchedule.of(config.targets, config.m, place, limit, most, width)


def serve(
    rounds: AbstractSchedule, run: Callable[[Chunk], Finished | None], clock: Clock, progress: Progress
) -> None:
    """Run chunk after chunk; once time is up, give every condition up that is not through.

    Parameters
    ----------
    run
        Runs a chunk; None: it was stopped before the chunk's end.
    """
    while not clock.over():
        progress.plan(rounds.planned)
        progress.expect(rounds.expected(clock.remaining()))
        chunk = rounds.next(clock.remaining())
        if chunk is None:
            return
        finished = run(chunk)
        if finished is not None:
            rounds.finish(chunk, finished.seconds, finished.answers)
    rounds.give_up("the run was stopped" if clock.stopped() else "the budget was spent")
