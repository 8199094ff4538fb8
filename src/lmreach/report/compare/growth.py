"""n50 against the number of vectors, the studies over one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from lmreach.report.compare.scale import Scale
from lmreach.report.compare.series import Series, legend
from lmreach.report.kit.drawing import PAPER, Figure, rows, stack
from lmreach.report.kit.format import number, plain
from lmreach.report.study.stepped import steps_told, steps_with_level
from lmreach.report.study.words import n50_cell
from lmreach.results.study import Accessibility

__all__ = ["growth"]

_CAPTION = (
    "Marks: n50 with its 95 % interval. A hollow mark: too few strings for an interval. With an arrow: n50 "
    "lies beyond it. Lines: fitted, drawn where the slope has an interval."
)


@dataclass(frozen=True, slots=True)
class _Mark:
    """One n50 as drawn: ``beyond`` is 1 when n50 lies above ``n``, -1 when below, 0 when it is ``n``."""

    m: int
    n: float
    low: float | None
    high: float | None
    beyond: int
    text: str


def growth(series: Sequence[Series], target: str, index: int) -> Figure | None:
    """Draw the studies of one target kind; None where nothing is known of any n50."""
    marks = [(one, _marks(one)) for one in series]
    drawn = [(one, held) for one, held in marks if held]
    if not drawn:
        return None
    described = "; ".join(mark.text for _, held in drawn for mark in held)
    title = f"n50 against m, {plain(target)} targets"
    wide, narrow = (_chart(drawn, width) for width in (560, 250))
    name = f"compared-n50-{index + 1}"
    return Figure(name, title, described, f"{plain(target)} targets. {_CAPTION}", wide, narrow)


def _marks(one: Series) -> list[_Mark]:
    found = [_mark(one.entry.study, condition) for condition in one.entry.conditions]
    return [mark for mark in found if mark is not None]


def _mark(study: str, one: Accessibility) -> _Mark | None:
    n50 = one.n50
    value, told = n50_cell(one)
    strings = ", ".join(filter(None, (f"{number(one.finished)} strings", steps_with_level([one]))))
    text = plain(f"{study}, m = {one.m}: n50 {value} ({told}); {strings}")
    if n50.value is not None:
        return _Mark(one.m, n50.value, n50.low, n50.high, 0, text)
    if n50.low is not None and n50.high is not None:
        return _Mark(one.m, (n50.low + n50.high) / 2, n50.low, n50.high, 0, text)
    first = 1.0 if one.points is None else float(one.points.n[0])
    ends = {"above_limit": (float(one.limit), 1), "below_one": (1.0, -1), "below_first": (first, -1)}
    if n50.low is not None:
        ends[n50.verdict] = n50.low, 1
    elif n50.high is not None:
        ends[n50.verdict] = n50.high, -1
    if n50.verdict not in ends:
        return None
    n, beyond = ends[n50.verdict]
    return _Mark(one.m, n, None, None, beyond, text)


def _chart(drawn: Sequence[tuple[Series, list[_Mark]]], width: int) -> alt.LayerChart:
    every = [mark for _, held in drawn for mark in held]
    counts = sorted({float(mark.m) for mark in every})
    x = Scale.over("m, prompt vectors", counts, ticks=counts)
    ends = [end for mark in every for end in (mark.n, mark.low, mark.high) if end is not None and end > 0]
    y = Scale.over("n50 (tokens)", ends or [1.0], grid=True)
    layers: list[alt.Chart] = []
    for place, (one, held) in enumerate(drawn):
        # Studies at the same m stand a little apart, so that their intervals do not cover each other.
        aside = 6 * ((place + 1) // 2) * (-1) ** place
        layers += [*_line(one, held, x, y), *_drawn(one, held, x, y, aside)]
    keys = [one.key(_key(one, width)) for one, _ in drawn]
    return stack([*layers, *legend(keys, 300)], width, 300)


def _key(one: Series, width: int) -> str:
    slope, steps = one.entry.slope.value, steps_told(one.entry.conditions)
    if width < 400:
        return one.entry.study
    told = None if slope is None else f"{number(slope)} tokens per vector"
    beside = ", ".join(filter(None, (told, steps)))
    return f"{one.entry.study}: {beside}" if beside else one.entry.study


def _line(one: Series, held: Sequence[_Mark], x: Scale, y: Scale) -> list[alt.Chart]:
    slope, intercept = one.entry.slope, one.entry.intercept
    if slope.value is None or intercept is None or None in (slope.low, slope.high):
        return []
    path = [
        {"m": m, "n": intercept + slope.value * m}
        for m in x.between(float(min(mark.m for mark in held)), float(max(mark.m for mark in held)))
    ]
    inside = [point for point in path if y.low <= point["n"] <= y.high]
    style = one.style
    line = alt.Chart(rows(inside)).mark_line(
        color=style.colour, strokeWidth=1.6, strokeDash=style.dash, opacity=0.8
    )
    return [line.encode(x=x.x("m"), y=y.y("n"))]


def _drawn(one: Series, held: Sequence[_Mark], x: Scale, y: Scale, aside: int) -> list[alt.Chart]:
    style = one.style
    bars = [
        {"m": mark.m, "n": y.inside(mark.n if mark.low is None else mark.low), "to": y.inside(end)}
        for mark in held
        for end in [mark.n if mark.high is None else mark.high]
        if mark.beyond == 0
    ]
    look: dict[str, Any] = {"shape": style.shape, "size": 62, "filled": True, "stroke": style.colour}
    look |= {"opacity": 1, "xOffset": aside, "aria": True, "strokeWidth": 1.6}
    rule = alt.Chart(rows(bars)).mark_rule(color=style.colour, strokeWidth=1.6, xOffset=aside)
    layers = [rule.encode(x=x.x("m"), y=y.y("n"), y2="to")]
    for fill, chosen in ((style.colour, True), (PAPER, False)):
        spots = [
            {"m": mark.m, "n": y.inside(mark.n), "text": mark.text}
            for mark in held
            if _is_sure(mark) is chosen
        ]
        point = alt.Chart(rows(spots)).mark_point(fill=fill, **look)
        layers.append(point.encode(x=x.x("m"), y=y.y("n"), description="text:N"))
    for way, arrow, shift in ((1, "↑", -14), (-1, "↓", 14)):
        past = [{"m": mark.m, "n": y.inside(mark.n), "arrow": arrow} for mark in held if mark.beyond == way]
        text = alt.Chart(rows(past)).mark_text(color=style.text, fontSize=15, xOffset=aside, dy=shift)
        layers.append(text.encode(x=x.x("m"), y=y.y("n"), text="arrow:N"))
    return layers


def _is_sure(mark: _Mark) -> bool:
    return mark.beyond == 0 and not (mark.low is None and mark.high is None)
