"""A study as it is drawn: the same look in every figure, and a legend that fits any width."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from lmreach.report.kit.drawing import SHAPES, Look, look, rows
from lmreach.report.kit.format import plain
from lmreach.results.compare import Comparison, ComparisonEntry

__all__ = ["Key", "Series", "legend", "series_of"]

_LINE, _BELOW, _SWATCH = 19, 52, 26
"""Height of a line of the legend, where it begins below the plot, and length of a swatch, in pixels."""


@dataclass(frozen=True, slots=True)
class Series:
    """An entry and its look."""

    entry: ComparisonEntry
    style: Look

    def key(self, text: str) -> "Key":
        """Return its line of the legend."""
        return Key(text, self.style)


@dataclass(frozen=True, slots=True)
class Key:
    """A line of the legend; hollow for marks that are drawn so."""

    text: str
    style: Look
    hollow: bool = False
    line: bool = True


def series_of(compared: Comparison) -> list[Series]:
    """Return the measured entries: one colour and dash per study, another shape for its further kinds."""
    studies: dict[str, list[str]] = {}
    for entry in compared.measured:
        studies.setdefault(entry.study, []).append(entry.target)
    return [
        Series(entry, _look(list(studies).index(entry.study), studies[entry.study].index(entry.target)))
        for entry in compared.measured
    ]


def _look(study: int, kind: int) -> Look:
    return replace(look(study), shape=SHAPES[(study + 3 * kind) % len(SHAPES)])


def legend(keys: Sequence[Key], height: int) -> list[alt.Chart]:
    """Return the legend below a plot of this height, one line per key."""
    return [layer for index, key in enumerate(keys) for layer in _line(key, height + _BELOW + index * _LINE)]


def _line(key: Key, y: float) -> list[alt.Chart]:
    # Placed in pixels: beyond the plot the scales of the data do not reach.
    at, up = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    style = key.style
    swatch = alt.Chart(rows([{"x": 0, "x2": _SWATCH, "y": y}])).mark_rule(
        color=style.colour, strokeWidth=1.8, strokeDash=style.dash
    )
    mark: dict[str, Any] = {"shape": style.shape, "size": 55, "filled": True, "stroke": style.colour}
    mark |= {"fill": "#ffffff" if key.hollow else style.colour, "opacity": 1, "strokeWidth": 1.6}
    spot = alt.Chart(rows([{"x": _SWATCH / 2, "y": y}])).mark_point(**mark)
    text = alt.Chart(rows([{"x": _SWATCH + 8, "y": y, "text": plain(key.text)}])).mark_text(
        align="left", baseline="middle", color=style.text
    )
    return [
        *([swatch.encode(x=at, x2="x2", y=up)] if key.line else []),
        spot.encode(x=at, y=up),
        text.encode(x=at, y=up, text="text:N"),
    ]
