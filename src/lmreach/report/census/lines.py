"""Lines with a label of two lines beside each end: how the figures of a census are drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import altair as alt

from lmreach.report.census.entries import rough
from lmreach.report.kit.drawing import INK, MUTED, PAPER, Figure, count_ticks, look, rows, spread, stack
from lmreach.report.kit.format import plain

__all__ = ["Series", "line_figure"]

_LINE = 15  # height of one line of a label in pixels


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its points, its look (by index), whether it is a limit, and its label in two lines."""

    points: Sequence[tuple[float, float]]
    index: int
    limit: bool
    label: tuple[str, str]


def line_figure(
    name: str,
    title: str,
    description: str,
    caption: str,
    series: Sequence[Series],
    x_title: str,
    *,
    log: bool,
) -> Figure:
    """Draw lines over linear counts of prompts, or over lengths with counts on a log axis and marks."""
    wide = _chart(series, x_title, 560, 190, log=log)
    narrow = _chart(series, x_title, 200, 120, log=log)
    return Figure(name, title, plain(description), caption, wide, narrow)


def _chart(series: Sequence[Series], x_title: str, width: int, limit: int, *, log: bool) -> alt.LayerChart:
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    x = (min(xs) - 0.3, max(xs) + 0.3) if log else (0.0, max(xs) * 1.005)
    y = (min([1.0, *ys]), max(ys) * 1.6) if log else (0.0, max(ys) * 1.04)
    height = max(380, 2 * (_LINE + 6) * len(series))
    frame = _Frame(x, y, log, width, height)
    x_axis, y_axis = frame.encode_x(x_title), frame.encode_y()
    layers = _lines(series, frame, x_axis, y_axis, marks=log)
    return stack([*layers, *_labels(series, frame, limit)], width, height)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Axes in data units and size in pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    log: bool
    width: int
    height: int

    def encode_x(self, title: str) -> alt.X:
        """Encode a length or a number of prompts."""
        scale = alt.Scale(type="linear", domain=list(self.x), nice=False, zero=False)
        axis = alt.Axis(title=title, grid=False, values=self._ticks(), format=",.7~g", labelOverlap=True)
        return alt.X("x:Q", scale=scale, axis=axis)

    def _ticks(self) -> list[int]:
        # Lengths are few whole numbers, each of which was counted.
        low, high = (round(end) for end in self.x)
        return list(range(low, high + 1)) if self.log and high - low < 20 else count_ticks(self.x[1])

    def encode_y(self) -> alt.Y:
        """Encode a number of outputs."""
        title = "different outputs"
        if not self.log:
            scale = alt.Scale(type="linear", domain=list(self.y), nice=False, zero=False)
            axis = alt.Axis(title=title, values=count_ticks(self.y[1]), format=",.7~g")
            return alt.Y("y:Q", scale=scale, axis=axis)
        ticks = _decades(*self.y)
        words = ",".join(f"'{round(math.log10(t))}':'{rough(t)}'" for t in ticks)
        axis = alt.Axis(title=title, values=ticks, labelExpr=f"{{{words}}}[round(log(datum.value)/LN10)]")
        scale = alt.Scale(type="log", domain=list(self.y), nice=False, zero=False, clamp=True)
        return alt.Y("y:Q", scale=scale, axis=axis)

    def pixel(self, y: float) -> float:
        """Return the height above the axis in pixels."""
        low, high = self.y
        if not self.log:
            return self.height * (y - low) / (high - low)
        return self.height * math.log(max(y, low) / low) / math.log(high / low)


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten within the axis, at most eight of them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // 8))
    return [10.0**k for k in range(first, last + 1, step)]


def _lines(series: Sequence[Series], frame: _Frame, x: alt.X, y: alt.Y, *, marks: bool) -> list[alt.Chart]:
    """Draw limits, lines and marks, each in one layer: a chart of many layers is slow to render."""
    data = [
        {
            "x": a,
            "y": max(b, frame.y[0]),
            "line": index,
            "limit": one.limit,
            "colour": look(one.index).text if one.limit else look(one.index).colour,
            "shape": look(one.index).shape,
        }
        for index, one in enumerate(series)
        for a, b in one.points
    ]
    limits, found = ([row for row in data if row["limit"] == kind] for kind in (True, False))
    place = {"x": x, "y": y, "detail": "line:N"}
    colour = alt.Color("colour:N", scale=None)
    dashed = alt.Chart(rows(limits)).mark_line(strokeWidth=1.2, strokeDash=[5, 3])
    layers = [
        dashed.encode(color=colour, **place),
        alt.Chart(rows(found)).mark_line(strokeWidth=2).encode(color=colour, **place),
    ]
    if marks:
        dots = alt.Chart(rows(found)).mark_point(
            size=46, filled=True, stroke=PAPER, strokeWidth=0.8, opacity=1
        )
        fill = alt.Fill("colour:N", scale=None)
        layers.append(dots.encode(fill=fill, shape=alt.Shape("shape:N", scale=None), **place))
    return layers


def _labels(series: Sequence[Series], frame: _Frame, limit: int) -> list[alt.Chart]:
    """Write two lines beside the end of every line, moved apart where they would touch."""
    wanted = [frame.pixel(one.points[-1][1]) for one in series]
    places = spread(wanted, 2 * _LINE + 4, _LINE, frame.height - _LINE)
    right = frame.width + 1
    leads, first, second = list[dict[str, object]](), list[dict[str, object]](), list[dict[str, object]]()
    for one, at, up in zip(series, wanted, places, strict=True):
        colour = MUTED if one.limit else look(one.index).text
        top = frame.height - up
        leads.append({"x": right, "y": frame.height - at, "x2": right + 10, "y2": top, "colour": colour})
        for lines, shift, text in zip((first, second), (-_LINE / 2, _LINE / 2), one.label, strict=True):
            ink = colour if lines is first or one.limit else INK
            line = {"x": right + 14, "y": top + shift, "text": plain(text), "colour": ink}
            (lines if one.limit is False else second).append(line)
    # Labels stand beyond the plot, where data scales do not reach: they are placed in pixels.
    x, y = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    colours = alt.Color("colour:N", scale=None)
    rule = alt.Chart(rows(leads)).mark_rule(opacity=0.7)
    layers = [rule.encode(x=x, y=y, x2="x2", y2="y2", color=colours)]
    weights: tuple[tuple[list[dict[str, object]], Literal["bold", "normal"]], ...]
    weights = ((first, "bold"), (second, "normal"))
    for lines, weight in weights:
        mark = alt.Chart(rows(lines)).mark_text(
            align="left", baseline="middle", limit=limit, fontWeight=weight
        )
        layers.append(mark.encode(x=x, y=y, text="text:N", color=colours))
    return layers
