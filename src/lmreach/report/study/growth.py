"""The figure of n50 against the number of prompt vectors, with fitted lines and the limits above them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import altair as alt

from lmreach.report.kit import reading
from lmreach.report.kit.drawing import (
    DASHES,
    INK,
    MUTED,
    PAPER,
    Figure,
    Look,
    count_ticks,
    log_ticks,
    look,
    rows,
    spread,
    stack,
)
from lmreach.report.kit.format import plain, prose
from lmreach.report.study import stepped, words
from lmreach.results import AnyResults, Interval
from lmreach.results.limits import Limit
from lmreach.results.study import Accessibility, Slope

_LINE = 15  # height of one line of a label in pixels


@dataclass(frozen=True, slots=True)
class Point:
    """One n50 as drawn: ``beyond`` is 1 when n50 lies above ``n``, -1 when below, 0 when it is ``n``.

    ``text`` is what the mark says to a pointer; ``reaches`` are drawn where n50 has no interval.
    """

    target: str
    m: float
    n: float
    low: float | None
    high: float | None
    beyond: int
    text: str = ""
    reaches: tuple[int, ...] = ()

    @property
    def is_bare(self) -> bool:
        """Whether n50 has a value and no interval: too few strings."""
        return self.beyond == 0 and self.low is None and self.high is None


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's axes in data units and its size in pixels."""

    m: tuple[float, float]
    n: tuple[float, float]
    counts: tuple[float, ...]
    log: bool
    width: int
    height: int

    @classmethod
    def around(
        cls, found: Sequence[float], points: Sequence[Point], lines: Sequence[Limit], width: int, height: int
    ) -> Self:
        """Choose the axes for the m in ``found``: logarithmic when values or limits span a factor above 8."""
        counts = sorted(set(found)) or [1.0]
        steepest = max((line.tokens_per_vector for line in lines), default=0.0)
        ends = [end for p in points for end in (p.n, p.low, p.high) if end is not None and end > 0]
        every = [*ends, *(line.tokens_per_vector * counts[0] for line in lines)] or [1.0]
        top, low = max(*ends, steepest * counts[-1], 1.0), min(every)
        if top > 8 * low:
            widen = 1.15 if len(counts) > 1 else 1.8
            room = 2.2 if any(point.beyond < 0 for point in points) else 1.5
            span = counts[0] / widen, counts[-1] * widen
            return cls(
                span, (low / room, max(top, steepest * span[1]) * 1.12), tuple(counts), True, width, height
            )
        margin = 0.06 * (counts[-1] - counts[0]) or 0.5
        span = counts[0] - margin, counts[-1] + margin
        return cls(span, (0.0, max(top, steepest * span[1]) * 1.12), tuple(counts), False, width, height)

    def x(self, field: str = "m") -> alt.X:
        """Encode m."""
        axis = alt.Axis(
            title="m, prompt vectors", grid=False, values=list(self.counts), format=",.7~g", labelOverlap=True
        )
        return alt.X(f"{field}:Q", scale=self._scale(self.m), axis=axis)

    def y(self, field: str = "n") -> alt.Y:
        """Encode n50."""
        ticks: dict[str, Any] = (
            {"values": log_ticks(*self.n)} if self.log else {"values": count_ticks(self.n[1])}
        )
        style = ",~s" if self.n[1] >= 1e5 else ",.7~g"
        return alt.Y(
            f"{field}:Q",
            scale=self._scale(self.n),
            axis=alt.Axis(title="n50 (tokens)", format=style, **ticks),
        )

    def _scale(self, ends: tuple[float, float]) -> alt.Scale:
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=list(ends), nice=False, zero=False, clamp=True)

    def inside(self, n: float) -> float:
        """Keep a value within the axis of n."""
        return min(max(n, self.n[0]), self.n[1])

    def pixel(self, n: float) -> float:
        """Return the height of ``n`` above the axis in pixels."""
        low, high = self.n
        share = math.log(n / low) / math.log(high / low) if self.log else (n - low) / (high - low)
        return share * self.height

    def value(self, pixel: float) -> float:
        """Invert `pixel`."""
        low, high = self.n
        share = pixel / self.height
        return float(low * (high / low) ** share) if self.log else low + share * (high - low)

    def grid(self) -> list[float]:
        """Return the m at which lines are drawn, so that a straight line looks right on a log axis too."""
        low, high = self.m
        steps = [i / 40 for i in range(41)]
        return (
            [low * (high / low) ** t for t in steps] if self.log else [low + t * (high - low) for t in steps]
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A text beside the right edge; ``n`` is where it wants to stand."""

    text: tuple[str, str]
    n: float
    colour: str


def growth(results: AnyResults) -> Figure | None:
    """Draw n50 against m; None if nothing was measured and no limit is known."""
    points, lines = _points(results), _lines(results)
    counts = [float(entry.m) for entry in reading.entries(results)]
    if not points and not lines:
        return None
    wide = _chart(results, points, lines, Frame.around(counts, points, lines, 640, 300), limit=210)
    narrow = _chart(results, points, lines, Frame.around(counts, points, lines, 210, 280), limit=112)
    caption = (
        "Marks: n50 with its interval. A hollow mark with an arrow: n50 lies beyond it (length limit, or "
        "below 1). A hollow mark without one: too few strings for an interval; dots are single strings. "
        "Dashed: the interval has no end on that side. "
        "Band: 95 % interval of the fitted line, from resampling strings. "
        "Straight lines without marks: limits, C·m tokens (tightest of each premise, and the paper’s ball)."
    )
    records = reading.entries(results)
    if any(record.points for record in records):
        caption = (
            f"{caption} Where all strings reach one length and none the next tried, the mark is the middle."
        )
    caption += _steps(results)
    title = "n50 against the number of prompt vectors"
    if words.is_published(records):
        title, caption = f"{title} ({words.PUBLISHED_LABEL})", f"{caption} n counts n - 1 predicted tokens."
    alt_text = words.describe_n50(results)
    return Figure("n50-by-m", title, plain(alt_text), caption, wide, narrow)


def _points(results: AnyResults) -> list[Point]:
    return [
        replace(point, text=_said(entry), reaches=entry.reaches if point.is_bare else ())
        for entry in reading.entries(results)
        for point in _point(entry)
    ]


def _said(entry: Accessibility) -> str:
    """Say what a mark stands for: condition, n50 with its interval, strings and steps."""
    value, told = words.n50_cell(entry)
    strings = ", ".join(filter(None, (f"{entry.finished} strings", stepped.steps_with_level([entry]))))
    return plain(f"{entry.target}, m = {entry.m}: n50 {value} ({told}); {strings}")


def _steps(results: AnyResults) -> str:
    """Say after how many steps each kind's marks and line stand; lines through unlike points are named."""
    said = []
    for target in reading.targets(results):
        own = reading.of_target(reading.entries(results), target)
        if steps := stepped.steps_with_level(own):
            said.append(f"{plain(target)} {steps}")
    unlike = [
        f" The line of {plain(one.target)} goes through points of different steps, {one.steps_taken[0]:,} to "
        f"{one.steps_taken[1]:,}."
        for one in reading.slopes(results)
        if one.steps_taken is not None and one.steps_taken[0] < one.steps_taken[1]
    ]
    return (f" Steps: {'; '.join(said)}." if said else "") + "".join(unlike)


def _point(entry: Accessibility) -> list[Point]:
    """Return the mark of a condition; none where nothing is known of its n50."""
    target, m, n50 = entry.target, entry.m, entry.n50
    match words.verdict(entry):
        case "estimated" if n50.value is not None:
            return [Point(target, m, n50.value, n50.low, n50.high, 0)]
        case "separated" | "curve_does_not_fit":
            return _bracket(target, m, n50)
        case "below_first" if entry.points is not None:
            return [Point(target, m, float(entry.points.n[0]), None, None, -1)]
        case "above_limit":
            return [Point(target, m, float(entry.limit), None, None, 1)]
        case "below_one":
            return [Point(target, m, 1.0, None, None, -1)]
    return []


def _bracket(target: str, m: float, n50: Interval) -> list[Point]:
    """Return the point that stands for a bracket: its middle, or its one end."""
    low, high = n50.low, n50.high
    if low is not None and high is not None:
        return [Point(target, m, (low + high) / 2, low, high, 0)]
    if low is not None:
        return [Point(target, m, low, None, None, 1)]
    return [] if high is None else [Point(target, m, high, None, None, -1)]


def _lines(results: AnyResults) -> list[Limit]:
    chosen = [one for one in reading.limits(results) if one.tightest_of_premise or one.is_paper_ball]
    return [limit for limit in chosen if limit.tokens_per_vector > 0]


def _chart(
    results: AnyResults, points: list[Point], lines: list[Limit], frame: Frame, limit: int
) -> alt.LayerChart:
    layers: list[alt.Chart] = []
    labels: list[Label] = []
    for index, line in enumerate(lines):
        layers.append(_bound(line, index, frame))
        premise = plain(line.premise)
        text = (plain(line.name), f"{prose(line.tokens_per_vector)} per vector, “{premise}”")
        if limit < 150:
            text = (text[0], f"{prose(line.tokens_per_vector)} per vector")
        labels.append(Label(text, frame.inside(line.tokens_per_vector * frame.m[1]), MUTED))
    for index, target in enumerate(reading.targets(results)):
        style = look(index)
        mine = [point for point in points if point.target == target]
        slope = reading.slope_of(results, target)
        if slope and mine and None not in (slope.slope.low, slope.slope.high):
            layers += _fit(slope, mine, frame, style)
        if mine:
            layers += _marks(mine, frame, style, index)
            labels.append(_kind_label(target, mine, slope, frame, style))
    return stack([*layers, *_texts(labels, frame, limit)], frame.width, frame.height)


def _bound(line: Limit, index: int, frame: Frame) -> alt.Chart:
    path = [{"m": m, "n": line.tokens_per_vector * m} for m in frame.grid()]
    dash = list(DASHES[(index + 1) % len(DASHES)])
    inside = [point for point in path if frame.n[0] <= point["n"] <= frame.n[1]]
    drawn: alt.Chart = alt.Chart(rows(inside)).mark_line(color=INK, strokeWidth=1.2, strokeDash=dash)
    return drawn.encode(x=frame.x(), y=frame.y())


def _fit(slope: Slope, mine: list[Point], frame: Frame, style: Look) -> list[alt.Chart]:
    rise = slope.slope.value
    if slope.intercept is None or rise is None:
        return []
    fitted = [point.m for point in mine if point.beyond == 0] or [point.m for point in mine]
    centre = sum(fitted) / len(fitted)
    middle = slope.intercept + rise * centre
    tilts = [rise if end is None else end for end in (slope.slope.low, slope.slope.high)]
    path = []
    for m in frame.grid():
        n = middle + rise * (m - centre)
        ends = _band(slope, m, n) or sorted(middle + tilt * (m - centre) for tilt in tilts)
        if frame.n[0] <= n <= frame.n[1]:
            path.append({"m": m, "n": n, "low": frame.inside(ends[0]), "high": frame.inside(ends[1])})
    return [
        alt.Chart(rows(path))
        .mark_area(color=style.colour, opacity=0.15)
        .encode(x=frame.x(), y=frame.y("low"), y2="high"),
        alt.Chart(rows(path))
        .mark_line(color=style.colour, strokeWidth=1.8, strokeDash=style.dash)
        .encode(x=frame.x(), y=frame.y()),
    ]


def _band(slope: Slope, m: float, n: float) -> list[float] | None:
    """Return the ends of the line's 95 % interval around n at m; None without a covariance."""
    if slope.covariance is None:
        return None
    of_slope, of_intercept, both = slope.covariance
    half = 1.96 * math.sqrt(max(of_intercept + 2 * m * both + m * m * of_slope, 0.0))
    return [n - half, n + half]


def _marks(mine: list[Point], frame: Frame, style: Look, index: int) -> list[alt.Chart]:
    # Kinds measured at the same m stand a little apart, so that their intervals do not cover each other.
    aside = 7 * ((index + 1) // 2) * (-1) ** index
    mark: dict[str, Any] = {"shape": style.shape, "size": 62, "filled": True, "stroke": style.colour}
    mark |= {"opacity": 1, "xOffset": aside}
    sure = [point for point in mine if point.beyond == 0]
    # Towards an end that is not known the line is dashed up to the edge.
    edges = [
        {"m": p.m, "n": frame.inside(p.n), "to": edge}
        for p in sure
        for end, edge in ((p.low, frame.n[0]), (p.high, frame.n[1]))
        if end is None and not p.is_bare
    ]
    bars = [
        {"m": p.m, "n": frame.inside(p.n if p.low is None else p.low), "to": frame.inside(p.high or p.n)}
        for p in sure
    ]
    spots = [{"m": p.m, "n": frame.inside(p.n), "text": p.text} for p in sure if not p.is_bare]
    bare = [{"m": p.m, "n": frame.inside(p.n), "text": p.text} for p in sure if p.is_bare]
    strings = [{"m": p.m, "n": frame.inside(reach)} for p in sure for reach in p.reaches]
    rule = alt.Chart(rows(bars)).mark_rule(color=style.colour, strokeWidth=1.6, xOffset=aside)
    dots = alt.Chart(rows(spots)).mark_point(fill=style.colour, aria=True, **mark)
    dashed = alt.Chart(rows(edges)).mark_rule(
        color=style.colour, strokeWidth=1.2, strokeDash=[2, 4], xOffset=aside
    )
    layers = [
        rule.encode(x=frame.x(), y=frame.y(), y2="to"),
        *([dashed.encode(x=frame.x(), y=frame.y(), y2="to")] if edges else []),
        dots.encode(x=frame.x(), y=frame.y(), description="text:N"),
    ]
    if bare:
        ticks = alt.Chart(rows(strings)).mark_point(
            fill=style.colour, shape="circle", size=14, opacity=0.55, strokeWidth=0, xOffset=aside
        )
        open_mark = alt.Chart(rows(bare)).mark_point(fill=PAPER, strokeWidth=1.8, aria=True, **mark)
        layers += [
            ticks.encode(x=frame.x(), y=frame.y()),
            open_mark.encode(x=frame.x(), y=frame.y(), description="text:N"),
        ]
    for way, arrow, shift in ((1, "↑", -14), (-1, "↓", 14)):
        past = [
            {"m": p.m, "n": frame.inside(p.n), "arrow": arrow, "text": p.text}
            for p in mine
            if p.beyond == way
        ]
        hollow = alt.Chart(rows(past)).mark_point(fill=PAPER, strokeWidth=1.8, aria=True, **mark)
        text = alt.Chart(rows(past)).mark_text(color=style.text, fontSize=15, xOffset=aside, dy=shift)
        layers += [
            hollow.encode(x=frame.x(), y=frame.y(), description="text:N"),
            text.encode(x=frame.x(), y=frame.y(), text="arrow:N"),
        ]
    return layers


def _kind_label(target: str, mine: list[Point], slope: Slope | None, frame: Frame, style: Look) -> Label:
    last = max(mine, key=lambda point: point.m)
    rise = None if slope is None else slope.slope.value
    if slope is not None and slope.intercept is not None and rise is not None:
        end = slope.intercept + rise * frame.m[1]
        text = (plain(target), f"{prose(rise)} per vector, measured")
        return Label(
            text if frame.width > 400 else (text[0], f"{prose(rise)} measured"),
            frame.inside(end),
            style.text,
        )
    return Label((plain(target), "measured"), frame.inside(last.n), style.text)


def _texts(labels: list[Label], frame: Frame, limit: int) -> list[alt.Chart]:
    """Write the labels beside the right edge, moved apart where they would touch, joined to their lines."""
    wanted = [frame.pixel(label.n) for label in labels]
    places = spread(wanted, 2 * _LINE + 5, _LINE, frame.height - _LINE)
    return [
        layer for label, up in zip(labels, places, strict=True) for layer in _text(label, up, frame, limit)
    ]


def _text(label: Label, up: float, frame: Frame, limit: int) -> list[alt.Chart]:
    # Beyond the plot the data scales do not reach (they clamp), so labels are placed in pixels.
    right, top = frame.width + 1, frame.height - up
    x, y = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    lead = [{"x": right, "y": frame.height - frame.pixel(label.n), "x2": right + 10, "y2": top}]
    stroke = (
        alt.Chart(rows(lead)).mark_rule(color=label.colour, opacity=0.7).encode(x=x, y=y, x2="x2", y2="y2")
    )
    style: dict[str, Any] = {"align": "left", "baseline": "middle", "color": label.colour, "limit": limit}
    weights: tuple[Any, Any] = ("bold", "normal")
    lines = [
        alt.Chart(rows([{"x": right + 14, "y": top + shift, "text": text}]))
        .mark_text(fontWeight=weight, **style)
        .encode(x=x, y=y, text="text:N")
        for text, shift, weight in zip(label.text, (-_LINE / 2, _LINE / 2), weights, strict=True)
    ]
    return [stroke, *lines]
