"""The section of copying: shares against length, the limit beside it, and how it was learned.

Everything is read from `lmreach.results.copying.Copying`; nothing is computed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from lmreach.report.copying import tables as copy_tables
from lmreach.report.copying import words as copy_words
from lmreach.report.copying.axis import Axis
from lmreach.report.copying.limit import limit_figure
from lmreach.report.kit.drawing import (
    MUTED,
    PAPER,
    Figure,
    Look,
    look,
    rows,
    spread,
    stack,
)
from lmreach.report.kit.format import number, plain
from lmreach.report.kit.table import Table
from lmreach.results import Interval
from lmreach.results.copying import Copying, CopyLength, Counted, Crammed, LearningPoint
from lmreach.results.limits import Limit

__all__ = ["Parts", "copying_figures", "learning_figure", "limit_figure", "parts", "shares_figure"]

_WIDTH, _NARROW, _HEIGHT = 560, 220, 300
_LINE = 15  # height of one line of a label in pixels
_COPY, _CHARACTERS, _CRAM = 0, 1, 2  # looks


@dataclass(frozen=True, slots=True)
class Parts:
    """What the section of copying holds."""

    sentences: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


def parts(copying: Copying, limits: Sequence[Limit] = ()) -> Parts:
    """Return sentences, figures and tables of copying, the model's limits beside it."""
    return Parts(
        tuple(copy_words.sentences(copying, limits)),
        tuple(copying_figures(copying, limits)),
        tuple(copy_tables.tables(copying)),
    )


def copying_figures(copying: Copying, limits: Sequence[Limit] = ()) -> list[Figure]:
    """Return the figures there are data for: shares against length, the limit, the learning curve."""
    drawn = (shares_figure(copying), limit_figure(copying, limits), learning_figure(copying))
    return [figure for figure in drawn if figure is not None]


def shares_figure(copying: Copying) -> Figure | None:
    """Draw exact match and per-character accuracy against length, and what optimised vectors reach."""
    found = copying.lengths
    if not found:
        return None
    title = "Share of strings copied, by length"
    said = (
        "Circles and band: strings that came out whole, with 95 % intervals; triangles: characters that were "
        "right at their place; mark on the one-half line: n50 and its interval."
    )
    if copying.cramming:
        said += " Steps: strings that optimised vectors make the same model emit, m vectors."
    if copying.decoding == "teacher_forced":
        said += " Teacher-forced: the true answer was fed back."
    told = " ".join(copy_words.sentences(copying)[:3])
    wide, narrow = (_shares(copying, width) for width in (_WIDTH, _NARROW))
    return Figure("copy-shares", title, plain(told), said, wide, narrow)


def _shares(copying: Copying, width: int) -> alt.LayerChart:
    found = copying.lengths
    crammed = copying.cramming
    longest = max([one.length for one in found] + [n for one in crammed for n in one.curve.n[-1:]])
    shortest = min(one.length for one in found)
    log = longest > 8 * shortest
    axis = Axis(0.9 * shortest if log else 0.0, 1.06 * longest, log, width)
    x = axis.encode(alt.X, "n", f"length of the string ({copy_words.unit(copying)})")
    half = alt.Chart(rows([{"share": 0.5}])).mark_rule(color=MUTED, strokeDash=[2, 3]).encode(y=_y())
    layers = [
        half,
        *_trained(copying, x),
        *_crammed(crammed, axis, x),
        *_characters(found, x),
        *_copied(found, copying.counted, x),
        *_n50_mark(copying.n50, axis, x),
        *_names(copying, axis),
    ]
    return stack(layers, width, _HEIGHT)


def _y(field: str = "share", title: str = "share") -> alt.Y:
    axis = alt.Axis(title=title, format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)


def _trained(copying: Copying, x: alt.X | alt.Y) -> list[alt.Chart]:
    to = copying.trained_to
    if not to:
        return []
    data = rows([{"n": to, "share": 0.06, "name": f"trained up to {to}"}])
    return [
        alt.Chart(data).mark_rule(color=MUTED, strokeWidth=1).encode(x=x),
        alt.Chart(data).mark_text(align="right", dx=-5, color=MUTED).encode(x=x, y=_y(), text="name:N"),
    ]


def _copied(found: Sequence[CopyLength], counted: Counted, x: alt.X | alt.Y) -> list[alt.Chart]:
    style = look(_COPY)
    data = rows(
        [
            {"n": one.length, "share": right.share, "low": right.low, "high": right.high}
            for one in found
            for right in (one.counting(counted),)
        ]
    )
    return [
        alt.Chart(data).mark_area(color=style.colour, opacity=0.15).encode(x=x, y=_y("low"), y2="high"),
        alt.Chart(data).mark_line(color=style.colour, strokeWidth=2).encode(x=x, y=_y()),
        _dots(data, style, 40, x),
    ]


def _characters(found: Sequence[CopyLength], x: alt.X | alt.Y) -> list[alt.Chart]:
    style = look(_CHARACTERS)
    data = rows([{"n": one.length, "share": one.characters.share} for one in found])
    return [
        alt.Chart(data)
        .mark_line(color=style.colour, strokeWidth=1.5, strokeDash=style.dash)
        .encode(x=x, y=_y()),
        _dots(data, style, 34, x),
    ]


def _dots(data: alt.Data, style: Look, size: int, x: alt.X | alt.Y) -> alt.Chart:
    """Draw a filled mark at every length, set off from lines beneath it."""
    mark = alt.Chart(data).mark_point(
        shape=style.shape,
        size=size,
        filled=True,
        fill=style.colour,
        stroke=PAPER,
        strokeWidth=0.8,
        opacity=1,
    )
    dots: alt.Chart = mark.encode(x=x, y=_y())
    return dots


def _crammed(crammed: Sequence[Crammed], axis: Axis, x: alt.X | alt.Y) -> list[alt.Chart]:
    style = look(_CRAM)
    data = [
        {"n": max(n, axis.low), "share": share, "m": one.m}
        for one in crammed
        for n, share in zip([axis.low, *one.curve.n], [*one.curve.share[:1], *one.curve.share], strict=False)
    ]
    if not data:
        return []
    line = alt.Chart(rows(data)).mark_line(
        interpolate="step-before", color=style.colour, strokeWidth=1.3, strokeDash=style.dash
    )
    return [line.encode(x=x, y=_y(), detail="m:N")]


def _n50_mark(n50: Interval, axis: Axis, x: alt.X | alt.Y) -> list[alt.Chart]:
    if n50.value is None or n50.low is None or n50.high is None:
        return []
    value, low, high = (min(max(end, axis.low), axis.high) for end in (n50.value, n50.low, n50.high))
    style = look(_COPY)
    bar = alt.Chart(rows([{"n": low, "to": high, "share": 0.5}])).mark_rule(
        color=style.colour, strokeWidth=4, opacity=0.55
    )
    ring = alt.Chart(rows([{"n": value, "share": 0.5}])).mark_point(
        shape="circle", size=70, filled=True, fill=PAPER, stroke=style.colour, strokeWidth=2, opacity=1
    )
    return [bar.encode(x=x, x2="to", y=_y()), ring.encode(x=x, y=_y())]


def _names(copying: Copying, axis: Axis) -> list[alt.Chart]:
    """Write names above the plot, moved apart where needed, with thin lines to the curves' middles."""
    known, last = copying.n50.value, copying.lengths[-1]
    # Without an n50 the name points at the end of its own curve, wherever that lies.
    far = (float(last.length), last.counting(copying.counted).share)
    tops = [(*(far if known is None else (known, 0.5)), "copied", look(_COPY).text)]
    for one in copying.cramming:
        value = one.n50.value
        middle = value if value is not None else (one.curve.n or (1,))[-1]
        tops.append((middle, 0.5, f"m = {one.m}", look(_CRAM).text))
    places = spread([axis.pixel(n) for n, *_ in tops], 48, 24, axis.pixels - 24)
    data = [
        {
            "x": place,
            "to": axis.pixel(n),
            "top": 0,
            "at": _HEIGHT * (1 - share),
            "name": name,
            "colour": colour,
        }
        for place, (n, share, name, colour) in zip(places, tops, strict=True)
    ]
    # Placed in pixels: the scales of the data end with the plot.
    px, py = alt.X("x:Q", scale=None, axis=None), alt.Y("top:Q", scale=None, axis=None)
    colour = alt.Color("colour:N", scale=None)
    end = copying.lengths[-1].characters.share
    side = [
        {
            "x": axis.pixels + 6,
            "top": _HEIGHT * (1 - end),
            "name": "characters",
            "colour": look(_CHARACTERS).text,
        }
    ]
    lead = alt.Chart(rows(data)).mark_rule(strokeWidth=0.7, opacity=0.6)
    name = alt.Chart(rows(data)).mark_text(baseline="bottom", dy=-6, fontWeight="bold")
    right = alt.Chart(rows(side)).mark_text(align="left", fontWeight="bold")
    return [
        lead.encode(x=px, x2="to", y=py, y2="at", color=colour),
        name.encode(x=px, y=py, text="name:N", color=colour),
        right.encode(x=px, y=py, text="name:N", color=colour),
    ]


def learning_figure(copying: Copying) -> Figure | None:
    """Draw exact match on held-out strings against training steps."""
    curve = () if copying.training is None else copying.training.curve
    if len(curve) < 2:
        return None
    last = curve[-1]
    told = (
        f"Share of held-out strings of training lengths copied without a mistake; last: "
        f"{number(100 * float(last.exact))} % after {number(int(last.step))} steps, loss "
        f"{number(float(last.loss))} nats per character."
    )
    wide, narrow = (_learning(curve, width) for width in (_WIDTH, _NARROW))
    return Figure("copy-learning", "Learning curve", plain(told), told, wide, narrow)


def _learning(curve: Sequence[LearningPoint], width: int) -> alt.LayerChart:
    axis = Axis(0.0, float(curve[-1].step) * 1.02, False, width)
    x = axis.encode(alt.X, "step", "training step")
    data = rows([{"step": one.step, "share": one.exact} for one in curve])
    style = look(_COPY)
    line = alt.Chart(data).mark_line(color=style.colour, strokeWidth=1.8)
    return stack([line.encode(x=x, y=_y(title="held-out strings copied"))], width, 180)
