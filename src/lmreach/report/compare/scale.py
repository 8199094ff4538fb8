"""An axis that is linear or logarithmic, in data units."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import altair as alt

from lmreach.report.kit.drawing import count_ticks, log_ticks

__all__ = ["Scale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis: its title, its ends, whether it is logarithmic, and the ticks where they are given."""

    title: str
    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]
    grid: bool

    @classmethod
    def over(
        cls,
        title: str,
        values: Iterable[float],
        *,
        ticks: Iterable[float] | None = None,
        grid: bool = False,
        room: float = 1.25,
    ) -> Self:
        """Choose the axis: logarithmic where all values are above 0 and span a factor above 6.

        Parameters
        ----------
        ticks
            None: round numbers.
        room
            Factor left free beyond the outermost values.
        """
        held = sorted(values)
        low, high = held[0], held[-1]
        if low > 0 and high > 6 * low:
            low, high = low / room, high * room
            chosen = log_ticks(low, high) if ticks is None else list(ticks)
            return cls(title, low, high, True, tuple(chosen), grid)
        low, high = min(low, 0.0), max(high, 0.0)
        span = high - low or 1.0
        low, high = (low - 0.08 * span if low < 0 else 0.0), high + 0.08 * span
        below = [-tick for tick in count_ticks(-low)[:0:-1]] if low < 0 else []
        chosen = [*map(float, below), *map(float, count_ticks(high))] if ticks is None else list(ticks)
        return cls(title, low, high, False, tuple(chosen), grid)

    def x(self, field: str) -> alt.X:
        """Encode a field from left to right."""
        return alt.X(f"{field}:Q", scale=self._scale(), axis=self._axis())

    def y(self, field: str) -> alt.Y:
        """Encode a field upwards."""
        return alt.Y(f"{field}:Q", scale=self._scale(), axis=self._axis())

    def inside(self, value: float) -> float:
        """Keep a value within the axis."""
        return min(max(value, self.low), self.high)

    def between(self, first: float, last: float, count: int = 40) -> list[float]:
        """Return values from first to last at even distances on the axis."""
        steps = [i / count for i in range(count + 1)]
        if self.log:
            start, end = math.log(first), math.log(last)
            return [math.exp(start + t * (end - start)) for t in steps]
        return [first + t * (last - first) for t in steps]

    def _scale(self) -> alt.Scale:
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=[self.low, self.high], nice=False, zero=False, clamp=True)

    def _axis(self) -> alt.Axis:
        return alt.Axis(
            title=self.title, grid=self.grid, values=list(self.ticks), format=",.7~g", labelOverlap="greedy"
        )
