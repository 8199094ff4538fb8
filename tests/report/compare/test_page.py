"""The page, the figures and the tables of a comparison."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.report.compare.export import table_text
from lmreach.report.compare.figures import curve_figures, figures, growth_figures
from lmreach.report.compare.page import comparison_page, write_comparison
from lmreach.report.compare.scale import Scale
from lmreach.report.compare.tables import by_entry
from lmreach.report.kit.drawing import svg
from lmreach.results.compare import Comparison
from lmreach.runs.compare.compare import compare

from .. import sample

RECORDED = Path(__file__).parents[3] / "docs" / "results"
HOSTILE = '<script>alert(1)</script>&"|\\$_%#{}~^\n```'


@pytest.fixture(scope="module")
def recorded() -> Comparison:
    return compare(*(RECORDED / name for name in ("gemma-3-270m", "verse")), published=["all"])


@pytest.fixture(scope="module")
def hostile() -> Comparison:
    study = sample.study()
    return compare(study, sample.changed(study, {"model.name": HOSTILE, "accessibility.0.target": HOSTILE}))


@pytest.fixture(scope="module")
def folder(recorded: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared") / "new" / "folder"
    names = [path.name for path in write_comparison(recorded, folder)]
    assert names == ["compare.html", "table.csv", "table.md", "table.tex", "comparison.json"]
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "compare.html").read_text(encoding="utf-8")


class Links(HTMLParser):
    """Collects whatever a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts = 0
        self.allowed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.scripts += tag == "script" and held.get("type") != "application/json"
        self.allowed = self.allowed or "script-src 'sha256-" in (held.get("content") or "")
        self.loads += [
            value
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "srcset") and value and value[0] != "#"
        ]


def test_the_page_loads_nothing_and_runs_its_own_script_alone(page: str, hostile: Comparison) -> None:
    for text in (page, comparison_page(hostile)):
        found = Links()
        found.feed(text)
        assert [link for link in found.loads if not link.startswith("data:")] == []
        assert (found.scripts, found.allowed) == (1, True)
        assert "<script>alert" not in text
        assert "NaN" not in text


def test_the_page_says_what_differs_and_what_is_published(page: str, recorded: Comparison) -> None:
    assert "These studies differ in more than their models" in page
    assert page.count('class="badge">published') == len(recorded.entries) - len(recorded.measured)
    for entry in recorded.entries:
        assert entry.study.removesuffix(" (published)") in page


def test_figures_of_shared_kinds(recorded: Comparison) -> None:
    names = [figure.name for figure in figures(recorded)]
    # "random" is shared by both, "self" is not; m = 1 and 2 are shared.
    assert names == ["compared-n50-1", "compared-widths", "compared-curves-1-1", "compared-curves-1-2"]
    assert "m = 2: n50" in growth_figures(recorded)[0].description


def test_a_single_width_is_no_figure_of_widths() -> None:
    study = sample.study()
    assert "compared-widths" not in [figure.name for figure in figures(compare(study, study))]


@pytest.mark.parametrize("verdict", ["above_limit", "below_one"])
def test_answers_without_a_number_are_drawn_and_told(verdict: str) -> None:
    compared = compare(sample.without_answers(verdict), sample.study())
    (first, *_) = growth_figures(compared)
    assert {"above_limit": "↑", "below_one": "↓"}[verdict] in svg(first.wide)
    assert curve_figures(compared)
    for lines in ("m", "model"):
        assert "None" not in table_text(compared, "markdown", lines)


def test_markdown_has_as_many_cells_in_every_line(recorded: Comparison, hostile: Comparison) -> None:
    for compared in (recorded, hostile):
        for lines in ("m", "model"):
            table = table_text(compared, "markdown", lines).split("\n\n", 1)[0].splitlines()
            assert {len(re.split(r"(?<!\\)\|", line)) for line in table} == {table[0].count("|") + 1}


def test_latex_has_as_many_cells_in_every_line_and_escapes(recorded: Comparison, hostile: Comparison) -> None:
    for compared in (recorded, hostile):
        text = table_text(compared, "latex")
        columns = len(by_entry(compared).columns)
        body = text[text.index("\\toprule") : text.index("\\bottomrule")].splitlines()
        rows = [line for line in body if line.endswith("\\\\")]
        assert len(rows) == 2 + 2 * len(compared.entries)
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}
        for line in text.splitlines():
            if not line.startswith("%"):
                assert not re.search(r"(?<!\\)[#%_]", line)


def test_warnings_go_with_the_tables(recorded: Comparison) -> None:
    assert table_text(recorded, "markdown").count("\n> ") == 1 + len(recorded.warnings)
    assert "% Steps per string differ" in table_text(recorded, "latex")


def test_the_file_holds_the_comparison(recorded: Comparison, folder: Path) -> None:
    text = (folder / "comparison.json").read_text(encoding="utf-8")
    assert Comparison.model_validate_json(text) == recorded


def test_a_notebook_shows_it(recorded: Comparison) -> None:
    assert "<svg" in compare(RECORDED / "verse")._repr_html_()
    assert set(recorded.plot()) == {figure.name for figure in figures(recorded)}
    assert max(map(len, repr(recorded).splitlines())) <= 100


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=8))
def test_an_axis_holds_every_value_and_its_ticks(values: list[float]) -> None:
    scale = Scale.over("x", values)
    assert scale.low < scale.high
    assert all(scale.inside(value) == value for value in values)
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    path = scale.between(scale.low, scale.high)
    assert path == sorted(path)
    assert path[0] == pytest.approx(scale.low)
    assert path[-1] == pytest.approx(scale.high)
