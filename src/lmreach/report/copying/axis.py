"""An axis of the copying figures: logarithmic or not, in data units and in pixels."""

import math
from dataclasses import dataclass

import altair as alt

from lmreach.report.kit.drawing import count_ticks, log_ticks

__all__ = ["Axis"]


@dataclass(frozen=True, slots=True)
class Axis:
    """Ends in data units, and the length in pixels."""

    low: float
    high: float
    log: bool
    pixels: int

    def encode(self, kind: type[alt.X] | type[alt.Y], field: str, title: str) -> alt.X | alt.Y:
        """Encode a field on this axis."""
        scale = alt.Scale(
            type="log" if self.log else "linear", domain=[self.low, self.high], nice=False, zero=False
        )
        ticks = log_ticks(self.low, self.high) if self.log else count_ticks(self.high)
        axis = alt.Axis(title=title, grid=False, values=ticks, format=",.7~g", labelOverlap=True)
        return kind(f"{field}:Q", scale=scale, axis=axis)

    def pixel(self, value: float) -> float:
        """Return where a value stands, in pixels from the low end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return self.pixels * math.log(value / self.low) / math.log(self.high / self.low)
        return self.pixels * (value - self.low) / (self.high - self.low)
