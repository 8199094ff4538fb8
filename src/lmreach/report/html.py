"""The report page: one self-contained HTML file made from a results dict."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lmreach.files import write_whole
from lmreach.report import figures
from lmreach.report.cells import section as cells
from lmreach.report.census import section as census
from lmreach.report.copying import section as copying
from lmreach.report.copying import words as copy_words
from lmreach.report.kit import drawing, embed, reading
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.format import duration, literal, plain
from lmreach.report.kit.reading import Record
from lmreach.report.study import growth, tables, words
from lmreach.report.study import precision_tables as told


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure ready for the page: its SVG variants and its words."""

    figure: Figure
    pictures: tuple[Markup, ...]


def render(results: Record, out: Path) -> Path:
    """Write the report page of a run and return its path.

    Parameters
    ----------
    results
        A study's results (schema 1), as in ``results.json``; nothing is computed again.
    out
        A folder (``report.html`` is written in it) or a path that ends in ``.html``.

    Raises
    ------
    InputError
        If the results are of another schema or hold what JSON cannot say.
    OutputError
        If the file cannot be written; nothing half-written stays behind.
    """
    path = out if out.suffix == ".html" else out / "report.html"
    text = page(results)
    write_whole(path, text)
    return path


def page(results: Record) -> str:
    """Return the report page as text."""
    reading.check(results)
    first = growth.growth(results)
    counted = results["results"].get("census")
    copied = results["results"].get("copying")
    template = {"census": "census", "copy": "copy"}.get(str(results.get("kind")), "report")
    return (
        _environment()
        .get_template(f"{template}.html.jinja")
        .render(
            results=results,
            headline=words.headline(results),
            growth=_drawn(first) if first else None,
            curves=[_drawn(figure) for figure in figures.curves(results)],
            census=_census(counted) if counted else None,
            copying=_copying(copied, reading.limits(results)) if copied else None,
            cells=_cells(results["results"].get("cells")),
            tables=tables,
            told=told,
            words=words,
            paper_ball=any(map(reading.is_paper_ball, reading.limits(results))),
            provenance=results.get("provenance") or {},
            notes=(results.get("model") or {}).get("notes") or (),
            not_done=results.get("not_done") or (),
            json_text=embed.script_text(results),
            json_uri=embed.data_uri(results),
        )
    )


@dataclass(frozen=True, slots=True)
class _Census:
    """The section of a census ready for the page."""

    sentences: tuple[str, ...]
    figures: tuple[Drawn, ...]
    tables: tuple[tables.Table, ...]


def _census(counted: Record) -> _Census:
    found = census.parts(counted)
    return _Census(found.sentences, tuple(map(_drawn, found.figures)), found.tables)


@dataclass(frozen=True, slots=True)
class _Copying:
    """The section of copying ready for the page."""

    label: str
    sentences: tuple[str, ...]
    beside: str
    figures: tuple[Drawn, ...]
    tables: tuple[tables.Table, ...]


def _copying(copied: Record, limits: list[Record]) -> _Copying:
    found = copying.parts(copied, limits)
    drawn = tuple(map(_drawn, found.figures))
    return _Copying(str(copied["label"]), found.sentences, copy_words.BESIDE, drawn, found.tables)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The section of the decoder's cells ready for the page."""

    sentences: tuple[str, ...]
    figures: tuple[Drawn, ...]
    tables: tuple[tables.Table, ...]
    picture: Markup | None
    caption: str


def _cells(measured: Record | None) -> _Cells | None:
    if not measured:
        return None
    found = cells.parts(measured)
    drawn = tuple(map(_drawn, found.figures))
    return _Cells(found.sentences, drawn, found.tables, found.picture, found.caption)


def _drawn(figure: Figure) -> Drawn:
    if figure.narrow is None:
        return Drawn(figure, (drawing.inline(figure, figure.wide, "only"),))
    wide = drawing.inline(figure, figure.wide, "wide")
    return Drawn(figure, (wide, drawing.inline(figure, figure.narrow, "narrow")))


def _printable(value: object) -> object:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lmreach.report"),
        autoescape=True,
        undefined=StrictUndefined,
        # Whatever a template writes is made printable, then escaped; only marked-up text passes as it is.
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(literal=literal, duration=duration)
    return environment
