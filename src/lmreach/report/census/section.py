"""The census on the page: counts beside the most there could be, discovery curves, tables and sentences.

Everything is read from `lmreach.results.census.Census`; nothing is computed again.
"""

from dataclasses import dataclass

from lmreach.report.census.figures import census_figures, count_figure, discovery_figure
from lmreach.report.census.tables import tables
from lmreach.report.census.words import sentences
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.table import Table
from lmreach.results.census import Census

__all__ = ["Parts", "census_figures", "count_figure", "discovery_figure", "parts", "sentences", "tables"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the section of a census holds."""

    sentences: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


def parts(census: Census) -> Parts:
    """Return sentences, figures and tables of a census."""
    return Parts(tuple(sentences(census)), tuple(census_figures(census)), tuple(tables(census)))
