"""Which strings to cram next: what every schedule does, whatever it asks of its strings.

A *condition* is one target kind at one m. Every condition first has a few strings, smallest m first; then the
next chunk goes where it is expected to narrow most, per second, what is not yet known to the wanted relative
width (`stats.placement`): n50 of each condition and the slope of each kind. Intervals are judged at a few
numbers of strings fixed beforehand; what is narrow at one look ends at the next, n50 and slope alike. Strings
are taken in their order, so which ones are measured never depends on how they turn out. Without a wanted
width everything is run, the least served condition first. A chunk starts only when its predicted time still
fits; what did not fit is kept, with the reason, for the report.

Where there are many workers several chunks are *away* at once. What one holds never depends on which others
are: a condition's chunks are cut the same way, and are taken note of in their order.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from lmreach.runs.study.conditions import Answer, Chunk, Condition, Skipped
from lmreach.runs.study.costs import Costs
from lmreach.stats.placement import Standing, gain, next_look, slope_width

__all__ = ["AbstractSchedule", "Evidence"]


@dataclass
class Evidence(ABC):
    """What the finished trials of one condition say.

    Attributes
    ----------
    looked_at
        Trials at the last look; 0: none yet.
    due
        Narrow at a look: settled at the next, whatever has become of it. Were it asked again, intervals
        that are narrow by accident would be preferred.
    settled
        Known well enough.
    no_value
        Whether n50 lies outside the lengths tried, so that it carries no line.
    reason
        Why more trials would tell nothing; empty: they would.
    """

    looked_at: int = 0
    due: bool = False
    settled: bool = False
    no_value: bool = False
    reason: str = ""

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of finished trials."""

    @abstractmethod
    def add(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Take note of a finished chunk."""

    @abstractmethod
    def standing(self, m: int) -> Standing:
        """Return n50 and its error, which exist however few the trials are."""

    @abstractmethod
    def judge(self, width: float) -> bool:
        """Say whether n50 is known well enough; sets ``no_value`` and ``reason``."""

    def look(self, width: float) -> bool:
        """Judge at a number of trials fixed beforehand; says whether this was one."""
        if next_look(self.count - 1) != self.count:
            return False
        self.looked_at = self.count
        self.settled = self.settled or self.due
        self.due = self.judge(width) or self.due
        return True


@dataclass
class AbstractSchedule(ABC):
    """Hands out chunks while they fit.

    Attributes
    ----------
    conditions
        In order of service.
    width
        Relative width at which a number is known well enough; None: run everything.
    settled
        Trials that were not needed, and why.
    skipped
        Trials that did not fit, and why.
    failed
        Rounds that could not be run at all, and why.
    costs
        What was learned of the machine.
    """

    conditions: list[Condition]
    width: float | None
    costs: Costs = field(default_factory=Costs)
    settled: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _known: dict[Condition, Evidence] = field(default_factory=dict)
    _closed: set[Condition] = field(default_factory=set)
    _slope_due: set[str] = field(default_factory=set)
    _away: list[Chunk] = field(default_factory=list)
    _failed: set[Condition] = field(default_factory=set)

    # What a kind of schedule decides -------------------------------------------------------------------

    @abstractmethod
    def _evidence(self, condition: Condition) -> Evidence:
        """Return what is known of a condition before its first trial."""

    @abstractmethod
    def _chunk(self, condition: Condition) -> Chunk:
        """Return the next chunk of a condition that has trials before it."""

    @abstractmethod
    def _left(self, condition: Condition) -> int:
        """Return how many trials a condition has before it."""

    @abstractmethod
    def _work(self, chunk: Chunk) -> float:
        """Return the work of a chunk, in units that cost about the same at every m."""

    @abstractmethod
    def _is_fresh(self, condition: Condition) -> bool:
        """Say whether a condition has fewer trials than it is to have before any has more."""

    def _goes_ahead(self, condition: Condition) -> bool:
        """Say whether a condition may have a chunk while an earlier one is away: not where that decides."""
        return False

    # The contract --------------------------------------------------------------------------------------

    def next(self, remaining: float | None) -> Chunk | None:
        """Hand out the next chunk that fits into ``remaining`` seconds, or None when there is none for now.

        Nothing is left if none is away either. The very first chunk is handed out whatever it may cost:
        without it nothing is known.
        """
        chunk = self._choose(remaining)
        if chunk is not None:
            self._away.append(chunk)
        return chunk

    def _choose(self, remaining: float | None) -> Chunk | None:
        while (condition := self._best()) is not None:
            chunk = self._chunk(condition)
            need = self.predict(chunk)
            first = not self._known and not self._away
            if remaining is None or need is None or need <= remaining or first:
                return chunk
            left = f"{max(remaining, 0):.0f} s were left"
            at = "" if chunk.n is None else f" at {chunk.n} tokens"
            self.close(condition, f"{need:.0f} s were needed for {chunk.strings} more{at}, {left}")
        return None

    def finish(self, chunk: Chunk, seconds: float, answers: Sequence[Answer]) -> None:
        """Take note of a finished chunk: what it cost (0: not known) and what became of its strings.

        Only whole chunks are noted: of an interrupted one the early finishers are those that gave up early.
        A condition ends with a chunk of which every string failed.
        """
        assert len(answers) == chunk.strings
        self._back(chunk)
        self.costs.note(chunk.condition, self._work(chunk), seconds)
        self._take(chunk, answers)

    def _take(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Take note of what became of the strings of a chunk, whose forerunners were all taken note of."""
        if all(answer.failed for answer in answers):
            self.close(chunk.condition, f"the loss of all {chunk.strings} strings stopped being a number")
            return
        own = self._known.setdefault(chunk.condition, self._evidence(chunk.condition))
        own.add(chunk, answers)
        if self.width is not None and own.look(self.width):
            self._settle(chunk.condition.target)

    def take_back(self, chunk: Chunk, why: str) -> None:
        """Take a chunk back that was stopped before its end."""
        self._back(chunk)
        if chunk.condition in self._closed and chunk.condition not in self._failed:
            self.skipped.append(Skipped(chunk.condition, chunk.strings, why))

    def _back(self, chunk: Chunk) -> None:
        if chunk in self._away:
            self._away.remove(chunk)

    def away(self, condition: Condition) -> int:
        """Return how many trials of a condition are being run."""
        return sum(chunk.strings for chunk in self._away if chunk.condition == condition)

    def served(self, condition: Condition) -> int:
        """Return how many trials of a condition are finished or being run."""
        return self.done(condition) + self.away(condition)

    def done(self, condition: Condition) -> int:
        """Return how many trials of a condition have been finished."""
        return self._known[condition].count if condition in self._known else 0

    def close(self, condition: Condition, why: str) -> None:
        """Give a condition up for good."""
        if condition in self._closed:
            return
        self._closed.add(condition)
        running = 0 if condition in self._failed else self.away(condition)
        if (left := self._left(condition) - running) > 0:
            self.skipped.append(Skipped(condition, left, why))

    def fail(self, chunk: Chunk, why: str) -> None:
        """Give a condition up of which a chunk failed, and those after it with it; the others go on."""
        self._back(chunk)
        self.failed.append(f"a round of {chunk.condition.name} failed: {why}")
        self._failed.add(chunk.condition)
        self.close(chunk.condition, why)

    def upcoming(self, condition: Condition) -> Chunk | None:
        """Return the chunk that a condition would have next, whatever it costs; None: it has no more."""
        return None if condition in self._closed or self._left(condition) <= 0 else self._chunk(condition)

    @property
    def pictured(self) -> bool:
        """Whether there is a first complete picture: whatever comes after cramming may come now."""
        return True

    def lines(self) -> dict[str, int]:
        """Return the steps at which each kind's line stands, where the run chose them; else 0."""
        return dict.fromkeys((condition.target for condition in self.conditions), 0)

    def give_up(self, why: str) -> None:
        """Close whatever is still open."""
        for condition in self._unfinished():
            self.close(condition, why)

    def predict(self, chunk: Chunk) -> float | None:
        """Return the seconds that a chunk will take, from what was measured; None before anything was."""
        return self.costs.predict(chunk.condition, self._work(chunk))

    def expected(self, remaining: float | None) -> float | None:
        """Return the seconds that the rest will take, never more than what remains of the budget."""
        total = 0.0
        for condition in self._unfinished():
            left = self._left(condition) - self.away(condition)
            if left <= 0:
                continue
            chunk = self._chunk(condition)
            need = self.predict(chunk)
            if need is None:
                return remaining
            total += need * left / chunk.strings
        return total if remaining is None else min(total, remaining)

    @property
    def planned(self) -> int:
        """Return the number of trials still open."""
        return sum(self._left(condition) for condition in self._unfinished())

    # What all decide alike -----------------------------------------------------------------------------

    def _unfinished(self) -> list[Condition]:
        return [c for c in self.conditions if c not in self._closed and self._left(c) > 0]

    def _open(self) -> list[Condition]:
        """Return the conditions that may have a chunk now."""
        return [
            c
            for c in self._unfinished()
            if not (running := self.away(c)) or (running < self._left(c) and self._goes_ahead(c))
        ]

    def _best(self) -> Condition | None:
        """Return the open condition where a chunk tells most per second; the least served if unknown."""
        still = self._open()
        fresh = [condition for condition in still if self._is_fresh(condition)]
        unknown = [condition for condition in still if condition not in self._known]  # its first is away
        if self.width is None or fresh or unknown or not still:
            return min(fresh or unknown or still, key=self.served, default=None)
        # What seems known already waits for its look: then the least served goes first.
        return max(still, key=lambda condition: (self._worth(condition), -self.done(condition)))

    def _worth(self, condition: Condition) -> float:
        """Return the expected narrowing per second of one more chunk."""
        assert self.width is not None
        chunk = self._chunk(condition)
        points = self._kind(condition.target)
        narrowing = gain(
            [self._known[point].standing(point.m) for point in points],
            points.index(condition),
            chunk.strings,
            self.width,
            own=not self._known[condition].settled,
            slope=not self._slope_known(condition.target),
        )
        seconds = self.predict(chunk)
        return narrowing / seconds if seconds else narrowing

    def _line(self, target: str) -> list[Condition]:
        """Return the conditions that the slope of a kind is to go through."""
        return [condition for condition in self.conditions if condition.target == target]

    def _kind(self, target: str) -> list[Condition]:
        """Return those of them that have been measured."""
        return [condition for condition in self._line(target) if condition in self._known]

    def slope_width(self, target: str) -> float | None:
        """Return the relative width of a kind's slope as it stands; None without a rising line.

        A point beyond the lengths tried carries no line, and more strings do not bring it back.
        """
        own = [(c.m, self._known[c]) for c in self._kind(target)]
        return slope_width([known.standing(m) for m, known in own if not known.no_value])

    def _slope_known(self, target: str) -> bool:
        """Say whether the slope is known well enough, or there is none to know."""
        assert self.width is not None
        line = self._line(target)
        if len(line) < 2:
            return True
        if any(c not in self._known or self._known[c].looked_at == 0 for c in line):
            return False
        width = self.slope_width(target)
        return width is None or width <= self.width

    def _settle(self, target: str) -> None:
        """End the conditions of a kind whose numbers are all known."""
        assert self.width is not None
        # As with n50: what was narrow at one look counts at the next, or accidents would be preferred.
        due = target in self._slope_due
        if self._slope_known(target):
            self._slope_due.add(target)
        if not due and len(self._line(target)) > 1:
            return
        for condition in self._kind(target):
            known, left = self._known[condition], self._left(condition)
            if known.settled and condition not in self._closed and left > 0:
                self._closed.add(condition)
                why = known.reason or f"n50 and slope are known to {self.width * 100:g} %"
                self.settled.append(Skipped(condition, left, why))
