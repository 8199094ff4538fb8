"""n50 against the number of vectors, the studies over one another."""

from collections.abc import Sequence

import altair as alt

from lmreach.report.compare.marks import Mark, drawn, mark_of
from lmreach.report.compare.scale import Scale
from lmreach.report.compare.series import Series, legend
from lmreach.report.kit.drawing import Figure, rows, stack
from lmreach.report.kit.format import number, plain
from lmreach.report.study.stepped import steps_told, steps_with_level
from lmreach.report.study.words import n50_cell
from lmreach.results.study import Accessibility

__all__ = ["growth"]

_CAPTION = (
    "Marks: n50 with its 95 % interval. A hollow mark: too few strings for an interval. With an arrow: n50 "
    "lies beyond it. Lines: fitted, drawn where the slope has an interval."
)


def growth(series: Sequence[Series], target: str, index: int) -> Figure | None:
    """Draw the studies of one target kind; None where nothing is known of any n50."""
    marks = [(one, _marks(one)) for one in series]
    found = [(one, held) for one, held in marks if held]
    if not found:
        return None
    described = "; ".join(mark.text for _, held in found for mark in held)
    title = f"n50 against m, {plain(target)} targets"
    wide, narrow = (_chart(found, width) for width in (560, 250))
    name = f"compared-n50-{index + 1}"
    return Figure(name, title, described, f"{plain(target)} targets. {_CAPTION}", wide, narrow)


def _marks(one: Series) -> list[Mark]:
    found = [_mark(one.entry.study, condition) for condition in one.entry.conditions]
    return [mark for mark in found if mark is not None]


def _mark(study: str, one: Accessibility) -> Mark | None:
    value, told = n50_cell(one)
    strings = ", ".join(filter(None, (f"{number(one.finished)} strings", steps_with_level([one]))))
    text = plain(f"{study}, m = {one.m}: n50 {value} ({told}); {strings}")
    first = 1.0 if one.points is None else float(one.points.n[0])
    return mark_of(float(one.m), one.n50, text, limit=float(one.limit), first=first)


def _chart(found: Sequence[tuple[Series, list[Mark]]], width: int) -> alt.LayerChart:
    every = [mark for _, held in found for mark in held]
    counts = sorted({mark.x for mark in every})
    x = Scale.over("m, prompt vectors", counts, ticks=counts)
    ends = [end for mark in every for end in (mark.n, mark.low, mark.high) if end is not None and end > 0]
    y = Scale.over("n50 (tokens)", ends or [1.0], grid=True)
    layers: list[alt.Chart] = []
    for place, (one, held) in enumerate(found):
        # Studies at the same m stand a little apart, so that their intervals do not cover each other.
        aside = 6 * ((place + 1) // 2) * (-1) ** place
        layers += [*_line(one, held, x, y), *drawn(one.style, held, x, y, aside)]
    keys = [one.key(_key(one, width)) for one, _ in found]
    return stack([*layers, *legend(keys, 300)], width, 300)


def _key(one: Series, width: int) -> str:
    slope, steps = one.entry.slope.value, steps_told(one.entry.conditions)
    if width < 400:
        return one.entry.study
    told = None if slope is None else f"{number(slope)} tokens per vector"
    beside = ", ".join(filter(None, (told, steps)))
    return f"{one.entry.study}: {beside}" if beside else one.entry.study


def _line(one: Series, held: Sequence[Mark], x: Scale, y: Scale) -> list[alt.Chart]:
    slope, intercept = one.entry.slope, one.entry.intercept
    if slope.value is None or intercept is None or None in (slope.low, slope.high):
        return []
    path = [
        {"x": m, "n": intercept + slope.value * m}
        for m in x.between(float(min(mark.x for mark in held)), float(max(mark.x for mark in held)))
    ]
    inside = [point for point in path if y.low <= point["n"] <= y.high]
    style = one.style
    line = alt.Chart(rows(inside)).mark_line(
        color=style.colour, strokeWidth=1.6, strokeDash=style.dash, opacity=0.8
    )
    return [line.encode(x=x.x("x"), y=y.y("n"))]
