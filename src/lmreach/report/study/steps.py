"""The figure of n50 against the optimiser's steps, from the growth that each string's record keeps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import altair as alt

from lmreach.report.kit.drawing import DASHES, PAPER, Figure, Look, log_ticks, rows, spread, stack
from lmreach.report.kit.format import number, plain
from lmreach.report.study import stepped
from lmreach.results.study import Accessibility, Level

__all__ = ["steps_figure"]

WIDTH, HEIGHT = 300, 240
_GAP = 15  # between labels, in pixels


@dataclass(frozen=True, slots=True)
class _Path:
    """n50 of one m at rising steps; ``runs``: whole runs of so many steps."""

    m: int
    points: list[dict[str, float | None]]
    runs: list[dict[str, float | None]]

    @classmethod
    def of(cls, entry: Accessibility) -> Self | None:
        """Read an entry; None where nothing is known of its growth."""
        found = entry.by_steps
        if found is None:
            return None
        columns = zip(found.steps, found.n50, found.low, found.high, strict=True)
        points: list[dict[str, float | None]] = [
            {"s": s, "n": n, "low": low, "high": high}
            for s, n, low, high in columns
            if n is not None and n > 0
        ]
        if not points:
            return None
        runs = [run for one in entry.levels if (run := _run(one)) is not None]
        return cls(entry.m, points, runs)

    @property
    def every(self) -> list[dict[str, float | None]]:
        """All that is drawn."""
        return [*self.points, *self.runs]

    @property
    def last(self) -> float:
        """n50 at the end of the run, in tokens."""
        return self.points[-1]["n"] or 1.0


def _run(one: Level) -> dict[str, float | None] | None:
    n50 = one.n50
    if n50.value is None or n50.value <= 0:
        return None
    return {"s": one.steps, "n": n50.value, "low": n50.low, "high": n50.high, "strings": one.strings}


@dataclass(frozen=True, slots=True)
class _Plane:
    """Both axes, logarithmic: steps double, and curves of different m stand apart."""

    s: tuple[float, float]
    n: tuple[float, float]

    @classmethod
    def around(cls, paths: Sequence[_Path]) -> Self:
        """Choose the axes."""
        every = [one for path in paths for one in path.every]
        steps = [one["s"] for one in every if one["s"]]
        ends = [end for one in every for end in (one["n"], one["low"], one["high"]) if end]
        return cls((min(steps) / 1.1, max(steps) * 1.1), (max(min(ends), 0.5) / 1.2, max(*ends, 1.0) * 1.2))

    def whole(self, one: dict[str, float | None]) -> dict[str, Any]:
        """Return a point whose open ends go to the ends of the axis."""
        low, high = one["low"], one["high"]
        return {**one, "low": max(low or 0.0, self.n[0]), "high": self.n[1] if high is None else high}

    def x(self, field: str = "s") -> alt.X:
        """Encode steps."""
        return alt.X(f"{field}:Q", scale=self._scale(self.s), axis=self._axis("steps taken", self.s, False))

    def y(self, field: str = "n") -> alt.Y:
        """Encode n50."""
        return alt.Y(f"{field}:Q", scale=self._scale(self.n), axis=self._axis("n50 (tokens)", self.n, True))

    @staticmethod
    def _scale(ends: tuple[float, float]) -> alt.Scale:
        return alt.Scale(type="log", domain=list(ends), nice=False, zero=False, clamp=True)

    @staticmethod
    def _axis(title: str, ends: tuple[float, float], grid: bool) -> alt.Axis:
        return alt.Axis(title=title, grid=grid, values=log_ticks(*ends), format=",.7~g", labelOverlap=True)

    def pixel(self, n: float) -> float:
        """Return the height of ``n`` above the axis in pixels."""
        low, high = self.n
        return HEIGHT * math.log(max(n, low) / low) / math.log(high / low)


def steps_figure(found: Sequence[Accessibility], target: str, name: str, style: Look) -> Figure | None:
    """Draw n50 against steps for one target kind, a curve per m; None where no entry knows its growth."""
    paths = [path for entry in found if (path := _Path.of(entry)) is not None]
    if not paths:
        return None
    plane = _Plane.around(paths)
    layers = [layer for place, path in enumerate(paths) for layer in _drawn(path, plane, style, place)]
    said = [
        plain(f"m = {entry.m}: {within}{_level(entry)}")
        for entry in found
        if (within := stepped.of_own(entry))
    ]
    caption = (
        f"{plain(target)}: what the strings of this run had reached after so many of their steps, with the "
        "95 % interval. Their schedule was made for all of their steps, so earlier points are of that "
        "schedule, not runs of their own. Hollow marks: whole runs of so many steps, of the same strings."
    )
    title = f"n50 against steps, {plain(target)} targets"
    chart = stack([*layers, *_labels(paths, plane, style)], WIDTH, HEIGHT)
    return Figure(name, title, "; ".join(said), caption, chart)


def _level(entry: Accessibility) -> str:
    told = stepped.level([entry])
    return f" ({told})" if told else ""


def _drawn(path: _Path, plane: _Plane, style: Look, place: int) -> list[alt.Chart]:
    points = [plane.whole(one) for one in path.points]
    dash = list(DASHES[place % len(DASHES)])
    band = alt.Chart(rows(points)).mark_area(interpolate="step-after", color=style.colour, opacity=0.1)
    line = alt.Chart(rows(points)).mark_line(
        interpolate="step-after", color=style.colour, strokeWidth=1.8, strokeDash=dash
    )
    ring: dict[str, Any] = {"shape": style.shape, "filled": True, "fill": PAPER, "stroke": style.colour}
    runs = [{**plane.whole(run), "text": _said(path.m, run)} for run in path.runs]
    rule = alt.Chart(rows(runs)).mark_rule(color=style.colour, strokeWidth=1.4)
    spot = alt.Chart(rows(runs)).mark_point(size=45, strokeWidth=1.8, opacity=1, aria=True, **ring)
    return [
        band.encode(x=plane.x(), y=plane.y("low"), y2="high"),
        line.encode(x=plane.x(), y=plane.y()),
        rule.encode(x=plane.x(), y=plane.y("low"), y2="high"),
        spot.encode(x=plane.x(), y=plane.y(), description="text:N"),
    ]


def _said(m: int, run: dict[str, float | None]) -> str:
    n50, strings = number(run["n"]), number(run["strings"])
    return plain(f"m = {m}, {number(run['s'])} steps: n50 {n50}; {strings} strings")


def _labels(paths: Sequence[_Path], plane: _Plane, style: Look) -> list[alt.Chart]:
    """Write m and the last n50 beside the right edge, moved apart where they would touch."""
    ends = [path.last for path in paths]
    places = spread([plane.pixel(end) for end in ends], _GAP, 6, HEIGHT - 6)
    x, y = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    leads = [
        {"x": WIDTH + 1, "x2": WIDTH + 9, "y": HEIGHT - plane.pixel(end), "y2": HEIGHT - up}
        for end, up in zip(ends, places, strict=True)
    ]
    texts = [
        {"x": WIDTH + 12, "y": HEIGHT - up, "text": f"m = {path.m}: {number(end)}"}
        for path, end, up in zip(paths, ends, places, strict=True)
    ]
    rule = alt.Chart(rows(leads)).mark_rule(color=style.colour, opacity=0.7)
    text = alt.Chart(rows(texts)).mark_text(align="left", baseline="middle", color=style.text)
    return [rule.encode(x=x, y=y, x2="x2", y2="y2"), text.encode(x=x, y=y, text="text:N")]
