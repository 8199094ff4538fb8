"""The figures of a census: outputs counted at each length beside their limit, and discovery curves."""

import math
from collections.abc import Sequence

from lmreach.report.census.entries import prompts_of, rough
from lmreach.report.census.lines import Series, line_figure
from lmreach.report.census.words import sentences
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.format import number
from lmreach.results.census import Census, Discovery, GridCount, TokenCount

__all__ = ["census_figures", "count_figure", "discovery_figure"]

_SHOWN_LENGTHS = 4


def census_figures(census: Census) -> list[Figure]:
    """Return the figures there are data for: counts against length, then the discovery curve."""
    return [figure for figure in (count_figure(census), discovery_figure(census)) if figure is not None]


def count_figure(census: Census) -> Figure | None:
    """Draw the number of distinct outputs of each length, and the most there could be, on a log axis."""
    series: list[Series] = []
    for index, (name, short, entry) in enumerate(_named(census)):
        counted = entry.lengths
        if not counted:
            continue
        most = [(one.length, math.exp(min(one.log_bound_nats, 690.0))) for one in counted]
        series.append(Series(most, index, True, ("limit, " + short, f"{rough(most[-1][1])} outputs")))
        found = [(one.length, float(one.distinct)) for one in counted]
        last = rough(float(counted[-1].distinct))
        # A sample finds no more outputs than it has prompts: the label says how many those were.
        partly = isinstance(entry, TokenCount) and not entry.complete
        told = f"{last} ({rough(entry.prompts)} tried)" if partly else f"{last} counted"
        series.append(Series(found, index, False, (name, told)))
    if not series:
        return None
    caption = (
        "Marks: different outputs that were counted, all prompts together. Dashed lines: the most there "
        "could be, the smaller of the number of prompts and of the number of texts of that length "
        "(Theorem 4.5 of the paper)."
    )
    title, told = "Different outputs by length", " ".join(sentences(census))
    axis = "length of the output (tokens)"
    return line_figure("census-counts", title, told, caption, series, axis, log=True)


def discovery_figure(census: Census) -> Figure | None:
    """Draw how many different outputs random subsets of the prompts give, for some output lengths."""
    entries = census.tokens
    if not entries:
        return None
    entry = max(entries, key=lambda one: (one.complete, one.prompts))
    curves = _some([one for one in entry.discovery if len(one.prompts) > 1])
    if not curves:
        return None
    sizes = [float(size) for size in curves[-1].prompts]
    series = [Series([(t, t) for t in sizes], 0, True, ("every prompt", "something new"))]
    for index, curve in enumerate(curves):
        points = list(zip(map(float, curve.prompts), map(float, curve.distinct), strict=True))
        name = "1 token" if curve.length == 1 else f"{curve.length} tokens"
        series.append(Series(points, index, False, (name, f"{rough(points[-1][1])} different")))
    kind = prompts_of(entry.prompt_tokens)
    told = f"Expected number of different outputs among randomly chosen {kind}."
    caption = (
        f"{told} Exact expectation over all choices of that many of the {number(int(entry.prompts))} "
        "prompts tried. A curve that still climbs at its end has outputs left to find."
    )
    title = "Discovery of new outputs"
    return line_figure("census-discovery", title, told, caption, series, "prompts tried", log=False)


def _named(census: Census) -> list[tuple[str, str, GridCount | TokenCount]]:
    """Return every entry with its name, and a shorter one for its limit."""
    grids = [(f"m = {grid.m}", f"m = {grid.m}", grid) for grid in census.grids]
    kinds = [(entry.prompt_tokens, entry) for entry in census.tokens]
    named = [(f"{m}-token prompts", "1 token" if m == 1 else f"{m} tokens", entry) for m, entry in kinds]
    return [*grids, *named]


def _some(curves: Sequence[Discovery]) -> list[Discovery]:
    """Take at most four lengths: the first, the last, and doublings between."""
    if len(curves) <= _SHOWN_LENGTHS:
        return list(curves)
    last = curves[-1].length
    wanted = [1, 2, 4, last] if last < 16 else [1, 4, last // 2, last]
    return [one for one in curves if one.length in wanted]
