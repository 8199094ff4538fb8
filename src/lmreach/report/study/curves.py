"""The accessibility figure of one target kind: share of strings emitted in full, against their length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import altair as alt

from lmreach.report.kit.drawing import (
    INK,
    MUTED,
    PAPER,
    Figure,
    Look,
    count_ticks,
    log_ticks,
    rows,
    spread,
    stack,
)
from lmreach.report.kit.format import plain
from lmreach.report.study import stepped, words
from lmreach.results.base import Columns
from lmreach.results.study import Accessibility, Points, Turnbull

WIDTH, HEIGHT = 340, 240
_LABEL_GAP = 30


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve as drawn.

    ``steps`` of (n, share, low, high), joined smoothly for a fitted curve; n50 with interval if known; ends
    that were censored; ``points`` at single lengths with their intervals; ``falls``: stretches within which
    the share is only known to fall from one value to another.
    """

    m: float
    steps: list[dict[str, float]]
    n50: tuple[float, float, float] | None
    ends: list[dict[str, float]]
    points: list[dict[str, float]]
    falls: list[dict[str, float]]
    smooth: bool

    @classmethod
    def of(cls, record: Accessibility) -> Self | None:
        """Read a record; None if it holds no curve that can be drawn."""
        fitted = None if record.fit is None else record.fit.curve
        steps, points = _columns(record.curve or fitted), _columns(record.points)
        if not (steps or points):
            return None
        falls = _falls(record.turnbull, points)
        return cls(record.m, steps, _n50(record), _ends(record, steps), points, falls, bool(fitted))

    @property
    def lengths(self) -> list[float]:
        """Every n that is drawn."""
        return [one["n"] for one in (*self.steps, *self.points)]

    @property
    def middle(self) -> tuple[float, float]:
        """The point that the label points at: n50 if known, else where the curve last is above one half."""
        if self.n50:
            return self.n50[0], 0.5
        steps = self.steps or self.points
        above = [step for step in steps if step["share"] >= 0.5] or steps[:1]
        return above[-1]["n"], above[-1]["share"]


def _columns(curve: Columns | Points | None) -> list[dict[str, float]]:
    """Return the rows of a curve."""
    if curve is None:
        return []
    columns = zip(curve.n, curve.share, curve.low, curve.high, strict=True)
    return [{"n": n, "share": share, "low": low, "high": high} for n, share, low, high in columns if n > 0]


def _falls(turnbull: Turnbull | None, points: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Return where Turnbull's curve falls, left to right; a fall without an end is not drawn."""
    if turnbull is None or not points:
        return []
    drawn, share = [], 1.0
    for low, high, mass in zip(turnbull.low, turnbull.high, turnbull.mass, strict=True):
        if high is not None:
            drawn.append({"n": low, "to": high + 1, "share": share, "left": max(share - mass, 0.0)})
        share -= mass
    return drawn


def _n50(record: Accessibility) -> tuple[float, float, float] | None:
    n50 = record.n50
    if n50.verdict == "separated" and n50.low is not None and n50.high is not None:
        return (n50.low + n50.high) / 2, n50.low, n50.high
    if n50.verdict != "estimated" or n50.value is None:
        return None
    low, high = (n50.value if end is None else end for end in (n50.low, n50.high))
    return n50.value, low, high


def _ends(record: Accessibility, steps: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Return the points of the curve at which strings were censored."""
    shares = {step["n"]: step["share"] for step in steps}
    pairs = zip(record.reaches, record.censored, strict=True)
    reached = {reach for reach, censored in pairs if censored and reach in shares}
    return [{"n": reach, "share": shares[reach]} for reach in sorted(reached)]


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of n: logarithmic when lengths span much, so that curves of doubled m stand apart evenly."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Self:
        """Choose the axis for some curves."""
        counts = [curve.m for curve in curves]
        longest = max(n for curve in curves for n in curve.lengths)
        log = max(counts) >= 4 * min(counts) and longest > 10
        return cls(0.8 if log else 0.0, max(longest, 2) * (1.06 if log else 1.02), log)

    def x(self, field: str = "n") -> alt.X:
        """Encode n."""
        kind: Any = "log" if self.log else "linear"
        scale = alt.Scale(type=kind, domain=[self.low, self.high], nice=False, zero=False)
        ticks = log_ticks(1, self.high) if self.log else count_ticks(self.high)
        title = "n, length of the target string (tokens)"
        return alt.X(
            f"{field}:Q", scale=scale, axis=alt.Axis(title=title, grid=False, format=",.7~g", values=ticks)
        )

    def inside(self, n: float) -> float:
        """Keep a length within the axis."""
        return min(max(n, self.low), self.high)

    def pixel(self, n: float) -> float:
        """Return where ``n`` stands, in pixels from the left."""
        if self.log:
            return WIDTH * math.log(n / self.low) / math.log(self.high / self.low)
        return WIDTH * (n - self.low) / (self.high - self.low)

    def value(self, pixel: float) -> float:
        """Invert `pixel`."""
        share = pixel / WIDTH
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


def accessibility(found: Sequence[Accessibility], target: str, name: str, style: Look) -> Figure | None:
    """Draw the curves of one target kind, one per m; None if no record holds a curve."""
    curves = sorted((curve for curve in map(Curve.of, found) if curve), key=lambda curve: curve.m)
    if not curves:
        return None
    axis = Axis.of(curves)
    lines = [curve for curve in curves if curve.steps]
    layers = [
        *(_band(curve, axis, style) for curve in lines),
        alt.Chart(rows([{"share": 0.5}])).mark_rule(color=MUTED, strokeDash=[2, 3]).encode(y=_y()),
        *(_line(curve, axis, style) for curve in lines),
        *_trials(curves, axis, style),
        *_marks(curves, axis, style),
        *_labels(curves, axis),
    ]
    caption = (
        f"{plain(target)}: band, interval of each curve; mark and bar on the one-half line, n50 and its "
        "interval; upright tick, strings that reached the length limit."
    )
    if any(curve.points for curve in curves):
        caption = (
            f"{plain(target)}: filled marks, share of strings reached at one length, with Clopper-Pearson "
            "intervals; line and band, fitted curve; dashed, stretches between lengths tried within which "
            "the share falls (Turnbull); hollow mark and bar on the one-half line, n50 and its interval."
        )
    if steps := stepped.steps_with_level(found):
        caption = f"{caption} After {steps}."
    description, title = (
        words.describe_curves(found, plain(target)),
        f"Accessibility, {plain(target)} targets",
    )
    if words.is_published(found):
        title = f"{title} ({words.PUBLISHED_LABEL})"
        caption = f"{caption} n counts n - 1 predicted tokens; the first is given."
    return Figure(name, title, description, caption, stack(layers, WIDTH, HEIGHT))


def _y(field: str = "share") -> alt.Y:
    axis = alt.Axis(title="share of strings emitted in full", format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)


def _path(curve: Curve, axis: Axis) -> alt.InlineData:
    if curve.smooth:
        return rows([step for step in curve.steps if axis.low <= step["n"] <= axis.high])
    # The share at n holds for all of (n - 1, n]: the first step starts at the axis.
    return rows([{**curve.steps[0], "n": axis.low}, *curve.steps])


def _band(curve: Curve, axis: Axis, style: Look) -> alt.Chart:
    band = alt.Chart(_path(curve, axis)).mark_area(
        interpolate=_joined(curve), color=style.colour, opacity=0.09
    )
    drawn: alt.Chart = band.encode(x=axis.x(), y=_y("low"), y2="high")
    return drawn


def _line(curve: Curve, axis: Axis, style: Look) -> alt.Chart:
    line = alt.Chart(_path(curve, axis)).mark_line(
        interpolate=_joined(curve), color=style.colour, strokeWidth=1.6
    )
    drawn: alt.Chart = line.encode(x=axis.x(), y=_y())
    return drawn


def _joined(curve: Curve) -> Any:
    return "linear" if curve.smooth else "step-before"


def _trials(curves: Sequence[Curve], axis: Axis, style: Look) -> list[alt.Chart]:
    """Draw shares at single lengths with their intervals, and the stretches in which reaches lie."""
    points = [point for curve in curves for point in curve.points]
    falls = [
        {**fall, "n": axis.inside(fall["n"]), "to": axis.inside(fall["to"])}
        for curve in curves
        for fall in curve.falls
    ]
    if not points:
        return []
    rule = alt.Chart(rows(points)).mark_rule(color=style.colour, strokeWidth=1.2)
    mark: dict[str, Any] = {"shape": style.shape, "filled": True, "color": style.colour, "size": 40}
    dashed = alt.Chart(rows(falls)).mark_rule(color=MUTED, strokeWidth=1.4, strokeDash=[4, 3])
    return [
        dashed.encode(x=axis.x(), x2="to", y=_y(), y2="left"),
        rule.encode(x=axis.x(), y=_y("low"), y2="high"),
        alt.Chart(rows(points)).mark_point(opacity=1, **mark).encode(x=axis.x(), y=_y()),
    ]


def _marks(curves: Sequence[Curve], axis: Axis, style: Look) -> list[alt.Chart]:
    known = [curve.n50 for curve in curves if curve.n50]
    bars = [{"n": axis.inside(low), "to": axis.inside(high), "share": 0.5} for _, low, high in known]
    points = [{"n": axis.inside(value), "share": 0.5} for value, _, _ in known]
    ends = [end for curve in curves for end in curve.ends]
    tick: dict[str, Any] = {"shape": "stroke", "angle": 90, "size": 160, "color": style.colour}
    ring: dict[str, Any] = {"shape": style.shape, "filled": True, "fill": PAPER, "stroke": style.colour}
    return [
        alt.Chart(rows(ends)).mark_point(strokeWidth=2, **tick).encode(x=axis.x(), y=_y()),
        alt.Chart(rows(bars))
        .mark_rule(color=style.colour, strokeWidth=4, opacity=0.55)
        .encode(x=axis.x(), x2="to", y=_y()),
        alt.Chart(rows(points))
        .mark_point(size=55, strokeWidth=2, opacity=1, **ring)
        .encode(x=axis.x(), y=_y()),
    ]


def _labels(curves: Sequence[Curve], axis: Axis) -> list[alt.Chart]:
    """Write m above the plot, moved apart where needed, with a thin line to the curve's middle."""
    points = [(axis.inside(n), share) for n, share in (curve.middle for curve in curves)]
    places = spread([axis.pixel(n) for n, _ in points], _LABEL_GAP, 10, WIDTH - 4)
    spots = [axis.value(place) for place in places]
    names = [f"m = {curves[0].m:g}", *(f"{curve.m:g}" for curve in curves[1:])]
    texts = [{"x": x, "top": 1.0, "m": name} for name, x in zip(names, spots, strict=True)]
    leads = [
        {"x": x, "to": n, "top": 1.0, "share": share} for x, (n, share) in zip(spots, points, strict=True)
    ]
    return [
        alt.Chart(rows(leads))
        .mark_rule(color=MUTED, strokeWidth=0.7, opacity=0.6)
        .encode(x=axis.x("x"), x2="to", y=_y("top"), y2="share"),
        alt.Chart(rows(texts))
        .mark_text(baseline="bottom", dy=-5, color=INK, fontSize=12)
        .encode(x=axis.x("x"), y=_y("top"), text="m:N"),
    ]
