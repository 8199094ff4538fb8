"""Which strings to cram next, so that a budget in seconds is kept and no curve is cut short by it.

A *cell* is one target kind at one m. Every cell first has as many strings as an interval needs, smallest m
first: a short budget gives every cell some strings rather than one cell all of them. Then the next round
goes where it is expected to narrow most, per second, what is not yet known to the wanted relative width
(`stats.placement`): n50 of each cell and the slope of each kind. A cell ends early once both are known;
strings are always taken in their order, so which ones are measured never depends on how they turn out.
Without a wanted width all strings are run, the least served cell first. A chunk starts only when its
predicted time still fits; what did not fit is kept, with the reason, for the report.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int

from lmreach.stats.accessibility import half_length
from lmreach.stats.placement import NEARLY, Standing, gain, is_narrow, next_look, slope_width
from lmreach.stats.posterior import posterior_of_reaches

_FOR_AN_INTERVAL = 6  # fewer strings leave a 95 % interval of n50 open whatever they reach


@dataclass(frozen=True, slots=True)
class Cell:
    """One target kind at one number of prompt vectors."""

    target: str
    m: int

    @property
    def name(self) -> str:
        """Return the name used in the store and on screen."""
        return f"{self.target} m={self.m}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Strings ``first`` to ``last`` (exclusive) of a cell, run in one go; ``n``: at this one length."""

    cell: Cell
    first: int
    last: int
    n: int | None = None

    @property
    def strings(self) -> int:
        """Return how many strings the chunk holds."""
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Skipped:
    """Strings of a cell that were not run, and why."""

    cell: Cell
    strings: int
    why: str


@dataclass
class Schedule:
    """Hands out chunks while they fit.

    Attributes
    ----------
    cells
        In order of service.
    strings
        Wanted per cell.
    round_size
        Strings per chunk.
    width
        Relative width at which a number is known well enough; None: run all strings.
    settled
        Strings that were not needed, and why.
    """

    cells: list[Cell]
    strings: int
    round_size: int
    width: float | None = None
    settled: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    _done: dict[Cell, int] = field(default_factory=dict)
    _seconds: dict[Cell, float] = field(default_factory=dict)
    _closed: set[Cell] = field(default_factory=set)
    _known: dict[Cell, "_Known"] = field(default_factory=dict)
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
        kinds = list(dict.fromkeys(targets))
        cells = [Cell(kind, m) for m in sorted(set(ms)) for kind in kinds]
        return cls(cells, strings, min(round_size, strings), width)

    def next(self, remaining: float | None) -> Chunk | None:
        """Return the next chunk that fits into ``remaining`` seconds, or None when nothing is left.

        The very first chunk is handed out whatever it may cost: without it nothing is known.
        """
        while (cell := self._best()) is not None:
            first = self._done.get(cell, 0)
            chunk = Chunk(cell, first, self._last(first))
            need = self.predict(cell, chunk.strings)
            if remaining is None or need is None or need <= remaining:
                return chunk
            self.close(
                cell,
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
        self._done[chunk.cell] = chunk.last
        if seconds > 0:
            self._seconds[chunk.cell] = seconds / chunk.strings
        if reach is not None and censored is not None:
            self._known.setdefault(chunk.cell, _Known()).add(reach, censored)
            self._settle(chunk.cell)

    def done(self, cell: Cell) -> int:
        """Return how many strings of a cell have been finished."""
        return self._done.get(cell, 0)

    def close(self, cell: Cell, why: str) -> None:
        """Give a cell up for good."""
        self._closed.add(cell)
        left = self.strings - self._done.get(cell, 0)
        if left > 0:
            self.skipped.append(Skipped(cell, left, why))

    def predict(self, cell: Cell, strings: int) -> float | None:
        """Return the seconds that ``strings`` strings of a cell will take, from what was measured.

        A cell that has not run is taken to cost as the nearest smaller cell of its kind, else of any kind,
        times the ratio of m: positions per step grow about as m.
        """
        if cell in self._seconds:
            return strings * self._seconds[cell]
        known = [c for c in self._seconds if c.target == cell.target] or list(self._seconds)
        if not known:
            return None
        near = min(known, key=lambda c: abs(c.m - cell.m))
        return strings * self._seconds[near] * max(cell.m / near.m, 1.0)

    def expected(self, remaining: float | None) -> float | None:
        """Return the seconds that the rest will take, never more than what remains of the budget."""
        needs = [self.predict(cell, self.strings - self._done.get(cell, 0)) for cell in self._open()]
        if any(need is None for need in needs):
            return remaining
        total = sum(need for need in needs if need is not None)
        return total if remaining is None else min(total, remaining)

    @property
    def planned(self) -> int:
        """Return the number of strings still open."""
        return sum(self.strings - self._done.get(cell, 0) for cell in self._open())

    def _open(self) -> list[Cell]:
        return [c for c in self.cells if c not in self._closed and self._done.get(c, 0) < self.strings]

    def _last(self, first: int) -> int:
        """Return where a round ends: never past a look, so that looks do not depend on round sizes."""
        last = min(first + self.round_size, self.strings)
        return last if self.width is None else min(last, next_look(first))

    def _best(self) -> Cell | None:
        """Return the open cell in which a round tells most per second; the least served if unknown."""
        still = self._open()
        fresh = [cell for cell in still if cell not in self._known or self._done[cell] < _FOR_AN_INTERVAL]
        if self.width is None or fresh or not still:
            return min(fresh or still, key=lambda cell: self._done.get(cell, 0), default=None)
        # What seems known already waits for its look: then the least served goes first.
        return max(still, key=lambda cell: (self._worth(cell), -self._done.get(cell, 0)))

    def _worth(self, cell: Cell) -> float:
        """Return the expected narrowing per second of one more round."""
        assert self.width is not None
        first = self._done.get(cell, 0)
        more = self._last(first) - first
        seconds = self.predict(cell, more)
        points = self._kind(cell.target)
        told = gain(
            [self._known[one].standing(one.m) for one in points],
            points.index(cell),
            more,
            self.width,
            own=not self._known[cell].settled,
            slope=not self._slope_known(cell.target),
        )
        return told / seconds if seconds else told

    def _kind(self, target: str) -> list[Cell]:
        """Return the cells of a kind that have been measured."""
        return [cell for cell in self.cells if cell.target == target and cell in self._known]

    def _has_slope(self, target: str) -> bool:
        return sum(cell.target == target for cell in self.cells) > 1

    def _slope_known(self, target: str) -> bool:
        """Say whether the slope is known well enough, or there is none to know."""
        assert self.width is not None
        own = [cell for cell in self.cells if cell.target == target]
        if not self._has_slope(target):
            return True
        known = [self._known[cell] for cell in self._kind(target)]
        if len(known) < len(own) or any(one.looked_at == 0 for one in known):
            return False
        # A point beyond the lengths tried carries no line, and more strings do not bring it back.
        points = [k.standing(c.m) for c, k in zip(self._kind(target), known, strict=True) if not k.beyond]
        width = slope_width(points)
        return width is None or width <= self.width

    def _settle(self, served: Cell) -> None:
        """Judge the cell just served, and end the cells of its kind whose numbers are all known."""
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
        for cell in self._kind(served.target):
            left = self.strings - self._done.get(cell, 0)
            if self._known[cell].settled and cell not in self._closed and left > 0:
                self._closed.add(cell)
                self.settled.append(Skipped(cell, left, self._known[cell].why(self.width)))


@dataclass
class _Known:
    """What the finished strings of one cell say."""

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
