"""Which strings to try at which length, for protocols that answer one length at a time (docs/cramming.md).

Three ways to place the lengths: those that were asked for, every string at each; the next one where a trial
is expected to narrow n50 most per second (`stats.posterior.Posterior.expected_spread`), a fresh string for
every trial; and the grid of the published protocol. Where the next trial of a condition lies depends on that
condition's own finished trials alone, never on time, so a resumed run goes on as it would have gone on.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmreach.config.targets import labels
from lmreach.runs.study.schedule import Chunk, Condition, Skipped
from lmreach.stats.placement import NEARLY, Standing, gain, next_look, slope_width
from lmreach.stats.points import point_curve
from lmreach.stats.posterior import Posterior, posterior_of_points

# Strings tried at one length before the next is chosen: looks lie at multiples of it.
_ROUND = 4
_FIRST_PER_VECTOR = 8
_CANDIDATES = 25
_GRID_START, _GRID_BIG, _GRID_SMALL = 10, 100, 10
_GRID_HIGH, _GRID_LOW = 0.9, 0.1

Placed = tuple[int, int, int]
"""A length and the strings, first and last (exclusive), to try there."""


@dataclass
class Trials:
    """Finished trials of a condition: reached or not, per string and length, and their chunks."""

    outcomes: dict[int, dict[int, bool]] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    looked_at: int = 0
    due: bool = False
    settled: bool = False
    beyond: str = ""
    _posterior: Posterior | None = None

    def add(self, placed: Placed, solved: Sequence[bool]) -> None:
        """Take note of a finished chunk."""
        n, first, last = placed
        self.placed.append(placed)
        self._posterior = None
        for string, one in zip(range(first, last), solved, strict=True):
            self.outcomes.setdefault(string, {})[n] = bool(one)

    @property
    def count(self) -> int:
        """Return the number of finished trials."""
        return sum(last - first for _, first, last in self.placed)

    def shares(self) -> dict[int, float]:
        """Return the share of strings reached at every length."""
        n, reached, tried = self.points()
        return {int(at): r / t for at, r, t in zip(n, reached, tried, strict=True)}

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return lengths, strings reached and strings tried."""
        told = [(n, solved) for own in self.outcomes.values() for n, solved in own.items()]
        n = sorted({at for at, _ in told})
        counts = [[solved for at, solved in told if at == one] for one in n]
        return np.array(n), np.array([sum(one) for one in counts]), np.array([len(one) for one in counts])

    def posterior(self) -> Posterior:
        """Return the posterior of the curve, every trial of a string of its own."""
        if self._posterior is None:
            self._posterior = posterior_of_points(*self.points())
        return self._posterior

    def standing(self, m: int) -> Standing:
        """Return n50 and its error from the curve's posterior."""
        found = self.posterior()
        n50, _, _ = found.interval(found.n50, 0.95)
        return Standing(m, n50, found.spread() * n50, self.count)

    def look(self, width: float, limit: int) -> None:
        """Judge the interval at a number of trials fixed beforehand, as `study.schedule` does for reaches."""
        if next_look(self.count - 1) != self.count:
            return
        self.looked_at = self.count
        self.settled = self.settled or self.due
        found = point_curve(list(self.outcomes.values()))
        share = self.shares()
        if found.verdict == "above_limit" and limit in share:
            self.beyond = "n50 lies beyond the longest length allowed: only a longer one would tell more"
        elif found.verdict == "below_first" and 1 in share:
            self.beyond = "n50 surely lies below one token"
        else:
            self.beyond = ""
        narrow = found.relative_width is not None and found.relative_width <= NEARLY * width
        self.due = self.due or narrow or bool(self.beyond)


Placing = Callable[[Trials], Placed | None]


def given(lengths: Sequence[int], strings: int, size: int = 8) -> Placing:
    """Try every string at every length asked for, a few strings at all lengths before the next few."""
    starts = range(0, strings, size)
    every = [(n, first, min(first + size, strings)) for first in starts for n in sorted(set(lengths))]
    return lambda trials: every[len(trials.placed)] if len(trials.placed) < len(every) else None


def chosen(m: int, limit: int, strings: int) -> Placing:
    """Try each string once, a round of them at the length that tells most of n50 per second."""

    def place(trials: Trials) -> Placed | None:
        first = trials.count
        if first >= strings:
            return None
        n = min(_FIRST_PER_VECTOR * m, limit) if first == 0 else _most_telling(trials, m, limit)
        return n, first, min(first + _ROUND, strings)

    return place


def _most_telling(trials: Trials, m: int, limit: int) -> int:
    """Return the length at which one more string narrows ln n50 most, over positions computed there."""
    found = trials.posterior()
    lengths = _candidates(found, limit)
    before = found.spread() ** 2
    gains = [(before - found.expected_spread(float(n)) ** 2) / (m + n) for n in lengths]
    return lengths[int(np.argmax(gains))]


def _candidates(found: Posterior, limit: int) -> list[int]:
    """Return whole lengths over the range in which n50 may lie."""
    _, low, high = found.interval(found.n50, 0.98)
    ends = (min(max(low, 1.0), limit), min(max(high, 1.0), limit))
    return sorted({min(max(round(n), 1), limit) for n in np.geomspace(*ends, _CANDIDATES).tolist()})


def published_grid(m: int, limit: int, strings: int) -> Placing:
    """Return the grid of Meyer et al. 2026: from 10 tokens in steps of 100 while more than 0.9 are reached,
    then in steps of 10 from the last such length until fewer than 0.1 are, and one more step of 100.
    """  # noqa: D205

    def place(trials: Trials) -> Placed | None:
        n = _next_on_grid(trials.shares(), max(_GRID_START, m + 1), limit)
        return None if n is None else (n, 0, strings)

    return place


def _next_on_grid(share: dict[int, float], start: int, limit: int) -> int | None:
    """Return the next length of the grid, or None at its end."""
    n, high = start, None
    while n <= limit and n in share and share[n] > _GRID_HIGH:
        n, high = n + _GRID_BIG, n
    if n <= limit and n not in share:
        return n
    n = start if high is None else high + _GRID_SMALL
    while n <= limit:
        if n not in share:
            return n
        if share[n] < _GRID_LOW:
            n += _GRID_BIG
            return n if n <= limit and n not in share else None
        n += _GRID_SMALL
    return None


@dataclass
class LengthSchedule:
    """Hands out chunks at single lengths while they fit into a budget.

    Attributes
    ----------
    conditions
        Smallest m first.
    placing
        Of every condition.
    limits
        Longest length per condition.
    most
        Trials that a condition is planned to have; the grid, which has no such number, has at least its
        next ones. width
        Relative width at which n50 and slope are known well enough; None: all that is placed is run.
    """

    conditions: list[Condition]
    placing: dict[Condition, Placing]
    limits: dict[Condition, int]
    most: dict[Condition, int]
    width: float | None = None
    settled: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    _trials: dict[Condition, Trials] = field(default_factory=dict)
    _seconds: dict[Condition, float] = field(default_factory=dict)
    _positions: dict[Condition, float] = field(default_factory=dict)
    _closed: set[Condition] = field(default_factory=set)
    _next: dict[Condition, tuple[int, Placed | None]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        targets: Iterable[str],
        ms: Iterable[int],
        place: Callable[[Condition], Placing],
        limit: Callable[[int], int],
        most: int,
        width: float | None = None,
    ) -> "LengthSchedule":
        """Return a schedule over all pairs, smallest m first; ``most``: trials planned per condition."""
        kinds = labels(targets)
        conditions = [Condition(kind, m) for m in sorted(set(ms)) for kind in kinds]
        placing = {condition: place(condition) for condition in conditions}
        return cls(
            conditions, placing, {c: limit(c.m) for c in conditions}, dict.fromkeys(conditions, most), width
        )

    def next(self, remaining: float | None) -> Chunk | None:
        """Return the next chunk that fits into ``remaining`` seconds, or None when nothing is left."""
        while (condition := self._best()) is not None:
            placed = self._place(condition)
            if placed is None:
                self._closed.add(condition)
                continue
            n, first, last = placed
            need = self.predict(condition, n, last - first)
            if remaining is None or need is None or need <= remaining:
                return Chunk(condition, first, last, n)
            left = f"{max(remaining, 0):.0f} s were left"
            self.close(condition, f"{need:.0f} s were needed for {last - first} more at {n} tokens, {left}")
        return None

    def finish(self, chunk: Chunk, seconds: float, solved: Sequence[bool]) -> None:
        """Take note of a finished chunk: what it cost and which of its strings were reached."""
        assert chunk.n is not None
        condition = chunk.condition
        self._of(condition).add((chunk.n, chunk.first, chunk.last), solved)
        self._seconds[condition] = self._seconds.get(condition, 0.0) + seconds
        self._positions[condition] = self._positions.get(condition, 0.0) + chunk.strings * (
            condition.m + chunk.n
        )
        if self.width is not None:
            self._of(condition).look(self.width, self.limits[condition])
            self._settle(condition.target)

    def close(self, condition: Condition, why: str) -> None:
        """Give a condition up for good."""
        if condition not in self._closed:
            self._closed.add(condition)
            left = self._left(condition)
            if left > 0:
                self.skipped.append(Skipped(condition, left, why))

    def predict(self, condition: Condition, n: int, strings: int) -> float | None:
        """Return the seconds that some trials will take: cost goes as positions, taken from the nearest m."""
        known = [c for c in self._seconds if self._seconds[c] > 0]
        near = [c for c in known if c.target == condition.target] or known
        if not near:
            return None
        like = min(near, key=lambda c: abs(c.m - condition.m))
        return strings * (condition.m + n) * self._seconds[like] / self._positions[like]

    def expected(self, remaining: float | None) -> float | None:
        """Return the seconds that the rest will take, never more than what remains of the budget."""
        needs = []
        for condition in self._open():
            placed = self._place(condition)
            needs.append(0.0 if placed is None else self.predict(condition, placed[0], self._left(condition)))
        if any(need is None for need in needs):
            return remaining
        total = math.fsum(need for need in needs if need is not None)
        return total if remaining is None else min(total, remaining)

    @property
    def planned(self) -> int:
        """Return the number of trials still open."""
        return sum(self._left(condition) for condition in self._open())

    def _of(self, condition: Condition) -> Trials:
        return self._trials.setdefault(condition, Trials())

    def _place(self, condition: Condition) -> Placed | None:
        chunks = len(self._of(condition).placed)
        if condition not in self._next or self._next[condition][0] != chunks:
            self._next[condition] = (chunks, self.placing[condition](self._of(condition)))
        return self._next[condition][1]

    def _left(self, condition: Condition) -> int:
        """Return how many trials a condition has before it, at least those of its next chunk."""
        placed = self._place(condition)
        return (
            0
            if placed is None
            else max(self.most[condition] - self._of(condition).count, placed[2] - placed[1])
        )

    def _open(self) -> list[Condition]:
        return [condition for condition in self.conditions if condition not in self._closed]

    def _best(self) -> Condition | None:
        """Return the open condition where a round tells most per second; without a width the least served."""
        still = self._open()
        fresh = [condition for condition in still if not self._of(condition).placed]
        if self.width is None or fresh or not still:
            return min(fresh or still, key=lambda condition: self._of(condition).count, default=None)
        return max(still, key=lambda condition: (self._worth(condition), -self._of(condition).count))

    def _worth(self, condition: Condition) -> float:
        assert self.width is not None
        placed = self._place(condition)
        if placed is None:
            return math.inf  # nothing to run: it is closed at once
        points = self._kind(condition.target)
        strings = placed[2] - placed[1]
        seconds = self.predict(condition, placed[0], strings)
        told = gain(
            [self._of(one).standing(one.m) for one in points],
            points.index(condition),
            strings,
            self.width,
            own=not self._of(condition).settled,
            slope=not self._slope_known(condition.target),
        )
        return told / seconds if seconds else told

    def _kind(self, target: str) -> list[Condition]:
        return [
            condition
            for condition in self.conditions
            if condition.target == target and self._of(condition).placed
        ]

    def _slope_known(self, target: str) -> bool:
        """Say whether the slope is known well enough, or there is none to know."""
        assert self.width is not None
        own = [condition for condition in self.conditions if condition.target == target]
        if len(own) < 2:
            return True
        if any(self._of(condition).looked_at == 0 for condition in own):
            return False
        points = [
            self._of(condition).standing(condition.m) for condition in own if not self._of(condition).beyond
        ]
        width = slope_width(points)
        return width is None or width <= self.width

    def _settle(self, target: str) -> None:
        """End the conditions of a kind whose numbers are all known."""
        assert self.width is not None
        if not self._slope_known(target):
            return
        for condition in self._kind(target):
            if self._of(condition).settled and condition not in self._closed:
                self._closed.add(condition)
                why = self._of(condition).beyond or f"n50 and slope are known to {self.width * 100:g} %"
                if (left := self._left(condition)) > 0:
                    self.settled.append(Skipped(condition, left, why))
