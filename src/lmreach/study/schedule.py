"""Which strings to cram next, so that a budget in seconds is kept and no curve is cut short by it.

A *cell* is one target kind at one m. Cells are served in rounds of a few strings each, smallest m first:
a short budget gives every cell some strings rather than one cell all of them. A chunk starts only when
its predicted time still fits; what did not fit is kept, with the reason, for the report.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field


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
    """Strings ``first`` to ``last`` (exclusive) of a cell, run in one go."""

    cell: Cell
    first: int
    last: int

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
    """

    cells: list[Cell]
    strings: int
    round_size: int
    skipped: list[Skipped] = field(default_factory=list)
    _done: dict[Cell, int] = field(default_factory=dict)
    _seconds: dict[Cell, float] = field(default_factory=dict)
    _closed: set[Cell] = field(default_factory=set)

    @classmethod
    def of(cls, targets: Iterable[str], ms: Iterable[int], strings: int, round_size: int) -> "Schedule":
        """Return a schedule over all pairs, smallest m first."""
        kinds = list(dict.fromkeys(targets))
        cells = [Cell(kind, m) for m in sorted(set(ms)) for kind in kinds]
        return cls(cells, strings, min(round_size, strings))

    def next(self, remaining: float | None) -> Chunk | None:
        """Return the next chunk that fits into ``remaining`` seconds, or None when nothing is left.

        The very first chunk is handed out whatever it may cost: without it nothing is known.
        """
        while (cell := self._least_served()) is not None:
            first = self._done.get(cell, 0)
            chunk = Chunk(cell, first, min(first + self.round_size, self.strings))
            need = self.predict(cell, chunk.strings)
            if remaining is None or need is None or need <= remaining:
                return chunk
            self.close(
                cell,
                f"{need:.0f} s were needed for {chunk.strings} more, {max(remaining, 0):.0f} s were left",
            )
        return None

    def finish(self, chunk: Chunk, seconds: float) -> None:
        """Take note of a finished chunk and what it cost (0 for strings that were in the store already)."""
        self._done[chunk.cell] = chunk.last
        if seconds > 0:
            self._seconds[chunk.cell] = seconds / chunk.strings

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

    def _least_served(self) -> Cell | None:
        return min(self._open(), key=lambda cell: self._done.get(cell, 0), default=None)
