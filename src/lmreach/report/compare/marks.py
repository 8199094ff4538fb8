"""n50 as a mark with its interval, wherever studies are drawn over one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from lmreach.report.compare.scale import Scale
from lmreach.report.kit.drawing import PAPER, Look, rows
from lmreach.results.base import Interval

__all__ = ["Mark", "drawn", "mark_of"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One n50 as drawn: ``beyond`` is 1 when n50 lies above ``n``, -1 when below, 0 when it is ``n``."""

    x: float
    n: float
    low: float | None
    high: float | None
    beyond: int
    text: str

    @property
    def is_sure(self) -> bool:
        """Whether n50 has a value and an interval."""
        return self.beyond == 0 and not (self.low is None and self.high is None)


def mark_of(x: float, n50: Interval, text: str, *, limit: float, first: float = 1.0) -> Mark | None:
    """Return the mark of an n50; None where nothing is known of it.

    Parameters
    ----------
    x
        Where it stands.
    limit, first
        Longest and shortest length tried, where n50 is only known to lie beyond one of them.
    """
    if n50.value is not None:
        return Mark(x, n50.value, n50.low, n50.high, 0, text)
    if n50.low is not None and n50.high is not None:
        return Mark(x, (n50.low + n50.high) / 2, n50.low, n50.high, 0, text)
    ends = {"above_limit": (limit, 1), "below_one": (1.0, -1), "below_first": (first, -1)}
    if n50.low is not None:
        ends[n50.verdict] = n50.low, 1
    elif n50.high is not None:
        ends[n50.verdict] = n50.high, -1
    if n50.verdict not in ends:
        return None
    n, beyond = ends[n50.verdict]
    return Mark(x, n, None, None, beyond, text)


def drawn(style: Look, held: Sequence[Mark], x: Scale, y: Scale, aside: int) -> list[alt.Chart]:
    """Draw marks of one look; ``aside``: pixels to the right, so that marks at one place do not cover."""
    bars = [
        {"x": mark.x, "n": y.inside(mark.n if mark.low is None else mark.low), "to": y.inside(end)}
        for mark in held
        for end in [mark.n if mark.high is None else mark.high]
        if mark.beyond == 0
    ]
    look: dict[str, Any] = {"shape": style.shape, "size": 62, "filled": True, "stroke": style.colour}
    look |= {"opacity": 1, "xOffset": aside, "aria": True, "strokeWidth": 1.6}
    rule = alt.Chart(rows(bars)).mark_rule(color=style.colour, strokeWidth=1.6, xOffset=aside)
    layers = [rule.encode(x=x.x("x"), y=y.y("n"), y2="to")]
    for fill, chosen in ((style.colour, True), (PAPER, False)):
        spots = [
            {"x": mark.x, "n": y.inside(mark.n), "text": mark.text} for mark in held if mark.is_sure is chosen
        ]
        point = alt.Chart(rows(spots)).mark_point(fill=fill, **look)
        layers.append(point.encode(x=x.x("x"), y=y.y("n"), description="text:N"))
    for way, arrow, shift in ((1, "↑", -14), (-1, "↓", 14)):
        past = [{"x": mark.x, "n": y.inside(mark.n), "arrow": arrow} for mark in held if mark.beyond == way]
        text = alt.Chart(rows(past)).mark_text(color=style.text, fontSize=15, xOffset=aside, dy=shift)
        layers.append(text.encode(x=x.x("x"), y=y.y("n"), text="arrow:N"))
    return layers
