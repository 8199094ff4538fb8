"""Reach against bits per coordinate, free coordinates and m, each beside what counting alone allows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from lmreach.report.compare.marks import Mark, drawn, mark_of
from lmreach.report.compare.scale import Scale
from lmreach.report.compare.series import Key, legend
from lmreach.report.compare.stored import Stored, alike
from lmreach.report.kit.drawing import COLOURS, MUTED, Figure, Look, log_ticks, look, rows, stack
from lmreach.report.kit.format import interval, number, plain
from lmreach.stats.power import PowerLaw, power_law

__all__ = ["AXES", "Axis", "Strand", "axes_figures", "axis_figure", "strands"]

_HEIGHT, _WIDE, _NARROW = 300, 420, 235
_ALLOWED = [5, 4]  # dashes of what counting allows
# Where two formats have as many bits, the line goes through the first named of them.
_ON_THE_LINE = ("sign", "int2", "int3", "int4", "int8", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Axis:
    """One of the three: what grows along it, and what is the same on a line.

    Attributes
    ----------
    place
        Where a point stands.
    same
        What the points of a line have in common, as parts of its name; the first is the group.
    """

    name: str
    title: str
    heading: str
    place: Callable[[Stored], float]
    same: Callable[[Stored], tuple[str, ...]]


def _subspace(one: Stored) -> str:
    return "" if one.free == one.width else f"K = {one.free}"


AXES = (
    Axis(
        "bits",
        "b, bits per coordinate",
        "bits per coordinate",
        lambda one: one.bits,
        lambda one: (one.group, f"m = {one.m}", _subspace(one)),
    ),
    Axis(
        "free",
        "K, free coordinates of a vector",
        "free coordinates",
        lambda one: float(one.free),
        lambda one: (one.group, one.format, f"m = {one.m}"),
    ),
    Axis(
        "m",
        "m, prompt vectors",
        "the number of vectors",
        lambda one: float(one.m),
        lambda one: (one.group, one.format, _subspace(one)),
    ),
)


@dataclass(frozen=True, slots=True)
class Strand:
    """Points that differ along one axis alone, in the order of the axis; one steps number throughout."""

    axis: Axis
    parts: tuple[str, ...]
    steps: int | None
    points: tuple[Stored, ...]

    @property
    def line(self) -> list[Stored]:
        """One point a place, of those with a value: what a line is drawn through."""
        kept: dict[float, Stored] = {}
        for one in sorted(self.points, key=_rank):
            if one.n50.value is not None:
                kept.setdefault(self.axis.place(one), one)
        return [kept[place] for place in sorted(kept)]

    @property
    def growth(self) -> PowerLaw | None:
        """Exponent of n50 along the axis; None where too little is known."""
        sure = [one for one in self.line if one.n50.low is not None and one.n50.high is not None]
        columns: list[tuple[float, ...]] = [
            (self.axis.place(one), one.n50.value or 0.0, one.n50.low or 0.0, one.n50.high or 0.0)
            for one in sure
        ]
        return power_law(*zip(*columns, strict=True)) if columns else None

    def label(self, *, group: bool, steps: bool) -> str:
        """Return its name; ``group``, ``steps``: whether these have to be told apart."""
        parts = [*(self.parts if group else self.parts[1:])]
        if steps and self.steps is not None:
            parts.append(f"{self.steps:,} steps")
        return ", ".join(filter(None, parts))


def _rank(one: Stored) -> int:
    names = _ON_THE_LINE
    return names.index(one.format) if one.format in names else len(names)


def strands(axis: Axis, found: Sequence[Stored]) -> list[Strand]:
    """Return what can be drawn along an axis: points at two places or more, the same in all else.

    Points of different steps are never on one line.
    """
    grouped: dict[tuple[tuple[str, ...], int | None], list[Stored]] = {}
    for one in found:
        grouped.setdefault((axis.same(one), one.steps), []).append(one)
    made = [
        Strand(axis, parts, steps, tuple(sorted(own, key=axis.place)))
        for (parts, steps), own in grouped.items()
        if len({axis.place(one) for one in own}) > 1
    ]
    return sorted(made, key=lambda one: (one.parts[0], one.steps or 0, one.points[0].counted))


def axes_figures(found: Sequence[Stored]) -> list[Figure]:
    """Return the figures that there are points for, of the three."""
    figures = [axis_figure(axis, found) for axis in AXES]
    return [one for one in figures if one is not None]


def axis_figure(axis: Axis, found: Sequence[Stored]) -> Figure | None:
    """Draw one axis; None where nothing differs along it alone."""
    every = strands(axis, found)
    # Beyond six looks repeat: those with most points are drawn, the tables hold all.
    shown = sorted(every, key=lambda one: -len(one.points))[: len(COLOURS)]
    lines = [(one, _marks(one)) for one in every if one in shown]
    lines = [(one, held) for one, held in lines if held]
    if not lines:
        return None
    told = "; ".join(mark.text for _, held in lines for mark in held)
    exponents = "; ".join(
        f"{_name(one, found)}: {number(law.exponent, 2)} ({interval(law.low, law.high, 2)})"
        for one, _ in lines
        if (law := one.growth) is not None
    )
    left = len(every) - len(lines)
    caption = (
        "Marks: n50 with its 95 % interval. Dashed: what counting allows, b·K·m / log₂ V tokens. Both axes "
        "are logarithmic: reach that is proportional runs parallel to the dashed line."
        + (f" Exponents of n50 (1: proportional), with 95 % intervals: {exponents}." if exponents else "")
        + (f" Left out here: {left} more such lines." if left else "")
    )
    wide, narrow = (_chart(axis, lines, found, width) for width in (_WIDE, _NARROW))
    title = f"Tokens reached against {axis.heading}"
    return Figure(f"stored-{axis.name}", title, told, plain(caption), wide, narrow)


def _name(one: Strand, found: Sequence[Stored]) -> str:
    groups, steps = len({each.group for each in found}) > 1, len({each.steps for each in found}) > 1
    return plain(one.label(group=groups, steps=steps))


def _marks(strand: Strand) -> list[Mark]:
    found = [
        mark_of(strand.axis.place(one), one.n50, _said(one), limit=float(one.limit)) for one in strand.points
    ]
    return [one for one in found if one is not None]


def _said(one: Stored) -> str:
    n50, bits = one.n50, math.log2(one.vocab)
    value = n50.verdict.replace("_", " ") if n50.value is None else f"{number(n50.value)} tokens"
    ids = "" if n50.value is None else f", {number(n50.value * bits)} bits"
    after = "" if one.steps is None else f", {one.steps:,} steps"
    return plain(
        f"{one.group}, within {one.within.text or 'float32'}, m = {one.m}: n50 {value} "
        f"({interval(n50.low, n50.high)}){ids} of {number(one.bits * one.free * one.m)} stored; "
        f"{one.strings} strings{after}"
    )


def _chart(
    axis: Axis, lines: Sequence[tuple[Strand, list[Mark]]], found: Sequence[Stored], width: int
) -> alt.LayerChart:
    places = sorted({mark.x for _, held in lines for mark in held})
    ends = [end for _, held in lines for mark in held for end in (mark.n, mark.low, mark.high)]
    tops = [one.counted for strand, _ in lines for one in strand.points]
    x = _logarithmic(axis.title, places, ticks=places)
    y = _logarithmic("tokens", [end for end in (*ends, *tops) if end is not None and end > 0])
    layers: list[alt.Chart] = []
    for place, (strand, held) in enumerate(lines):
        style = look(place)
        layers += [*_allowed(strand, style, x, y), *_joined(strand, style, x, y)]
        layers += drawn(style, held, x, y, 0)
    if alike([one for strand, _ in lines for one in strand.points]):
        layers += _in_bits(y, math.log2(found[0].vocab), width)
    # Dashes mean what counting allows, so lines of n50 are whole.
    keys = [
        Key(_name(strand, found), replace(look(place), dash=[1, 0]))
        for place, (strand, _) in enumerate(lines)
    ]
    return stack([*layers, *legend(keys, _HEIGHT)], width, _HEIGHT)


def _logarithmic(title: str, values: Sequence[float], ticks: Sequence[float] | None = None) -> Scale:
    low, high = min(values) / 1.25, max(values) * 1.25
    return Scale(
        title, low, high, True, tuple(log_ticks(low, high) if ticks is None else ticks), ticks is None
    )


def _allowed(strand: Strand, style: Look, x: Scale, y: Scale) -> list[alt.Chart]:
    """Draw what counting allows: a straight line through 0, from the first point to the last."""
    first = strand.points[0]
    each = first.counted / strand.axis.place(first)
    path = [
        {"x": place, "n": each * place}
        for place in x.between(strand.axis.place(first), strand.axis.place(strand.points[-1]))
        if y.low <= each * place <= y.high
    ]
    line = alt.Chart(rows(path)).mark_line(
        color=style.colour, strokeWidth=1.4, strokeDash=_ALLOWED, opacity=0.8
    )
    return [line.encode(x=x.x("x"), y=y.y("n"))]


def _joined(strand: Strand, style: Look, x: Scale, y: Scale) -> list[alt.Chart]:
    path = [{"x": strand.axis.place(one), "n": one.n50.value} for one in strand.line]
    line = alt.Chart(rows(path)).mark_line(color=style.colour, strokeWidth=1.6, opacity=0.8)
    return [line.encode(x=x.x("x"), y=y.y("n"))]


def _in_bits(y: Scale, bits: float, width: int) -> list[alt.Chart]:
    """Write the axis once more on the right, in bits of the ids."""
    at = alt.X("x:Q", scale=None, axis=None)
    ticks = [
        {"x": width + 6, "n": tick / bits, "text": number(round(tick))}
        for tick in log_ticks(y.low * bits, y.high * bits)
        if y.low <= tick / bits <= y.high
    ]
    style: dict[str, Any] = {"align": "left", "baseline": "middle", "color": MUTED}
    labels = alt.Chart(rows(ticks)).mark_text(**style).encode(x=at, y=y.y("n"), text="text:N")
    head = [{"x": width + 6, "y": -22, "text": "bits"}]
    up = alt.Y("y:Q", scale=None, axis=None)
    title = alt.Chart(rows(head)).mark_text(**style).encode(x=at, y=up, text="text:N")
    return [labels, title]
