"""The rank plot of decoder cells: share of the measure against rank, with intervals."""

from typing import Any

import altair as alt

from lmreach.report.kit.drawing import COLOURS, INK, MUTED, Figure, log_ticks, rows, stack
from lmreach.results.cells import Shares

_WIDE, _NARROW = (620, 300), (300, 260)
_COLOUR = COLOURS[0]


def rank_figure(shares: Shares) -> Figure | None:
    """Return the figure of some shares, or None where no cell was hit."""
    points = [
        {"rank": one.rank, "share": one.share, "low": one.low, "high": one.high}
        for one in shares.ranks
        if one.low > 0
    ]
    cells, limit = shares.cells, shares.unhit_limit
    if not points:
        return None
    samples = int(shares.samples)
    description = (
        f"Share of the cell of each rank on logarithmic axes, from {points[0]['share']:.2g} for the largest"
        f" cell to {points[-1]['share']:.2g} at rank {points[-1]['rank']:,} of {int(cells):,}."
    )
    states = f"{samples:,} states ({shares.measure_words})"
    caption = (
        f"Cells in order of their hits in one half of {states}, in bands of ranks; dots are mean shares in a"
        " band from the other half, bars their 95 % intervals, so no cell is shown large for being lucky."
        if shares.held_out
        else f"Cells in order of their hits in {states}; dots are their shares in the same states, bars 95 %"
        " intervals, so the lucky ones are shown larger than they are."
    )
    caption += " Cells without a hit lie below the dashed line; their shares are small, not zero."
    wide = _chart(points, float(cells), float(limit), *_WIDE)
    narrow = _chart(points, float(cells), float(limit), *_NARROW)
    return Figure("ranks", "Share of decoder cells by rank", description, caption, wide, narrow)


def _chart(
    points: list[dict[str, Any]], cells: float, limit: float, width: int, height: int
) -> alt.LayerChart:
    low = 0.7 * min(limit, 1 / cells, *(p["low"] for p in points))
    high = 1.4 * max(1 / cells, *(p["high"] for p in points))
    x = alt.X(
        "rank:Q",
        scale=alt.Scale(type="log", domain=[0.8, 1.25 * cells], nice=False),
        axis=alt.Axis(title="rank of the cell", grid=False, format="~s", values=log_ticks(1, cells)),
    )
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    ticks = alt.Axis(title="share of the measure", format=".0e", values=log_ticks(low, high), gridDash=[1, 3])
    y = alt.Y("share:Q", scale=scale, axis=ticks)
    data = rows(points)
    bars = alt.Chart(data).mark_rule(color=_COLOUR, opacity=0.45)
    bars = bars.encode(x=x, y=alt.Y("low:Q", scale=scale, axis=ticks), y2="high:Q")
    dots = alt.Chart(data).mark_circle(color=_COLOUR, size=26, opacity=1).encode(x=x, y=y)
    layers = [bars, dots]
    for value, text, dash in (
        (1 / cells, "all cells alike: 1/V", [1, 0]),
        (limit, "a cell without a hit lies below (95 %)", [6, 3]),
    ):
        line = rows([{"rank": 1.0, "share": value, "end": cells, "text": text}])
        layers.append(alt.Chart(line).mark_rule(color=MUTED, strokeDash=dash).encode(x=x, x2="end:Q", y=y))
        layers.append(
            alt.Chart(line)
            .mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=INK)
            .encode(x=x, y=y, text="text:N")
        )
    return stack(layers, width, height)
