"""Accessibility curves of several studies over one another, at a number of vectors that they share."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import altair as alt

from lmreach.report.compare.scale import Scale
from lmreach.report.compare.series import Series, legend
from lmreach.report.kit.drawing import MUTED, PAPER, Figure, rows, stack
from lmreach.report.kit.format import plain
from lmreach.report.study.curves import Curve
from lmreach.report.study.stepped import steps_told
from lmreach.report.study.words import n50_cell
from lmreach.results.study import Accessibility

__all__ = ["curves", "shared_counts"]

_WIDTH, _HEIGHT = 340, 240
Drawn = tuple[Series, Accessibility, Curve]


def shared_counts(series: Sequence[Series]) -> list[int]:
    """Return the least and the largest m that most of the studies have."""
    held = Counter(m for one in series for m in one.entry.m)
    most = max(held.values(), default=0)
    shared = sorted(m for m, count in held.items() if count == most)
    return sorted({shared[0], shared[-1]}) if shared else []


def curves(series: Sequence[Series], target: str, index: int) -> list[Figure]:
    """Draw one panel per shared m, for one target kind."""
    found = []
    for m in shared_counts(series):
        held = [
            (one, condition, curve)
            for one in series
            for condition in one.entry.conditions
            if condition.m == m and (curve := Curve.of(condition)) is not None
        ]
        if held:
            found.append(_panel(held, m, target, f"compared-curves-{index + 1}-{m}"))
    return found


def _panel(held: Sequence[Drawn], m: int, target: str, name: str) -> Figure:
    title = f"Accessibility, {plain(target)} targets, m = {m}"
    described = "; ".join(
        plain(
            f"{one.entry.study}: n50 {n50_cell(condition)[0]} ({n50_cell(condition)[1]}){_after(condition)}"
        )
        for one, condition, _ in held
    )
    caption = (
        f"{plain(target)}, m = {m}: share of strings emitted in full, with the band of its 95 % interval; "
        "mark and bar on the one-half line, n50 and its interval."
    )
    longest = [n for _, _, curve in held for n in curve.lengths]
    x = Scale.over("n, length of the target string (tokens)", longest, room=1.1)
    half = alt.Chart(rows([{"share": 0.5}])).mark_rule(color=MUTED, strokeDash=[2, 3])
    layers: list[alt.Chart] = [half.encode(y=_y("share"))]
    for one, condition, curve in held:
        layers += _curve(one, condition, curve, x)
    keys = [one.key(one.entry.study) for one, _, _ in held]
    return Figure(name, title, described, caption, stack([*layers, *legend(keys, _HEIGHT)], _WIDTH, _HEIGHT))


def _curve(one: Series, condition: Accessibility, curve: Curve, x: Scale) -> list[alt.Chart]:
    style = one.style
    joined: Any = "linear" if curve.smooth else "step-before"
    steps = [step for step in curve.steps if x.low <= step["n"] <= x.high]
    if steps and not curve.smooth:
        # The share at n holds for all of (n - 1, n]: the first step starts at the axis.
        steps = [{**steps[0], "n": x.low}, *steps]
    band = alt.Chart(rows(steps)).mark_area(interpolate=joined, color=style.colour, opacity=0.1)
    line = alt.Chart(rows(steps)).mark_line(
        interpolate=joined, color=style.colour, strokeWidth=1.7, strokeDash=style.dash
    )
    dots = alt.Chart(rows(curve.points)).mark_point(
        shape=style.shape, filled=True, color=style.colour, size=36, opacity=1
    )
    value, told = n50_cell(condition)
    text = plain(f"{one.entry.study}, m = {condition.m}: n50 {value} ({told}){_after(condition)}")
    known = [] if curve.n50 is None else [curve.n50]
    bars = [{"n": x.inside(low), "to": x.inside(high), "share": 0.5} for _, low, high in known]
    spots = [{"n": x.inside(middle), "share": 0.5, "text": text} for middle, _, _ in known]
    bar = alt.Chart(rows(bars)).mark_rule(color=style.colour, strokeWidth=4, opacity=0.5)
    spot = alt.Chart(rows(spots)).mark_point(
        shape=style.shape,
        size=55,
        filled=True,
        fill=PAPER,
        stroke=style.colour,
        strokeWidth=2,
        opacity=1,
        aria=True,
    )
    return [
        band.encode(x=x.x("n"), y=_y("low"), y2="high"),
        line.encode(x=x.x("n"), y=_y("share")),
        dots.encode(x=x.x("n"), y=_y("share")),
        bar.encode(x=x.x("n"), x2="to", y=_y("share")),
        spot.encode(x=x.x("n"), y=_y("share"), description="text:N"),
    ]


def _after(condition: Accessibility) -> str:
    steps = steps_told([condition])
    return f" after {steps}" if steps else ""


def _y(field: str) -> alt.Y:
    axis = alt.Axis(title="share of strings emitted in full", format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)
