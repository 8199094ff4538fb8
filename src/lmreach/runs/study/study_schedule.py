"""A study within a budget: a first complete picture, then more strings, more steps, more m.

The picture (`study.picture`) has the same steps throughout. After it, in this order, as far as the time
allows: every kind has three m, for a slope, then a fourth; the steps of a kind are doubled, with the same
strings and starts, until n50 moves by less than its interval; the larger m; and what is still wider than
asked for is narrowed, the first kind's slope before all else. Few steps cost the larger m most, so that a
slope at few steps is too small, and no number of strings mends that. While the first slope is rough, half
of the time stays for it. A kind moves to more steps only as a whole, so that different steps never make one
line.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lmreach.runs.study.conditions import Chunk, Condition, Skipped
from lmreach.runs.study.costs import Costs
from lmreach.runs.study.picture import in_order
from lmreach.runs.study.reach_schedule import FOR_AN_INTERVAL, Reaches, ReachSchedule
from lmreach.stats.accessibility import HalfLength, half_length
from lmreach.stats.levelling import levelling

__all__ = ["PICTURE_STRINGS", "StudySchedule"]

PICTURE_STRINGS = 8
"""Strings per condition in a first picture: two more than an interval needs."""

_ROUGH = 0.4
_FOR_A_LINE, _FOR_A_GOOD_LINE = 3, 4
_MOST_STEPS = 10_000
# Of what remains: a doubling is begun only if it fits with room for a machine that gets busier.
_ROOM = 0.85
# While the first kind's slope is rough: what is left is for its strings.
_ROOM_WHILE_ROUGH = 0.5
# A condition that has nothing yet is begun if this share of it fits: at the deadline it counts as it stands.
_WORTH_BEGINNING = 0.5


@dataclass
class StudySchedule(ReachSchedule):
    """Rounds of a study whose steps may double.

    Attributes
    ----------
    picture
        What is measured first.
    waiting
        Kinds and m that were asked for and are not in the picture, in order of service.
    work_of
        Seconds that a chunk was expected to take, from timed steps; None: none was timed.
    doubling
        Whether steps may double; not where they were asked for.
    """

    picture: tuple[Condition, ...] = ()
    waiting: list[tuple[str, int]] = field(default_factory=list)
    work_of: Callable[[Chunk], float] | None = None
    doubling: bool = True
    _given_up: list[tuple[str, int]] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        picture: Sequence[Condition],
        kinds: Sequence[str],
        ms: Sequence[int],
        work_of: Callable[[Chunk], float] | None,
        *,
        strings: int,
        width: float | None,
        doubling: bool,
    ) -> "StudySchedule":
        """Return the schedule that begins with a picture; ``work_of``: None where no step was timed."""
        steps = picture[0].steps
        every = in_order([Condition(kind, m, steps) for kind in kinds for m in ms])
        return cls(
            list(picture),
            width,
            # Work is counted in the seconds that timed steps foresaw.
            Costs(None if work_of is None else 1.0),
            strings=strings,
            round_size=min(PICTURE_STRINGS, strings),
            picture=tuple(picture),
            waiting=[(one.target, one.m) for one in every if one not in picture],
            work_of=work_of,
            doubling=doubling,
        )

    @property
    def pictured(self) -> bool:
        """Whether the first picture is complete, or what is missing was given up."""
        return not any(self._is_fresh(c) for c in self._unfinished() if c in self.picture)

    @property
    def open_waiting(self) -> list[tuple[str, int]]:
        """Return kinds and m that were asked for and never begun, given up or not."""
        return [*self.waiting, *self._given_up]

    def lines(self) -> dict[str, int]:
        """Return the steps at which each kind's line stands."""
        return {kind: self.steps_of(kind) for kind in dict.fromkeys(c.target for c in self.conditions)}

    def _choose(self, remaining: float | None) -> Chunk | None:
        while True:
            self._go_further(remaining)
            condition = self._best()
            if condition is None:
                return None
            chunk = self._chunk(condition)
            need = self.predict(chunk) or 0.0  # nothing is known before the first chunk
            fits = 1.0 if self.done(condition) or condition not in self.picture else _WORTH_BEGINNING
            first = not self._known and not self._away
            if remaining is None or fits * need <= remaining or first:
                return chunk
            left = f"{max(remaining, 0):.0f} s were left"
            self.close(condition, f"{need:.0f} s were needed for {chunk.strings} more, {left}")

    def give_up(self, why: str) -> None:
        """Close whatever is still open, and what has never begun."""
        super().give_up(why)
        steps = {kind: self.steps_of(kind) for kind, _ in self.waiting}
        for kind, m in self.waiting:
            self.skipped.append(Skipped(Condition(kind, m, steps[kind]), self.strings, why))
        self._given_up += self.waiting
        self.waiting.clear()

    def close(self, condition: Condition, why: str) -> None:
        """Give a condition up; a doubling that is not complete was nothing that was asked for."""
        if any(one.m == condition.m for one in self._fewer(condition)):
            self._closed.add(condition)
        else:
            super().close(condition, why)

    @property
    def planned(self) -> int:
        """Return the number of strings still open."""
        return super().planned + self.strings * len(self.waiting)

    # Steps ---------------------------------------------------------------------------------------------

    def levels(self, target: str) -> list[int]:
        """Return the numbers of steps that a kind has had, rising."""
        return sorted({c.steps for c in self.conditions if c.target == target})

    def steps_of(self, target: str) -> int:
        """Return the most steps at which a kind's whole line stands; before that, those it began with."""
        levels = self.levels(target)
        if not levels:
            return self.picture[0].steps
        asked = {c.m for c in self.conditions if c.target == target and c.steps == levels[0]}
        for steps in reversed(levels[1:]):
            own = {c.m for c in self._at(target, steps) if self.done(c) >= min(FOR_AN_INTERVAL, self.strings)}
            if own >= asked:
                return steps
        return levels[0]

    def _fewer(self, condition: Condition) -> list[Condition]:
        return [c for c in self.conditions if c.target == condition.target and c.steps < condition.steps]

    def _at(self, target: str, steps: int) -> list[Condition]:
        return [c for c in self.conditions if c.target == target and c.steps == steps]

    def _line(self, target: str) -> list[Condition]:
        return self._at(target, self.steps_of(target))

    def _reaches(self, condition: Condition) -> Reaches | None:
        known = self._known.get(condition)
        return known if isinstance(known, Reaches) and known.reach else None

    def has_levelled(self, target: str) -> bool:
        """Say whether doubling the steps moved no n50 of a kind by more than it is known."""
        steps = self.steps_of(target)
        for condition in self._at(target, steps):
            after = self._reaches(condition)
            before = self._reaches(Condition(target, condition.m, steps // 2))
            if after is None:
                continue
            # Strings that only one of both has would make a difference of their own.
            both = len(after.reach) if before is None else min(len(after.reach), len(before.reach))
            more = _half(after, both)
            # Beyond the lengths tried there is nothing that more steps could move.
            if (
                more.value is not None
                and levelling(_half(before, both) if before else None, more) != "converged"
            ):
                return False
        return True

    # What comes next -----------------------------------------------------------------------------------

    def _unfinished(self) -> list[Condition]:
        """Return what may be served: a kind's line, and what it is to move to."""
        return [c for c in super()._unfinished() if c.steps >= self.steps_of(c.target)]

    def _is_fresh(self, condition: Condition) -> bool:
        return self.served(condition) < min(PICTURE_STRINGS, self.strings)

    def _goes_ahead(self, condition: Condition) -> bool:
        return False  # what is known decides whether it has more strings or twice the steps

    def _best(self) -> Condition | None:
        """Return the condition to serve: what has too few strings, then where a round tells most."""
        still = self._open()
        fresh = [condition for condition in still if self._is_fresh(condition)]
        if fresh or self.width is None or not still:
            return next(iter(fresh), min(still, key=self.served, default=None))
        return max(still, key=lambda condition: (self._worth(condition), -self.done(condition)))

    def _go_further(self, remaining: float | None) -> None:
        """Open more m, or twice the steps, where nothing that is open has too few strings."""
        if any(self._is_fresh(condition) for condition in self._open()):
            return
        if any(chunk.condition not in self._known for chunk in self._away):
            return  # what comes back first decides
        if self._take_waiting(remaining, 1.0, fewer_than=_FOR_A_LINE):
            return
        rough = self._is_rough()
        room = _ROOM_WHILE_ROUGH if rough else _ROOM
        if self._take_waiting(remaining, room, fewer_than=_FOR_A_GOOD_LINE):
            return
        if self._double(remaining, room) or rough:
            return
        self._take_waiting(remaining, 1.0)

    def _take_waiting(self, remaining: float | None, share: float, *, fewer_than: int | None = None) -> bool:
        """Open the first waiting condition that fits; of kinds that have fewer m, or any."""
        for kind, m in self.waiting:
            measured = {c.m for c in self.conditions if c.target == kind}
            if fewer_than is not None and len(measured) >= fewer_than:
                continue
            condition = Condition(kind, m, self.steps_of(kind))
            if self._fits([condition], remaining, share):
                self.waiting.remove((kind, m))
                self.conditions.append(condition)
                return True
        return False

    def _is_rough(self) -> bool:
        """Say whether the first kind's slope, or its one n50, is wider than a picture should leave it."""
        kind = self.conditions[0].target
        line = self._kind(kind)
        if not any(condition in line for condition in self._unfinished()):
            return False  # all its strings were run
        if len(line) == 1:
            return self._known[line[0]].standing(line[0].m).width() > _ROUGH
        width = self.slope_width(kind)
        return width is not None and width > _ROUGH

    def _double(self, remaining: float | None, share: float) -> bool:
        """Open twice the steps of the first kind that has not levelled off, where time allows."""
        if not self.doubling or remaining is None:
            return False
        for kind in dict.fromkeys(condition.target for condition in self.conditions):
            steps = self.steps_of(kind)
            if steps != self.levels(kind)[-1] or 2 * steps > _MOST_STEPS or self.has_levelled(kind):
                continue
            line = [c for c in self._at(kind, steps) if self.done(c)]
            more = [Condition(kind, c.m, 2 * steps) for c in line]
            if more and self._fits(more, remaining, share):
                self.conditions += more
                self._slope_due.discard(kind)
                return True
        return False

    def _fits(self, conditions: list[Condition], remaining: float | None, share: float) -> bool:
        if remaining is None:
            return True
        needs = [self.predict(self._chunk(condition)) or 0.0 for condition in conditions]
        return sum(needs) <= share * remaining

    def _work(self, chunk: Chunk) -> float:
        return super()._work(chunk) if self.work_of is None else self.work_of(chunk)


def _half(reaches: Reaches, count: int) -> HalfLength:
    """Return n50 of the first strings."""
    reach, censored = reaches.arrays()
    return half_length(reach[:count], censored[:count], limit=max(reaches.reach) or 1)
