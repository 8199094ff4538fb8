"""The report page: one self-contained HTML file made from the results of a run."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Self

from altair.utils.schemapi import debug_mode
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lmreach.files import write_whole
from lmreach.report import figures
from lmreach.report.answer import answer_table
from lmreach.report.cells import section as cells
from lmreach.report.census import section as census
from lmreach.report.census import summary as census_summary
from lmreach.report.copying import section as copying
from lmreach.report.copying import summary as copy_summary
from lmreach.report.copying import words as copy_words
from lmreach.report.kit import drawing, embed, reading
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.format import duration, literal, plain
from lmreach.report.kit.tile import Tile
from lmreach.report.study import growth, summary, tables, words
from lmreach.report.study import precision_tables as told
from lmreach.report.study.calculator import calculator
from lmreach.results import AnyResults, CensusResults, CopyResults, ReachabilityResults
from lmreach.results.cells import Cells
from lmreach.results.census import Census
from lmreach.results.copying import Copying
from lmreach.results.limits import Limit


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure ready for the page: its SVG variants and its words."""

    figure: Figure
    pictures: tuple[Markup, ...]

    @classmethod
    def of(cls, figure: Figure) -> Self:
        """Draw a figure, for wide screens and, where that differs, for narrow ones."""
        if figure.narrow is None:
            return cls(figure, (drawing.inline(figure, figure.wide, "only"),))
        wide = drawing.inline(figure, figure.wide, "wide")
        return cls(figure, (wide, drawing.inline(figure, figure.narrow, "narrow")))


def render(results: AnyResults, out: Path) -> Path:
    """Write the report page of a run and return its path.

    Parameters
    ----------
    results
        Of any run; nothing is computed again.
    out
        A folder (``report.html`` is written in it) or a path that ends in ``.html``.

    Raises
    ------
    OutputError
        If the file cannot be written; nothing half-written stays behind.
    """
    path = out if out.suffix == ".html" else out / "report.html"
    text = page(results)
    write_whole(path, text)
    return path


@debug_mode(False)  # charts are held against the schema in the tests: here that took half of the time
def page(results: AnyResults) -> str:
    """Return the report page as text."""
    written = results.model_dump(mode="json")
    return (
        environment()
        .get_template(f"{_TEMPLATES[results.kind]}.html.jinja")
        .render(
            results=results,
            alone=results.kind != "study",
            headline=words.headline(results),
            **_sections(results),
            tables=tables,
            told=told,
            words=words,
            paper_ball=any(limit.is_paper_ball for limit in reading.limits(results)),
            json_text=embed.script_text(written),
            script=Markup(page_script()),  # noqa: S704  (our own file)
            script_hash=script_hash(),
        )
    )


_TEMPLATES = {"study": "report", "census": "census", "copy": "copy", "reachable": "reachable"}


def _sections(results: AnyResults) -> dict[str, object]:
    """Return the parts that a template includes, by name; None: the run does not have it."""
    if isinstance(results, CensusResults):
        return {"census": _census(results.census)}
    if isinstance(results, ReachabilityResults):
        return {"answer": answer_table(results)}
    limits = reading.limits(results)
    if isinstance(results, CopyResults):
        return {"copying": _copying(results.copying, limits)}
    first = growth.growth(results)
    return {
        "summary": summary,
        "calculator": calculator(results.model),
        "growth": None if first is None else _drawn(first),
        "steps": [_drawn(figure) for figure in figures.steps(results)],
        "curves": [_drawn(figure) for figure in figures.curves(results)],
        "census": None if results.census is None else _census(results.census),
        "copying": None if results.copying is None else _copying(results.copying, limits),
        "cells": _cells(results.cells) if results.cells not in (None, Cells()) else None,
    }


@dataclass(frozen=True, slots=True)
class _Census:
    """The section of a census ready for the page."""

    answer: str
    tiles: tuple[Tile, ...]
    sentences: tuple[str, ...]
    figures: tuple[Drawn, ...]
    tables: tuple[tables.Table, ...]


def _census(counted: Census) -> _Census:
    found = census.parts(counted)
    answer = found.sentences[0] if found.sentences else "Nothing was counted before the run was stopped."
    drawn = tuple(map(_drawn, found.figures))
    return _Census(answer, census_summary.tiles(counted), found.sentences, drawn, found.tables)


@dataclass(frozen=True, slots=True)
class _Copying:
    """The section of copying ready for the page."""

    label: str
    answer: str
    tiles: tuple[Tile, ...]
    sentences: tuple[str, ...]
    beside: str
    figures: tuple[Drawn, ...]
    tables: tuple[tables.Table, ...]


def _copying(copied: Copying, limits: list[Limit]) -> _Copying:
    found = copying.parts(copied, limits)
    drawn = tuple(map(_drawn, found.figures))
    return _Copying(
        copied.label,
        copy_words.answer(copied),
        copy_summary.tiles(copied, limits),
        found.sentences,
        copy_words.BESIDE,
        drawn,
        found.tables,
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """The section of the decoder's cells ready for the page."""

    sentences: tuple[str, ...]
    figures: tuple[Drawn, ...]
    tables: tuple[tables.Table, ...]
    picture: Markup | None
    caption: str


def _cells(measured: Cells) -> _Cells:
    found = cells.parts(measured)
    drawn = tuple(map(_drawn, found.figures))
    return _Cells(found.sentences, drawn, found.tables, found.picture, found.caption)


def _drawn(figure: Figure) -> Drawn:
    return Drawn.of(figure)


def _printable(value: object) -> object:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def page_script() -> str:
    """Return the page's script, as it stands between its tags."""
    return files("lmreach.report").joinpath("templates", "report.js").read_text(encoding="utf-8")


def script_hash() -> str:
    """Return the script's hash as a content security policy names it: no other script runs on the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(page_script().encode()).digest()).decode()}"


@cache
def environment() -> Environment:
    """Return what renders the templates: everything is escaped but what is marked up."""
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
