"""What the ledger keeps of a study's plan, so that a resumed run goes on with it."""

from collections.abc import Callable
from typing import Self

from pydantic import BaseModel, ConfigDict

from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.study_schedule import StudySchedule

__all__ = ["Kept"]

Place = tuple[str, int, int]
"""Target kind, m, steps."""


class Kept(BaseModel):
    """A plan as JSON.

    Attributes
    ----------
    picture, conditions
        What was to be measured first, and all that was begun since.
    waiting
        Kinds and m that were asked for and not begun.
    doubling
        Whether steps may double.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    picture: tuple[Place, ...]
    conditions: tuple[Place, ...]
    waiting: tuple[tuple[str, int], ...]
    doubling: bool

    @classmethod
    def of(cls, schedule: StudySchedule) -> Self:
        """Return what is to be kept of a schedule."""
        picture, every = (
            tuple((one.target, one.m, one.steps) for one in some)
            for some in (schedule.picture, schedule.conditions)
        )
        return cls(
            picture=picture,
            conditions=every,
            waiting=tuple(schedule.open_waiting),
            doubling=schedule.doubling,
        )

    def schedule(
        self,
        strings: int,
        width: float | None,
        work_of: Callable[[Chunk], float] | None,
    ) -> StudySchedule:
        """Return the schedule again, without what was finished in it."""
        picture, every = (tuple(Condition(*one) for one in some) for some in (self.picture, self.conditions))
        kinds = list(dict.fromkeys([one.target for one in every] + [kind for kind, _ in self.waiting]))
        ms = sorted({one.m for one in every} | {m for _, m in self.waiting})
        made = StudySchedule.begin(
            picture, kinds, ms, work_of, strings=strings, width=width, doubling=self.doubling
        )
        made.conditions = list(every)
        made.waiting = list(self.waiting)
        return made
