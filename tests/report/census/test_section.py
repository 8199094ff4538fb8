"""The census on the page: sentences, figures and tables."""

import xml.etree.ElementTree as ET

import pytest

from lmreach.report.census.entries import rough
from lmreach.report.census.section import (
    census_figures,
    count_figure,
    discovery_figure,
    parts,
    sentences,
    tables,
)
from lmreach.report.figures import figures
from lmreach.report.html import page
from lmreach.report.kit.drawing import png, svg
from lmreach.results import CensusResults, StudyResults
from lmreach.results.census import Census
from tests.report.census_sample import census, grid, run, sketched
from tests.report.sample import study


def results(kind: str = "census") -> CensusResults | StudyResults:
    return run() if kind == "census" else study().model_copy(update={"census": census()})


def test_sentences_say_the_result_without_theory() -> None:
    grid, *_, one, two = sentences(census())
    assert grid == (
        "All 8 prompts of 1 vector with 2 values per coordinate were tried: they give 4 different outputs "
        "of 12 tokens, of 4,096 that there are. Every text of up to 1 token can be produced; longer ones "
        "only in part."
    )
    assert "prompts of one token without a start token the model goes on in 240 different ways" in one
    assert "follows 5 prompts (0.5 %)" in one
    assert "500 random prompts of 2 tokens" in two
    assert "at least about 40 million" in two


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1"),
        (999_999, "999,999"),
        (1e6 - 1e-6, "1 million"),
        (68_719_476_736, "68.7 billion"),
        (3e20, "10^20"),
    ],
)
def test_counts_are_written_for_readers(count: float, words: str) -> None:
    assert rough(count) == words


def test_a_grid_that_reaches_nothing_in_full_says_so() -> None:
    nothing = grid(1, 8).model_copy(update={"fully_reachable": 0})
    assert "Not even every single token" in sentences(Census(grids=(nothing,)))[0]


def test_figures_hold_every_count_and_limit() -> None:
    found = {figure.name: figure for figure in census_figures(census())}
    assert set(found) == {"census-counts", "census-discovery"}
    for figure in found.values():
        for chart in (figure.wide, figure.narrow):
            assert chart is not None
            ET.fromstring(svg(chart))
    text = svg(found["census-counts"].wide)
    for words in ("m = 1", "limit, m = 3", "2-token prompts", "limit, 2 tokens"):
        assert words in text
    assert "every prompt" in svg(found["census-discovery"].wide)
    assert png(found["census-counts"].wide).startswith(b"\x89PNG")


def test_no_part_needs_the_others() -> None:
    grids = Census(grids=census().grids)
    assert discovery_figure(grids) is None
    assert {table.name for table in tables(grids)} == {"census-grids", "census-missing"}
    tokens = Census(tokens=census().tokens)
    assert {table.name for table in tables(tokens)} == {"census-tokens", "census-popular"}
    assert count_figure(Census()) is None
    assert parts(Census()).tables == ()


def test_a_sketch_shows_its_error() -> None:
    given = Census(grids=(sketched(),))
    assert "about 1 million different outputs" in sentences(given)[0]
    row = next(table for table in tables(given) if table.name == "census-grids").rows[0]
    assert any("8,000" in cell.small for cell in row.cells)
    assert count_figure(given) is not None


@pytest.mark.parametrize("kind", ["census", "study"])
def test_the_page_holds_the_section_and_escapes_texts(kind: str) -> None:
    text = page(results(kind))
    assert "Outputs counted" in text
    assert "figure-census-counts" in text
    assert "<b>& it" not in text
    assert "&lt;b&gt;&amp; it" in text
    assert ("n50 against the number" in text) == (kind == "study")


def test_figures_of_a_study_come_first() -> None:
    whole = study()
    assert [f.name for f in figures(whole)] == [f.name for f in figures(results("study"))][:-2]
