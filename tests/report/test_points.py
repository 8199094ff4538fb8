"""Trials at single lengths on the page: points with intervals, brackets, the curve, and the label."""

import itertools

import pytest

from lmreach.report.figures import figures
from lmreach.report.html import page
from lmreach.report.kit import reading
from lmreach.report.study import tables, words
from lmreach.report.study.curves import Curve
from lmreach.runs.study.accessibility import point_parts
from lmreach.stats.points import point_curve
from tests.report import sample
from tests.report.every import study_at_lengths


def test_every_point_has_a_row_with_its_interval() -> None:
    results = study_at_lengths()
    table = tables.points(results)
    assert len(table.rows) == 4 * len(results.accessibility)
    first = results.accessibility[0]
    assert first.points is not None
    assert first.turnbull is not None
    cells = [cell.text for cell in table.rows[0].cells]
    assert cells[2:4] == ["8", f"{first.points.reached[0]} / 12"]
    assert first.n50.words in cells[5]
    assert table.rows[0].cells[5].small == first.turnbull.words
    assert "Success at single lengths" in page(results)


def test_reaches_have_no_such_table() -> None:
    results = sample.study()
    assert not tables.points(results).rows
    assert "Success at single lengths" not in page(results)


def test_the_figure_draws_points_brackets_and_the_curve() -> None:
    record = study_at_lengths().accessibility[0]
    curve = Curve.of(record)
    assert [point["n"] for point in curve.points] == [8, 16, 24, 32]
    assert all(point["low"] <= point["share"] <= point["high"] for point in curve.points)
    assert curve.smooth
    assert len(curve.steps) == 60
    falls = curve.falls
    assert falls[0]["share"] == 1.0
    for before, after in itertools.pairwise(falls):
        assert after["share"] == pytest.approx(before["left"])
        assert after["n"] >= before["to"] - 1


def test_the_published_protocol_is_named_everywhere() -> None:
    results = study_at_lengths(protocol="published")
    label = words.PUBLISHED_LABEL
    drawn = figures(results)
    assert all(label in figure.title and "n - 1" in figure.caption for figure in drawn)
    assert words.headline(results)[0].startswith("Published protocol, for comparison")
    assert "could be made to emit" not in " ".join(words.headline(results))
    assert label in tables.measured(results).source.lower()
    assert label in tables.slopes(results).source.lower()
    assert "successes also decode" in tables.points(results).rows[0].cells[5].text
    text = page(results)
    assert text.count(label) + text.count(label.capitalize()) >= 6
    assert "confirmed by greedy decoding at batch 1" not in text


@pytest.mark.parametrize(
    ("outcomes", "cell", "said"),
    [
        (
            [{8: True, 16: False}] * 6,
            "between 8.00 and 16.0",
            "all strings at one length tried, none at the next",
        ),
        ([{8: True, 16: True}] * 6, "above 16", "every string was reached"),
        ([{8: False, 16: False}] * 6, "below 8", "no string was reached"),
        ([{8: True}, {8: False}], "not known", "no curve"),
    ],
)
def test_every_verdict_is_said(outcomes: list[dict[int, bool]], cell: str, said: str) -> None:
    found = point_curve(outcomes)
    change = {**point_parts(found), "limit": int(found.n[-1])}
    record = study_at_lengths().accessibility[0].model_copy(update=change)
    results = sample.study().model_copy(update={"accessibility": (record,), "slopes": ()})
    assert words.n50_cell(record)[0] == cell
    assert said in " ".join(words.headline(results))
    assert len(figures(results)) == 2


def test_a_curve_that_does_not_fit_is_a_bracket_on_the_page() -> None:
    results = study_at_lengths()
    n50 = {
        "verdict": "curve_does_not_fit",
        "value": None,
        "low": 8.0,
        "high": 24.0,
        "words": "between 8 and 24 tokens, from the points alone: no logistic curve fits them",
    }
    results = sample.changed(results, {"accessibility.0.n50": n50})
    record = results.accessibility[0]
    assert words.n50_cell(record) == ("8.00 to 24.0", "from the points alone: no curve fits them")
    assert "from the points alone" in " ".join(words.headline(results))
    assert figures(results)
    assert reading.targets(results)
