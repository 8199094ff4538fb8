"""Slope against width: measured, published, and the limit above."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from lmreach.report.compare.scale import Scale
from lmreach.report.compare.series import Key, Series, legend
from lmreach.report.kit.drawing import DASHES, MUTED, PAPER, Figure, Look, rows, stack
from lmreach.report.kit.format import interval, number, plain
from lmreach.results.compare import ComparisonEntry

__all__ = ["widths"]

_HEIGHT = 320
_SHAPES = {"random words": "circle", "natural text": "square"}
_CAPTION = (
    "Filled marks: slopes of n50 with their 95 % intervals; hollow ones in a study’s colour: without an "
    "interval. Short dashes: that study’s tightest limit under the premise “hidden”."
)
_PUBLISHED = " Hollow grey marks: published slopes, of another protocol, without intervals."


def widths(series: Sequence[Series], published: Sequence[ComparisonEntry]) -> Figure | None:
    """Draw slopes against width; None where there are not two widths."""
    mine = [one for one in series if one.entry.slope.value is not None]
    theirs = [one for one in published if one.width is not None]
    every = [*(one.entry for one in mine), *theirs]
    if len({one.width for one in every}) < 2:
        return None
    described = "; ".join(map(_said, every))
    caption = _CAPTION + (_PUBLISHED if theirs else "")
    wide, narrow = (_chart(mine, theirs, width) for width in (560, 250))
    return Figure("compared-widths", "Slope against width", described, caption, wide, narrow)


def _said(entry: ComparisonEntry) -> str:
    slope = entry.slope
    ends = "" if slope.low is None and slope.high is None else f" ({interval(slope.low, slope.high)})"
    steps = "" if entry.steps is None else f", {number(round(entry.steps))} steps a string"
    return plain(f"{entry.name}: d = {entry.width}, {number(slope.value)} tokens per vector{ends}{steps}")


def _chart(mine: Sequence[Series], theirs: Sequence[ComparisonEntry], width: int) -> alt.LayerChart:
    every = [*(one.entry for one in mine), *theirs]
    sizes = sorted({float(one.width) for one in every if one.width is not None})
    x = Scale.over("d, width of a prompt vector (coordinates)", sizes, ticks=_apart(sizes))
    ends = [end for one in every for end in (one.slope.value, one.slope.low, one.slope.high)]
    tops = [one.entry.hidden.tokens_per_vector for one in mine if one.entry.hidden is not None]
    y = Scale.over("slope (tokens per vector)", [end for end in (*ends, *tops) if end], grid=True)
    layers = [layer for one in mine for layer in _measured(one, x, y)]
    looks = {target: _published_look(target) for target in dict.fromkeys(one.target for one in theirs)}
    for target, style in looks.items():
        layers.append(_published([one for one in theirs if one.target == target], style, x, y))
    keys = [one.key(one.entry.name) for one in mine]
    keys += [Key(f"published, {target}", style, hollow=True, line=False) for target, style in looks.items()]
    return stack([*layers, *legend(keys, _HEIGHT)], width, _HEIGHT)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Return the widths to name on the axis: those a fifth or more above the one before."""
    named: list[float] = []
    for size in sizes:
        if not named or size >= 1.2 * named[-1]:
            named.append(size)
    return named


def _published_look(target: str) -> Look:
    return Look(MUTED, MUTED, _SHAPES.get(target, "diamond"), list(DASHES[0]))


def _measured(one: Series, x: Scale, y: Scale) -> list[alt.Chart]:
    style, slope, size = one.style, one.entry.slope, one.entry.width
    assert slope.value is not None, "only slopes that are known are drawn"
    sure = None not in (slope.low, slope.high)
    low, high = (slope.value if end is None else end for end in (slope.low, slope.high))
    mark: dict[str, Any] = {"shape": style.shape, "size": 70, "filled": True, "stroke": style.colour}
    mark |= {"fill": style.colour if sure else PAPER, "strokeWidth": 1.8, "opacity": 1, "aria": True}
    spot = [{"d": size, "s": y.inside(slope.value), "text": _said(one.entry)}]
    bar = [{"d": size, "s": y.inside(low), "to": y.inside(high)}]
    layers = [
        alt.Chart(rows(bar))
        .mark_rule(color=style.colour, strokeWidth=1.6)
        .encode(x.x("d"), y.y("s"), y2="to"),
        alt.Chart(rows(spot)).mark_point(**mark).encode(x.x("d"), y.y("s"), description="text:N"),
    ]
    limit = one.entry.hidden
    if limit is not None:
        said = f"{one.entry.study}: {limit.name}, {number(limit.tokens_per_vector)} tokens per vector at most"
        top = [{"d": size, "s": y.inside(limit.tokens_per_vector), "text": plain(said)}]
        dash = alt.Chart(rows(top)).mark_tick(
            color=style.colour, thickness=2.5, width=22, orient="horizontal", aria=True
        )
        layers.append(dash.encode(x.x("d"), y.y("s"), description="text:N"))
    return layers


def _published(entries: Sequence[ComparisonEntry], style: Look, x: Scale, y: Scale) -> alt.Chart:
    spots = [
        {"d": one.width, "s": y.inside(one.slope.value), "text": _said(one)}
        for one in entries
        if one.slope.value is not None
    ]
    mark = alt.Chart(rows(spots)).mark_point(
        shape=style.shape,
        size=50,
        filled=True,
        fill=PAPER,
        stroke=MUTED,
        strokeWidth=1.5,
        opacity=1,
        aria=True,
    )
    drawn: alt.Chart = mark.encode(x.x("d"), y.y("s"), description="text:N")
    return drawn
