"""A result as a section that stands alone, such as a notebook shows: sentences, figures, tables."""

from dataclasses import dataclass

from markupsafe import Markup

from lmreach.report.cells import section as cells
from lmreach.report.census import section as census
from lmreach.report.compare import figures as compare_figures
from lmreach.report.compare import words as compare_words
from lmreach.report.compare.tables import by_entry
from lmreach.report.copying import section as copying
from lmreach.report.figures import curves, steps
from lmreach.report.html import Drawn, environment
from lmreach.report.kit import drawing
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.table import Table
from lmreach.report.study import growth, tables, words
from lmreach.results.answers import CellsResults
from lmreach.results.census import CensusResults
from lmreach.results.compare import Comparison
from lmreach.results.copying import CopyResults
from lmreach.results.run import RunResults
from lmreach.results.study import StudyResults

__all__ = ["section_of"]

Result = RunResults | CellsResults | Comparison


@dataclass(frozen=True, slots=True)
class _Section:
    sentences: tuple[str, ...]
    figures: tuple[Drawn, ...]
    tables: tuple[Table, ...]
    picture: Markup | None = None


def section_of(result: Result) -> str:
    """Return the section as HTML that needs nothing from elsewhere."""
    section = _section(result)
    return environment().get_template("section.html.jinja").render(section=section)


def _section(result: Result) -> _Section:
    if isinstance(result, Comparison):
        warnings = map(compare_words.warning, result.warnings)
        drawn = _drawn(compare_figures.figures(result))
        return _Section((*compare_words.headline(result), *warnings), drawn, (by_entry(result),))
    if isinstance(result, CellsResults):
        found = cells.parts(result)
        return _Section(found.sentences, _drawn(found.figures), found.tables, found.picture)
    if isinstance(result, CensusResults):
        counted = census.parts(result.census)
        return _Section(counted.sentences, _drawn(counted.figures), counted.tables)
    if isinstance(result, CopyResults):
        copied = copying.parts(result.copying, result.limits)
        return _Section(copied.sentences, _drawn(copied.figures), copied.tables)
    assert isinstance(result, StudyResults)
    first = growth.growth(result)
    figures = ([] if first is None else [first]) + steps(result) + curves(result)
    shown = (tables.slopes(result), tables.measured(result), tables.limits(result))
    return _Section(tuple(words.headline(result)), _drawn(figures), shown)


def _drawn(figures: list[Figure] | tuple[Figure, ...]) -> tuple[Drawn, ...]:
    return tuple(Drawn(figure, (drawing.inline(figure, figure.wide, "only"),)) for figure in figures)
