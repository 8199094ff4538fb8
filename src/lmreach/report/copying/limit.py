"""Copying beside the limit: tokens emitted against prompt vectors, on two logarithmic axes."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from lmreach.report.copying import words as copy_words
from lmreach.report.copying.axis import Axis
from lmreach.report.kit.drawing import INK, MUTED, PAPER, Figure, Look, look, rows, spread, stack
from lmreach.report.kit.format import number, plain
from lmreach.results.copying import Copying
from lmreach.results.limits import Limit

__all__ = ["limit_figure"]

_WIDTH, _NARROW, _HEIGHT = 500, 180, 300
_LABELS = (190, 130)  # widest label beside the wide and the narrow plot, in pixels
_LINE = 15  # height of one line of a label in pixels
_LIMIT = Look(MUTED, MUTED, "", [5, 3])

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: points (prompt vectors, tokens), those that are marked, intervals (m, low, high)."""

    style: Look
    label: tuple[str, str]
    points: list[Point]
    marked: list[Point]
    bars: list[tuple[float, float, float]]


def limit_figure(copying: Copying, limits: Sequence[Limit]) -> Figure | None:
    """Draw tokens emitted against prompt vectors: the limit, what is crammed, and where copying stands."""
    lines = [*_copying(copying), *_crammed(copying)]
    lines += _limit(limits, lines)
    if len(lines) < 2:
        return None
    caption = (
        "Both axes logarithmic. Upper line: the most that counting allows (tightest proved limit, premise "
        "hidden). Copying takes a prompt vector or more per character, far below it; its line ends at n50."
    )
    told = " ".join([*copy_words.sentences(copying, limits)[-1:], copy_words.BESIDE])
    wide, narrow = (
        _chart(lines, width, limit) for width, limit in zip((_WIDTH, _NARROW), _LABELS, strict=True)
    )
    return Figure("copy-limit", "Copying beside the limit", plain(told), caption, wide, narrow)


def _copying(copying: Copying) -> list[_Line]:
    n50, lengths = copying.n50.value, copying.lengths
    if n50 is None or not lengths:
        return []
    end = (copy_words.prompt_at(copying, n50), n50)
    done = [(float(one.prompt), float(one.length)) for one in lengths if one.length < n50]
    label = ("copying", f"n50 {number(n50)}")
    return [
        _Line(
            look(0), label, [*done, end], [end], [(end[0], copying.n50.low or n50, copying.n50.high or n50)]
        )
    ]


def _crammed(copying: Copying) -> list[_Line]:
    points = [(float(one.m), one.n50.value) for one in copying.cramming if one.n50.value is not None]
    if not points:
        return []
    bars = [
        (float(one.m), one.n50.low, one.n50.high)
        for one in copying.cramming
        if one.n50.value is not None and one.n50.low is not None and one.n50.high is not None
    ]
    label = ("optimised vectors", f"n50 {number(points[-1][1])} at m = {points[-1][0]:g}")
    return [_Line(look(2), label, points, points, bars)]


def _limit(limits: Sequence[Limit], lines: Sequence[_Line]) -> list[_Line]:
    per = copy_words.hidden_limit(limits)
    if per is None or not lines:
        return []
    across = [m for line in lines for m, _ in line.points]
    points = [(m, per * m) for m in (min(1.0, *across), max(across))]
    return [_Line(_LIMIT, ("limit", f"{number(per)} tokens per vector"), points, [], [])]


def _chart(lines: Sequence[_Line], width: int, limit: int) -> alt.LayerChart:
    xs = [m for line in lines for m, _ in line.points]
    ys = [n for line in lines for _, n in line.points] + [low for line in lines for _, low, _ in line.bars]
    across = Axis(min(xs) * 0.85, max(xs) * 1.15, True, width)
    up = Axis(max(min(ys) * 0.8, 0.5), max(ys) * 1.3, True, _HEIGHT)
    drawn = [layer for line in lines for layer in _layers(line, across, up)]
    return stack([*drawn, *_side_labels(lines, across, up, limit)], width, _HEIGHT)


def _layers(line: _Line, across: Axis, up: Axis) -> list[alt.Chart]:
    x = across.encode(alt.X, "m", "prompt vectors (positions)")
    y = up.encode(alt.Y, "n", "tokens emitted")
    points, marked = (
        rows([{"m": m, "n": max(n, up.low)} for m, n in found]) for found in (line.points, line.marked)
    )
    bars = [{"m": m, "n": max(low, up.low), "to": min(high, up.high)} for m, low, high in line.bars]
    colour = line.style.colour
    layers = [
        alt.Chart(points)
        .mark_line(color=colour, strokeWidth=1.8, strokeDash=line.style.dash)
        .encode(x=x, y=y),
        alt.Chart(rows(bars)).mark_rule(color=colour, strokeWidth=4, opacity=0.5).encode(x=x, y=y, y2="to"),
    ]
    if line.marked:
        mark = alt.Chart(marked).mark_point(
            shape=line.style.shape,
            size=60,
            filled=True,
            fill=colour,
            stroke=PAPER,
            strokeWidth=0.8,
            opacity=1,
        )
        layers.append(mark.encode(x=x, y=y))
    return layers


def _side_labels(lines: Sequence[_Line], across: Axis, up: Axis, limit: int) -> list[alt.Chart]:
    wanted = [up.pixel(line.points[-1][1]) for line in lines]
    places = spread(wanted, 2 * _LINE + 6, _LINE, _HEIGHT - _LINE)
    leads, texts = list[dict[str, object]](), list[dict[str, object]]()
    for line, at, place in zip(lines, wanted, places, strict=True):
        left, top = across.pixel(line.points[-1][0]) + 6, _HEIGHT - place
        ends = {"x": left, "y": _HEIGHT - at, "x2": across.pixels + 12, "y2": top}
        leads.append({**ends, "colour": line.style.text})
        inks = (line.style.text, INK)
        for text, shift, ink in zip(line.label, (-_LINE / 2, _LINE / 2), inks, strict=True):
            texts.append({"x": across.pixels + 16, "y": top + shift, "text": plain(text), "colour": ink})
    x, y = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    colour = alt.Color("colour:N", scale=None)
    rule = alt.Chart(rows(leads)).mark_rule(opacity=0.5, strokeWidth=0.8)
    text_mark = alt.Chart(rows(texts)).mark_text(align="left", baseline="middle", limit=limit)
    return [
        rule.encode(x=x, y=y, x2="x2", y2="y2", color=colour),
        text_mark.encode(x=x, y=y, text="text:N", color=colour),
    ]
