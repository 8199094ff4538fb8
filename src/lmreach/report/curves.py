"""The accessibility figure of one target kind: share of strings emitted in full, against their length."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from lmreach.report import words
from lmreach.report.drawing import (
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
from lmreach.report.format import is_number, plain
from lmreach.report.reading import Record

WIDTH, HEIGHT = 340, 240
_LABEL_GAP = 30


def accessibility(found: Sequence[Record], target: str, name: str, style: Look) -> Figure | None:
    """Draw the curves of one target kind, one per m; None if no record holds a curve."""
    drawn = [record for record in found if (record.get("curve") or {}).get("n")]
    if not drawn:
        return None
    scale = _Axis.of(drawn)
    layers = [
        *_bands(drawn, scale, style),
        *_lines(drawn, scale, style),
        *_censored(drawn, scale, style),
        *_medians(drawn, scale, style),
        *_labels(drawn, scale),
    ]
    chart = stack(layers, WIDTH, HEIGHT)
    caption = (
        f"{plain(target)}: band, interval of each curve; mark and bar on the one-half line, n50 and its "
        "interval; upright tick, strings that reached the length limit."
    )
    return Figure(
        name,
        f"Accessibility, {plain(target)} targets",
        words.describe_curves(found, plain(target)),
        caption,
        chart,
    )


class _Axis:
    """The axis of n: logarithmic when lengths span much, so that curves of doubled m stand apart evenly."""

    def __init__(self, low: float, high: float, log: bool) -> None:
        self.low, self.high, self.log = low, high, log

    @classmethod
    def of(cls, drawn: Sequence[Record]) -> "_Axis":
        counts = [record["m"] for record in drawn if is_number(record.get("m"))]
        longest = max(max(record["curve"]["n"]) for record in drawn)
        log = len(counts) > 1 and max(counts) >= 4 * min(counts) and longest > 10
        return cls(0.8 if log else 0.0, max(longest, 2) * (1.06 if log else 1.02), log)

    def x(self, field: str = "n") -> alt.X:
        kind: Any = "log" if self.log else "linear"
        scale = alt.Scale(type=kind, domain=[self.low, self.high], nice=False, zero=False)
        ticks = log_ticks(1, self.high) if self.log else count_ticks(self.high)
        axis = alt.Axis(
            title="n, length of the target string (tokens)", grid=False, format=",.7~g", values=ticks
        )
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    def inside(self, n: float) -> float:
        return min(max(n, self.low), self.high)

    def share(self, n: float) -> float:
        """Return where n stands between the ends of the axis, from 0 to 1."""
        if self.log:
            return math.log(n / self.low) / math.log(self.high / self.low)
        return (n - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


def _y(field: str = "share") -> alt.Y:
    axis = alt.Axis(title="share of strings emitted in full", format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)


def _steps(record: Record, scale: _Axis) -> list[dict[str, Any]]:
    curve = record["curve"]
    points = [
        {"n": n, "share": share, "low": low, "high": high, "m": record.get("m")}
        for n, share, low, high in zip(curve["n"], curve["share"], curve["low"], curve["high"], strict=True)
        if is_number(share)
    ]
    # The share at n holds for all of (n - 1, n]: the first step starts at the axis.
    return [{**points[0], "n": scale.low}, *points] if points else []


def _bands(drawn: Sequence[Record], scale: _Axis, style: Look) -> list[alt.Chart]:
    band: dict[str, Any] = {"interpolate": "step-before", "color": style.colour, "opacity": 0.09}
    return [
        alt.Chart(
            rows(
                [
                    point
                    for point in _steps(record, scale)
                    if is_number(point["low"]) and is_number(point["high"])
                ]
            )
        )
        .mark_area(**band)
        .encode(x=scale.x(), y=_y("low"), y2="high:Q")
        for record in drawn
    ]


def _lines(drawn: Sequence[Record], scale: _Axis, style: Look) -> list[alt.Chart]:
    half = alt.Chart(rows([{"share": 0.5}])).mark_rule(color=MUTED, strokeDash=[2, 3]).encode(y=_y())
    lines = [
        alt.Chart(rows(_steps(record, scale)))
        .mark_line(interpolate="step-before", color=style.colour, strokeWidth=1.6)
        .encode(x=scale.x(), y=_y())
        for record in drawn
    ]
    return [half, *lines]


def _censored(drawn: Sequence[Record], scale: _Axis, style: Look) -> list[alt.Chart]:
    marks = []
    for record in drawn:
        shares = dict(zip(record["curve"]["n"], record["curve"]["share"], strict=True))
        pairs = zip(record.get("reaches") or (), record.get("censored") or (), strict=True)
        ends = {reach for reach, censored in pairs if censored}
        marks += [
            {"n": reach, "share": shares[reach]} for reach in sorted(ends) if is_number(shares.get(reach))
        ]
    if not marks:
        return []
    tick: dict[str, Any] = {
        "shape": "stroke",
        "angle": 90,
        "size": 160,
        "strokeWidth": 2,
        "color": style.colour,
    }
    return [alt.Chart(rows(marks)).mark_point(**tick).encode(x=scale.x(), y=_y())]


def _medians(drawn: Sequence[Record], scale: _Axis, style: Look) -> list[alt.Chart]:
    points, bars = [], []
    for record in drawn:
        n50 = record.get("n50") or {}
        if words.verdict(record) != "estimated":
            continue
        points.append({"n": scale.inside(n50["value"]), "share": 0.5})
        if is_number(n50.get("low")) and is_number(n50.get("high")):
            bars.append({"n": scale.inside(n50["low"]), "to": scale.inside(n50["high"]), "share": 0.5})
    ring: dict[str, Any] = {
        "shape": style.shape,
        "filled": True,
        "fill": PAPER,
        "stroke": style.colour,
        "strokeWidth": 2,
        "opacity": 1,
    }
    return [
        alt.Chart(rows(bars))
        .mark_rule(color=style.colour, strokeWidth=4, opacity=0.55)
        .encode(x=scale.x(), x2="to", y=_y()),
        alt.Chart(rows(points)).mark_point(size=55, **ring).encode(x=scale.x(), y=_y()),
    ]


def _middle(record: Record) -> tuple[float, float]:
    """Return the point of a curve its label points at: n50 if known, else where it last is above one half."""
    if words.verdict(record) == "estimated":
        return float(record["n50"]["value"]), 0.5
    curve = record["curve"]
    pairs = [(n, share) for n, share in zip(curve["n"], curve["share"], strict=True) if is_number(share)]
    above = [(n, share) for n, share in pairs if share >= 0.5]
    return above[-1] if above else pairs[0] if pairs else (curve["n"][0], 0.5)


def _labels(drawn: Sequence[Record], scale: _Axis) -> list[alt.Chart]:
    """Write m above the plot, moved apart where needed, with a thin line to the curve's middle."""
    ordered = sorted(drawn, key=lambda record: record.get("m") or 0)
    points = [(scale.inside(n), share) for n, share in map(_middle, ordered)]
    places = spread([scale.share(n) * WIDTH for n, _ in points], _LABEL_GAP, 10, WIDTH - 4)
    spots = [scale.at(place / WIDTH) for place in places]
    texts = [
        {"x": x, "top": 1.0, "m": f"{record.get('m')}"} for record, x in zip(ordered, spots, strict=True)
    ]
    texts[0]["m"] = f"m = {texts[0]['m']}"
    leads = [
        {"x": x, "to": n, "top": 1.0, "share": share} for x, (n, share) in zip(spots, points, strict=True)
    ]
    label: dict[str, Any] = {"baseline": "bottom", "dy": -5, "color": INK, "fontSize": 12}
    return [
        alt.Chart(rows(leads))
        .mark_rule(color=MUTED, strokeWidth=0.7, opacity=0.6)
        .encode(x=scale.x("x"), x2="to", y=_y("top"), y2="share"),
        alt.Chart(rows(texts)).mark_text(**label).encode(x=scale.x("x"), y=_y("top"), text="m:N"),
    ]
