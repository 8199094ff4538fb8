"""Words and marks that were once wrong on the page, each as a reader would meet it."""

import re

import pytest

from lmreach.report.cells.map import cell_map_svg
from lmreach.report.copying import section as copying
from lmreach.report.figures import save_figures
from lmreach.report.html import page
from lmreach.report.kit.drawing import GRID
from lmreach.report.kit.format import hundredths
from lmreach.report.study import tables, words
from lmreach.results.study import StudyResults

from . import cells_sample, copy_sample, sample


def without_ends() -> StudyResults:
    ends = {f"accessibility.{i}.n50.{end}": None for i in range(10) for end in ("low", "high")}
    return sample.changed(sample.study(), ends)


def test_an_interval_that_is_not_there_has_no_level() -> None:
    said = " ".join(words.headline(without_ends()))
    assert "(n50; no interval)" in said
    assert "interval no interval" not in said


@pytest.mark.parametrize(
    ("share", "said"),
    [(1.0, "100 %"), (0.996, "100 %"), (0.087, "8.7 %"), (0.03, "3 %"), (0.0, "0 %"), (6.3e-9, "6.3e-7 %")],
)
def test_percentages_are_written_out(share: float, said: str) -> None:
    assert hundredths(share) == said


def test_a_table_speaks_of_the_columns_that_it_has() -> None:
    whole, bare = tables.limits(sample.study()), tables.limits(copy_sample.run())
    assert "C / slope" in whole.source
    assert any(column.head == "C / slope" for column in whole.columns)
    assert "C / slope" not in bare.source
    assert not any(column.head == "C / slope" for column in bare.columns)


def test_the_legend_shows_line_ends_as_the_texts_do() -> None:
    source = tables.examples(sample.study()).source
    assert "\\n and \\t mark line ends and tabs" in source
    assert "\u21b5" not in source


def test_every_figure_of_a_study_is_saved(tmp_path) -> None:
    results = sample.one_m().model_copy(update={"cells": cells_sample.cells(), "accessibility": ()})
    names = {path.name for path in save_figures(results, tmp_path)}
    assert {"ranks.svg", "ranks.png", "map.svg", "map.png"} <= names


def test_the_grey_of_the_map_is_dark_where_its_labels_are_light() -> None:
    text = page(sample.study().model_copy(update={"cells": cells_sample.cells()}))
    dark = text[text.index("prefers-color-scheme: dark") :]
    rules = dark[: dark.index("</style>")]
    fills = set(re.findall(r'fill="(#[0-9a-f]{6})"', cell_map_svg(cells_sample.cell_map())))
    for fill in (fills & {GRID, "#1b1f24", "#5b636d", "#ffffff"}) | {GRID}:
        assert f'svg [fill="{fill}"]' in rules, fill


def test_copied_points_at_its_own_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was copied: the name leads to the curve at 0 %, not to the one-half line."""
    drawn: list[list[dict]] = []
    plain = copying.rows
    monkeypatch.setattr(copying, "rows", lambda data: drawn.append(list(data)) or plain(data))
    copying.shares_figure(copy_sample.copying("below_first"))
    (label, *_) = [row for data in drawn for row in data if row.get("name") == "copied"]
    assert label["at"] == copying._HEIGHT
