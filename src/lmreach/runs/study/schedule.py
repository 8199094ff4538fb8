"""Which strings to cram next, so that a budget in seconds is kept and no curve is cut short by it.

A *condition* is one target kind at one m. Every condition first has as many strings as an interval needs,
smallest m first: a short budget gives every condition some strings rather than one condition all of them.
Then the next round goes where it is expected to narrow most, per second, what is not yet known to the wanted
relative width (`stats.placement`): n50 of each condition and the slope of each kind. A condition ends early
once both are known; strings are always taken in their order, so which ones are measured never depends on how
they turn out. Without a wanted width all strings are run, the least served condition first. A chunk starts
only when its predicted time still fits; what did not fit is kept, with the reason, for the report.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int

from lmreach.config.targets import labels
from lmreach.stats.accessibility import half_length
from lmreach.stats.placement import NEARLY, Standing, gain, is_narrow, next_look, slope_width
from lmreach.stats.posterior import posterior_of_reaches

_FOR_AN_INTERVAL = 6  # fewer strings leave a 95 % interval of n50 open whatever they reach


@dataclass(frozen=True, slots=True)
class Condition:
    """One target kind at one number of prompt vectors."""

    target: str
    m: int

    @property
    def name(self) -> str:
        """Return the name used in the store and on screen."""
        return f"{self.target} m={self.m}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Strings ``first`` to ``last`` (exclusive) of a condition, run in one go; ``n``: at this one length."""

    condition: Condition
    first: int
    last: int
    n: int | None = None

    @property
    def strings(self) -> int:
        """Return how many strings the chunk holds."""
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Skipped:
    """Strings of a condition that were not run, and why."""

    condition: Condition
    strings: int
    why: str


@dataclass
class Schedule:
    """Hands out chunks while they fit.

    Attributes
    ----------
    conditions
        In order of service.
    strings
        Wanted per condition.
    round_size
        Strings per chunk.
    width
        Relative width at which a number is known well enough; None: run all strings.
    settled
        Strings that were not needed, and why.
    """

    conditions: list[Condition]
    strings: int
    round_size: int
    width: float | None = None
    settled: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    _done: dict[Condition, int] = field(default_factory=dict)
    _seconds: dict[Condition, float] = field(default_factory=dict)
    _closed: set[Condition] = field(default_factory=set)
    _known: dict[Condition, "_Known"] = field(default_factory=dict)
    _slope_due: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        targets: Iterable[str],
        ms: Iterable[int],
        strings: int,
        round_size: int,
        width: float | None = None,
    ) -> "Schedule":
        """Return a schedule over all pairs, smallest m first."""
        kinds = labels(targets)
        conditions = [Condition(kind, m) for m in sorted(set(ms)) for kind in kinds]
        return cls(conditions, strings, min(round_size, strings), width)

    def next(self, remaining: float | None) -> Chunk | None:
        """Return the next chunk that fits into ``remaining`` seconds, or None when nothing is left.

        The very first chunk is handed out whatever it may cost: without it nothing is known.
        """
        while (condition := self._best()) is not None:
            first = self._done.get(condition, 0)
            chunk = Chunk(condition, first, self._last(first))
            need = self.predict(condition, chunk.strings)
            if remaining is None or need is None or need <= remaining:
                return chunk
            self.close(
                condition,
                f"{need:.0f} s were needed for {chunk.strings} more, {max(remaining, 0):.0f} s were left",
            )
        return None

    def finish(
        self,
        chunk: Chunk,
        seconds: float,
        reach: Int[np.ndarray, " strings"] | None = None,
        censored: Bool[np.ndarray, " strings"] | None = None,
    ) -> None:
        """Take note of a finished chunk: what it cost (0: not known) and what its strings reached.

        Only whole chunks are noted: of an interrupted one the early finishers are those that gave up early.
        """
        self._done[chunk.condition] = chunk.last
        if seconds > 0:
            self._seconds[chunk.condition] = seconds / chunk.strings
        if reach is not None and censored is not None:
            self._known.setdefault(chunk.condition, _Known()).add(reach, censored)
            self._settle(chunk.condition)

    def done(self, condition: Condition) -> int:
        """Return how many strings of a condition have been finished."""
        return self._done.get(condition, 0)

    def close(self, condition: Condition, why: str) -> None:
        """Give a condition up for good."""
        self._closed.add(condition)
        left = self.strings - self._done.get(condition, 0)
        if left > 0:
            self.skipped.append(Skipped(condition, left, why))

    def predict(self, condition: Condition, strings: int) -> float | None:
        """Return the seconds that ``strings`` strings of a condition will take, from what was measured.

        A condition that has not run is taken to cost as the nearest smaller condition of its kind, else of
        any kind, times the ratio of m: positions per step grow about as m.
        """
        if condition in self._seconds:
            return strings * self._seconds[condition]
        known = [c for c in self._seconds if c.target == condition.target] or list(self._seconds)
        if not known:
            return None
        near = min(known, key=lambda c: abs(c.m - condition.m))
        return strings * self._seconds[near] * max(condition.m / near.m, 1.0)

    def expected(self, remaining: float | None) -> float | None:
        """Return the seconds that the rest will take, never more than what remains of the budget."""
        needs = [
            self.predict(condition, self.strings - self._done.get(condition, 0)) for condition in self._open()
        ]
        if any(need is None for need in needs):
            return remaining
        total = sum(need for need in needs if need is not None)
        return total if remaining is None else min(total, remaining)

    @property
    def planned(self) -> int:
        """Return the number of strings still open."""
        return sum(self.strings - self._done.get(condition, 0) for condition in self._open())

    def _open(self) -> list[Condition]:
        return [c for c in self.conditions if c not in self._closed and self._done.get(c, 0) < self.strings]

    def _last(self, first: int) -> int:
        """Return where a round ends: never past a look, so that looks do not depend on round sizes."""
        last = min(first + self.round_size, self.strings)
        return last if self.width is None else min(last, next_look(first))

    def _best(self) -> Condition | None:
        """Return the open condition in which a round tells most per second; the least served if unknown."""
        still = self._open()
        fresh = [
            condition
            for condition in still
            if condition not in self._known or self._done[condition] < _FOR_AN_INTERVAL
        ]
        if self.width is None or fresh or not still:
            return min(fresh or still, key=lambda condition: self._done.get(condition, 0), default=None)
        # What seems known already waits for its look: then the least served goes first.
        return max(still, key=lambda condition: (self._worth(condition), -self._done.get(condition, 0)))

    def _worth(self, condition: Condition) -> float:
        """Return the expected narrowing per second of one more round."""
        assert self.width is not None
        first = self._done.get(condition, 0)
        more = self._last(first) - first
        seconds = self.predict(condition, more)
        points = self._kind(condition.target)
        told = gain(
            [self._known[one].standing(one.m) for one in points],
            points.index(condition),
            more,
            self.width,
            own=not self._known[condition].settled,
            slope=not self._slope_known(condition.target),
        )
        return told / seconds if seconds else told

    def _kind(self, target: str) -> list[Condition]:
        """Return the conditions of a kind that have been measured."""
        return [
            condition
            for condition in self.conditions
            if condition.target == target and condition in self._known
        ]

    def _has_slope(self, target: str) -> bool:
        return sum(condition.target == target for condition in self.conditions) > 1

    def _slope_known(self, target: str) -> bool:
        """Say whether the slope is known well enough, or there is none to know."""
        assert self.width is not None
        own = [condition for condition in self.conditions if condition.target == target]
        if not self._has_slope(target):
            return True
        known = [self._known[condition] for condition in self._kind(target)]
        if len(known) < len(own) or any(one.looked_at == 0 for one in known):
            return False
        # A point beyond the lengths tried carries no line, and more strings do not bring it back.
        points = [k.standing(c.m) for c, k in zip(self._kind(target), known, strict=True) if not k.beyond]
        width = slope_width(points)
        return width is None or width <= self.width

    def _settle(self, served: Condition) -> None:
        """Judge the condition just served, and end the conditions of its kind whose numbers are all known."""
        if self.width is None:
            return
        if not self._known[served].look(self.width):
            return
        # As with n50: what was narrow at one look counts at the next, or accidents would be preferred.
        due = served.target in self._slope_due
        if self._slope_known(served.target):
            self._slope_due.add(served.target)
        if not due and self._has_slope(served.target):
            return
        for condition in self._kind(served.target):
            left = self.strings - self._done.get(condition, 0)
            if self._known[condition].settled and condition not in self._closed and left > 0:
                self._closed.add(condition)
                self.settled.append(Skipped(condition, left, self._known[condition].why(self.width)))


@dataclass
class _Known:
    """What the finished strings of one condition say."""

    reach: list[int] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    looked_at: int = 0
    due: bool = False
    settled: bool = False
    beyond: bool = False
    at_limit: bool = False
    _standing: Standing | None = None

    def add(self, reach: Int[np.ndarray, " strings"], censored: Bool[np.ndarray, " strings"]) -> None:
        self.reach += reach.tolist()
        self.censored += censored.tolist()
        self._standing = None

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.reach, dtype=np.int64), np.array(self.censored, dtype=bool)

    def standing(self, m: int) -> Standing:
        """Return n50 and its error from the curve's posterior, which has both however few the strings are."""
        if self._standing is None:
            found = posterior_of_reaches(*self.arrays())
            n50, _, _ = found.interval(found.n50, 0.95)
            self._standing = Standing(m, n50, found.spread() * n50, len(self.reach))
        return self._standing

    def look(self, width: float) -> bool:
        """Judge the interval, at a number of strings fixed beforehand; says whether this was one.

        What was narrow at one look is settled at the next, whatever has become of it: were it asked again,
        intervals that are narrow by accident would be preferred.
        """
        if next_look(len(self.reach) - 1) != len(self.reach):
            return False
        self.looked_at = len(self.reach)
        half = half_length(*self.arrays(), limit=max(self.reach) or 1)
        self.beyond = half.value is None
        self.at_limit = half.low is not None and half.high is None
        self.settled = self.settled or self.due
        below = half.verdict == "below_one" and half.high is not None and half.high <= 1
        self.due = self.due or below or is_narrow(half, NEARLY * width)
        return True

    def why(self, width: float) -> str:
        if self.at_limit:
            return "n50 lies at the length limit or beyond it: only a longer one would tell more"
        if self.beyond:
            return "n50 surely lies below one token"
        return f"n50 and slope are known to {width * 100:g} %"
