"""Steps stand beside every number, and one figure shows n50 against them."""

import xml.etree.ElementTree as ElementTree

import pytest

from lmreach.report import page
from lmreach.report.figures import figures, steps
from lmreach.report.kit.drawing import svg
from lmreach.report.study import stepped, summary, tables
from lmreach.report.study.growth import growth
from lmreach.results.study import BySteps

from .. import sample


def entry(**changes):
    return sample.known_well().accessibility[0].model_copy(update=changes)


def test_steps_are_told_with_the_least_of_strings_that_were_cut():
    whole, cut = entry(cut=0), entry(cut=1)
    assert stepped.steps_told([whole]) == "300 steps"
    assert stepped.steps_told([whole, cut]) == "280 to 300 steps"
    assert stepped.steps_told([]) == ""
    older = entry(max_steps=None, steps_taken=None, steps=9_000, finished=32)
    assert stepped.steps_told([older]) == "281 steps"


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["converged"], "levelled off"),
        (["converged", "not tested"], "more steps not tried"),
        (["not tested", "still growing", "converged"], "still growing"),
        ([None], ""),
    ],
)
def test_the_worst_verdict_is_told(verdicts, said):
    assert stepped.level([entry(levelling=verdict) for verdict in verdicts]) == said


def test_growth_within_a_run_is_told_at_half_and_at_the_end():
    grown = BySteps(steps=(4, 9, 21), n50=(None, 2.0, 3.5), low=(None, 1.0, 3.0), high=(2.0, 3.0, 4.0))
    assert stepped.of_own(entry(by_steps=grown)) == "n50 2.0 after 9 steps, 3.5 after 21"
    beyond = BySteps(steps=(4, 9), n50=(2.0, None), low=(1.0, 3.0), high=(3.0, None))
    assert stepped.of_own(entry(by_steps=beyond)) == ""


def test_one_figure_a_kind_where_growth_was_recorded():
    found = steps(sample.known_well())
    assert [one.name for one in found] == ["steps-1-random", "steps-2-self"]
    assert steps(sample.study()) == []
    assert {one.name for one in found} <= {one.name for one in figures(sample.known_well())}
    drawn = [one.text for one in ElementTree.fromstring(svg(found[0].wide)).iter() if one.text]
    assert {"steps taken", "m = 1: 8.00", "m = 16: 8.00"} <= set(drawn)
    assert "still growing" in found[0].description
    assert "not runs of their own" in found[0].caption


def test_open_ends_of_an_interval_are_drawn_to_the_axis():
    grown = BySteps(steps=(4, 300), n50=(2.0, 3.0), low=(None, 2.0), high=(None, None))
    results = sample.known_well()
    results = results.model_copy(update={"accessibility": (entry(by_steps=grown, levels=()),)})
    assert "NaN" not in svg(steps(results)[0].wide)


def test_the_first_screen_says_the_steps_and_whether_n50_still_grows():
    results = sample.known_well()
    assert summary.answer(results).endswith("(after 280 to 300 steps, still growing).")
    tiles = {tile.label: tile.basis for tile in summary.tiles(results)}
    for label in ("From one vector", "Each further vector adds", "How far apart"):
        assert "280 to 300 steps" in tiles[label]
    assert 'id="steps"' in page(results)


def test_every_table_of_n50_slope_or_ratio_says_the_steps():
    results = sample.known_well()
    for made in (tables.reached, tables.measured, tables.slopes, tables.ratios):
        assert "Steps" in [column.head for column in made(results).columns]
    for made in (tables.limits, tables.tightest):
        assert "280 to 300 steps each, still growing" in made(results).source


def test_a_line_through_points_of_different_steps_is_marked():
    results = sample.known_well()
    assert "through points of different steps, 280 to 300" in growth(results).caption
    alike = tuple(one.model_copy(update={"steps_taken": (300, 300)}) for one in results.slopes)
    assert "different steps" not in growth(results.model_copy(update={"slopes": alike})).caption
