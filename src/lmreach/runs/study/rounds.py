"""Rounds of strings under a clock: which schedule a run has, and serving it until time or strings run out."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Protocol

from lmreach.config import ExecutorConfig, StudyConfig
from lmreach.config.targets import labels
from lmreach.engine.clock import Clock
from lmreach.engine.executors.base import WorkFailed
from lmreach.errors import InputError, problem
from lmreach.progress import Progress
from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.kept import Kept
from lmreach.runs.study.length_schedule import LengthSchedule
from lmreach.runs.study.picture import first_picture
from lmreach.runs.study.placing import Placing, chosen, given, published_grid
from lmreach.runs.study.reach_schedule import ReachSchedule
from lmreach.runs.study.schedule import AbstractSchedule
from lmreach.runs.study.step_model import StepModel
from lmreach.runs.study.study_schedule import PICTURE_STRINGS, StudySchedule
from lmreach.runs.study.trials import Cramming, Finished

__all__ = [
    "Crew",
    "check_shard",
    "elsewhere_seconds",
    "lengths_of",
    "picture_seconds",
    "planned",
    "replay",
    "restored",
    "rounds_of",
    "serve",
]

_ROUND_WITHOUT_BUDGET = 32
# Of a budget, what may go elsewhere than into measuring: of a short one more, as loading takes its time.
_ELSEWHERE, _ELSEWHERE_OF_SHORT, _SHORT_S = 0.25, 0.4, 150.0
# Of the budget: when the first picture is to stand; of what remains once steps are timed: its least.
_PICTURED_BY, _LEAST_PICTURE = 0.5, 0.5


def elsewhere_seconds(budget: float) -> float:
    """Return the seconds of a budget that may go into loading, the parts beside cramming and the report."""
    return max(_ELSEWHERE * budget, _ELSEWHERE_OF_SHORT * min(budget, _SHORT_S))


def picture_seconds(budget: float, spent: float) -> float:
    """Return the seconds that a first picture is planned for: it stands by half of the budget.

    Where loading alone took long, it has half of what is left.
    """
    return max(_PICTURED_BY * budget - spent, _LEAST_PICTURE * (budget - spent))


def planned(config: StudyConfig, steps: StepModel, seconds: float) -> StudySchedule:
    """Plan a study of protocol *frontier* within a budget.

    Parameters
    ----------
    steps
        What a step costs.
    seconds
        Time for the first picture.
    """
    asked, kinds, ms = config.cram, list(labels(config.targets)), sorted(set(config.m))

    def cost(condition: Condition) -> float:
        return steps.seconds(Chunk(condition, 0, min(PICTURE_STRINGS, asked.strings)))

    own_steps = None if config.adapts else asked.max_steps
    picture = first_picture(kinds, ms, cost, seconds, most_steps=asked.max_steps, steps=own_steps)
    return StudySchedule.begin(
        picture.conditions,
        kinds,
        ms,
        steps.seconds,
        strings=asked.strings,
        width=config.relative_width,
        doubling=config.adapts,
    )


def restored(config: StudyConfig, kept: Kept, steps: StepModel | None) -> StudySchedule:
    """Return the schedule of an interrupted or budget-limited study, as it stood."""
    work_of = None if steps is None else steps.seconds
    return kept.schedule(config.cram.strings, config.relative_width, work_of)


def rounds_of(config: StudyConfig, on: ExecutorConfig) -> ReachSchedule:
    """Return the rounds of protocol *frontier* without a budget: every string that was asked for."""
    size, width = _ROUND_WITHOUT_BUDGET, config.relative_width
    return ReachSchedule.of(config.targets, config.m, config.cram.strings, size, width, mine=on.owns)


def check_shard(config: StudyConfig, on: ExecutorConfig) -> None:
    """Refuse a part of a plan that is not known beforehand.

    Raises
    ------
    InputError
        Time or results decide what is run.
    """
    fixed = config.budget_s is None and config.relative_width is None and config.cram.protocol == "frontier"
    if on.shard is not None and not fixed:
        got = "one that time or results decide"
        remedy = "use lmreach cram without --budget, --precision-wanted and --protocol"
        raise InputError(problem("a plan that is known beforehand for --shard", got, remedy))


def lengths_of(config: StudyConfig, limit: Callable[[int], int]) -> LengthSchedule:
    """Place lengths as asked for, by what is seen, or on the published grid.

    Parameters
    ----------
    limit
        Longest length at an m.
    """
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


def replay(rounds: AbstractSchedule, cramming: Cramming) -> None:
    """Take note of everything that the ledger holds, so that a resumed run goes on where it was."""
    for condition in rounds.conditions:
        while (chunk := rounds.upcoming(condition)) is not None:
            finished = cramming.known(chunk)
            if finished is None:
                break
            rounds.finish(chunk, finished.seconds, finished.answers)


class Crew(Protocol):
    """Who runs chunks: `lmreach.runs.study.trials.Cramming`."""

    @property
    def size(self) -> int:
        """How many chunks are run at once."""

    def start(self, chunk: Chunk) -> "Future[Any]":
        """Have a chunk run."""

    def wait(self, futures: "Iterable[Future[Any]]") -> "set[Future[Any]]":
        """Return which chunks are through, after a moment at most."""

    def finished(self, future: "Future[Any]") -> Finished | None:
        """Return what became of a chunk; None: it was stopped before its end."""

    def stop(self) -> None:
        """Have workers leave what they are at."""


def serve(
    rounds: AbstractSchedule,
    crew: Crew,
    clock: Clock,
    progress: Progress,
    *,
    until: Callable[[], bool] = lambda: False,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Have chunk after chunk run until time or strings run out.

    Parameters
    ----------
    crew
        Runs chunks.
    until
        Asked before each chunk; a yes ends the serving, once all that was handed out is back.
    before
        Called before each chunk.
    """
    away: dict[Future[Any], Chunk] = {}
    asked_to_stop = False
    while True:
        while len(away) < crew.size and not clock.over() and not until():
            _say(rounds, crew, clock, progress)
            chunk = rounds.next(clock.remaining())
            if chunk is None:
                break
            before()
            away[crew.start(chunk)] = chunk
        if not away:
            return
        done = crew.wait(away)
        for future in sorted(done, key=list(away).index):
            _note(rounds, away.pop(future), crew, future)
        if clock.stopped() and not asked_to_stop:
            asked_to_stop = True
            crew.stop()


def _say(rounds: AbstractSchedule, crew: Crew, clock: Clock, progress: Progress) -> None:
    expected = rounds.expected(clock.remaining())
    progress.plan(rounds.planned)
    progress.expect(None if expected is None else expected / crew.size)


def _note(rounds: AbstractSchedule, chunk: Chunk, crew: Crew, future: "Future[Any]") -> None:
    try:
        finished = crew.finished(future)
    except WorkFailed as error:
        rounds.fail(chunk, str(error))
        return
    if finished is None:
        rounds.take_back(chunk, "the run was stopped")
    else:
        rounds.finish(chunk, finished.seconds, finished.answers)
