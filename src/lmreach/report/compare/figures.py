"""The figures of a comparison: n50 against m, three axes of storage, slope against width, curves."""

from lmreach.report.compare.axes import axes_figures
from lmreach.report.compare.curves import curves
from lmreach.report.compare.growth import growth
from lmreach.report.compare.series import Series, series_of
from lmreach.report.compare.stored import stored_of
from lmreach.report.compare.width import widths
from lmreach.report.kit.drawing import Figure
from lmreach.results.compare import Comparison

__all__ = ["by_kind", "curve_figures", "figures", "growth_figures", "stored_figures", "width_figure"]


def by_kind(compared: Comparison) -> dict[str, list[Series]]:
    """Return the series of each target kind that two studies share; of every kind where none is shared."""
    kinds: dict[str, list[Series]] = {}
    for one in series_of(compared):
        kinds.setdefault(one.entry.target, []).append(one)
    shared = {kind: held for kind, held in kinds.items() if len(held) > 1}
    return shared or kinds


def growth_figures(compared: Comparison) -> list[Figure]:
    """Return n50 against m, one figure per target kind."""
    drawn = [growth(held, kind, i) for i, (kind, held) in enumerate(by_kind(compared).items())]
    return [one for one in drawn if one is not None]


def curve_figures(compared: Comparison) -> list[Figure]:
    """Return the curves, one panel per target kind and shared m."""
    return [one for i, (kind, held) in enumerate(by_kind(compared).items()) for one in curves(held, kind, i)]


def stored_figures(compared: Comparison) -> list[Figure]:
    """Return reach against what is stored, where the studies hold vectors to different sets."""
    return axes_figures(stored_of(compared))


def width_figure(compared: Comparison) -> Figure | None:
    """Return slope against width."""
    published = [one for one in compared.entries if one.origin == "published"]
    return widths(series_of(compared), published)


def figures(compared: Comparison) -> list[Figure]:
    """Return all of them, in the order of the page."""
    across = width_figure(compared)
    widths = [] if across is None else [across]
    return [*growth_figures(compared), *stored_figures(compared), *widths, *curve_figures(compared)]
