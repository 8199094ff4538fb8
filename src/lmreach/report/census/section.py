"""The census on the page: counts beside the most there could be, discovery curves, tables and sentences.

Everything is read from one plain dict, ``results.census``: ``grids`` (exact counts over a grid of prompts,
one entry per m) and ``tokens`` (prompts of real tokens, one entry per prompt length). Nothing is computed
again.
"""

from dataclasses import dataclass

from lmreach.report.census.figures import census_figures, count_figure, discovery_figure
from lmreach.report.census.tables import tables
from lmreach.report.census.words import sentences
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.reading import Record
from lmreach.report.kit.table import Table

__all__ = ["Parts", "census_figures", "count_figure", "discovery_figure", "parts", "sentences", "tables"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the section of a census holds."""

    sentences: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


def parts(census: Record) -> Parts:
    """Return sentences, figures and tables of a census."""
    return Parts(tuple(sentences(census)), tuple(census_figures(census)), tuple(tables(census)))
