"""The section of the decoder's cells: words, figure, tables, and hostile tokens that stay text."""

import json

import html5lib
import pytest

from lmreach.report.cells.ranks import rank_figure
from lmreach.report.cells.section import parts
from lmreach.report.html import page
from lmreach.results.cells import Cells
from tests.report.cells_sample import cells, shares, unreachable
from tests.report.sample import study

HOSTILE = "</svg></script><b onclick=x>&\"' \ud800\x00"


def report(measured: Cells | None) -> str:
    return page(study().model_copy(update={"cells": measured}))


def test_every_part_is_said_in_words() -> None:
    told = " ".join(parts(cells()).sentences)
    for words in ("900 of 1,000", "-9.50 ± 0.40", "1.58 times", "1 can never win", "3 % at n = 10", "26 %"):
        assert words in told


@pytest.mark.parametrize("name", ["shares", "rare", "unreachable", "map"])
def test_each_part_may_be_absent(name: str) -> None:
    some = cells().model_copy(update={name: None})
    assert 'id="cells"' in report(some)
    assert 'id="figure-map"' in report(some) or name == "map"


def test_without_any_the_section_is_left_out() -> None:
    assert 'id="cells"' not in report(None)
    assert 'id="cells"' not in report(Cells())


def markup(text: str) -> list[str]:
    tree = html5lib.parse(text, namespaceHTMLElements=False)
    return [element.tag for element in tree.iter() if isinstance(element.tag, str)]


def test_hostile_tokens_stay_text() -> None:
    """The same elements as with a harmless token, and data that strict readers take."""
    plain, hostile = report(cells("x")), report(cells(HOSTILE))
    assert [t for t in markup(hostile) if t in ("b", "script")] == [
        t for t in markup(plain) if t in ("b", "script")
    ]
    assert "onclick=x>" not in hostile.replace("&gt;", "").split("results-json")[0]
    start = hostile.index('id="results-json">') + len('id="results-json">')
    json.loads(hostile[start : hostile.index("</script>", start)])


def test_a_sample_of_tokens_is_called_one() -> None:
    some = Cells(unreachable=unreachable(judged=500))
    assert "Of 500 drawn at random of 1,000 usable tokens" in " ".join(parts(some).sentences)


def test_the_rank_plot_keeps_to_points_with_an_interval_above_zero() -> None:
    assert rank_figure(shares()) is not None
    assert rank_figure(shares().model_copy(update={"ranks": ()})) is None
