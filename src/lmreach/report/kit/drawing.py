"""What the figures share: colours, dashes, ticks, label places, and how a chart becomes SVG or PNG."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
from altair.utils.mimebundle import spec_to_mimebundle
from markupsafe import Markup, escape
from scipy.optimize import isotonic_regression

from lmreach.report.kit.slim import slim

Layer = alt.Chart | alt.LayerChart

# The page's style sheet swaps these four (by attribute value) for its own in the dark colour scheme.
INK, MUTED, GRID, PAPER = "#1b1f24", "#5b636d", "#dfe2e6", "#ffffff"
# Okabe and Ito's colour-blind-safe set, the ones that stand out on white first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# The same hues dark enough to read as small text on white (contrast 4.5 or more).
TEXTS = ("#005a8c", "#a34700", "#00704f", "#8c4a73", "#8a5f00", "#1f6f99")
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 1), (1, 3))
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind of target is drawn: told apart by shape and dash as well as by colour."""

    colour: str
    text: str
    shape: str
    dash: list[int]


def look(index: int) -> Look:
    """Return the look of the ``index``-th target kind; beyond six they repeat."""
    i = index % len(COLOURS)
    return Look(COLOURS[i], TEXTS[i], SHAPES[i], list(DASHES[i]))


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: a wide chart, a narrow one for small screens where that differs, and its words."""

    name: str
    title: str
    description: str
    caption: str
    wide: alt.LayerChart
    narrow: alt.LayerChart | None = None


def rows(values: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Wrap records as chart data."""
    # A tuple: lists are copied, row by row, with every layer that shares them.
    return alt.InlineData(values=tuple(values))


def stack(layers: Sequence[alt.Chart], width: int, height: int) -> alt.LayerChart:
    """Lay charts over each other in one plot of the given size in pixels."""
    return alt.LayerChart(layer=list(layers), width=width, height=height)


THEME: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "padding": {"left": 4, "top": 6, "right": 6, "bottom": 4},
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "domainColor": MUTED,
        "tickColor": MUTED,
        "tickSize": 4,
        "labelColor": MUTED,
        "labelFontSize": 12,
        "labelPadding": 5,
        "titleColor": INK,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": GRID,
    },
    "text": {"fontSize": 12},
}
"""What all figures share: transparent ground, thin rules, no frame, no screen-reader markup inside."""


def themed(chart: alt.LayerChart) -> alt.LayerChart:
    """Return a chart that carries the common theme, for use outside the report."""
    made: alt.LayerChart = chart.configure(**THEME)
    return made


def log_ticks(low: float, high: float) -> list[float]:
    """Return round ticks between ``low`` and ``high`` (both above 0): 1-2-5 steps, or decades when many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) < 2.4 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def count_ticks(high: float) -> list[int]:
    """Return at most eight whole ticks from 0 to ``high``, in steps of 1, 2 or 5 times a power of ten."""
    power = 10 ** max(0, math.floor(math.log10(high)) - 1)
    step = next(s * power for s in (1, 2, 5, 10, 20) if high / (s * power) < 8)
    return list(range(0, math.floor(high) + 1, step))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move label places as little as needed so that neighbours are ``gap`` apart within [low, high].

    Labels keep their order. When they cannot all fit, they are spaced evenly over the whole range.
    The places are the least-squares answer under the gaps.
    """
    if not wanted:
        return []
    if gap * (len(wanted) - 1) >= high - low:
        gap = (high - low) / max(1, len(wanted) - 1)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    # After subtracting rank * gap the gaps become "not decreasing".
    fitted = isotonic_regression([wanted[index] - rank * gap for rank, index in enumerate(order)]).x.tolist()
    last = high - gap * (len(wanted) - 1)
    places = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        places[index] = min(max(fitted[rank], low), last) + rank * gap
    return places


def svg(chart: alt.LayerChart) -> str:
    """Render a chart as an SVG document; nothing is loaded from anywhere."""
    return str(_converted(chart, "svg", THEME)["image/svg+xml"])


def png(chart: alt.LayerChart) -> bytes:
    """Render a chart as PNG on white, at twice the size."""
    made: bytes = _converted(chart, "png", {**THEME, "background": PAPER}, scale_factor=2)["image/png"]
    return made


def _converted(
    chart: alt.LayerChart, form: Literal["svg", "png"], theme: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Convert a chart as altair saves one, without holding it against Vega-Lite's schema.

    That check takes more time than everything else on a page; the tests draw every figure with it. The theme
    is put into the finished specification: as a chart's own it would cost a copy of all its data.
    """
    with alt.data_transformers.enable("default"), alt.data_transformers.disable_max_rows():
        spec = chart.to_dict(validate=False, context={"pre_transform": False})
    spec["config"] = theme
    made = spec_to_mimebundle(spec, format=form, mode="vega-lite", **options)
    # Of a PNG the size comes with it.
    return made[0] if isinstance(made, tuple) else made


def inline(figure: Figure, chart: alt.LayerChart, variant: str) -> Markup:
    """Return the SVG of a chart for use inside a page: named ids of its own, title and description in it."""
    key = f"{figure.name}-{variant}"
    drawn = slim(svg(chart)).replace('class="marks" ', "", 1)
    drawn = re.sub(r'\bid="', f'id="{key}-', drawn)
    drawn = re.sub(r"url\(#", f"url(#{key}-", drawn)
    drawn = re.sub(r'href="#', f'href="#{key}-', drawn)
    title = Markup('<title id="{0}-title">{1}</title><desc id="{0}-desc">{2}</desc>').format(
        key, figure.title, figure.description
    )
    label = f'<svg role="img" class="{variant}" aria-labelledby="{key}-title {key}-desc" '
    body = re.sub(r"^.*?<svg ", lambda _: label, drawn, count=1, flags=re.DOTALL)
    body = re.sub(r"(<svg [^>]*>)", lambda found: found[1] + str(escape(title)), body, count=1)
    # vl-convert escapes the text it draws; a test reads the page back with hostile names in every place.
    return Markup(body)  # noqa: S704
