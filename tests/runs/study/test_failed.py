"""Trials whose loss stopped being a number: failed, told as such, and no evidence anywhere."""

import json
from pathlib import Path

import pytest

from lmreach.config import CramPlan, StudyConfig
from lmreach.experiments.cramming.cram import CramResult
from lmreach.results.records import Trial
from lmreach.runs.copying.limit import cram_entry
from lmreach.runs.study.conditions import Answer, Chunk, Condition
from lmreach.runs.study.ledger import counted, whole_rounds
from lmreach.runs.study.length_schedule import LengthSchedule
from lmreach.runs.study.placing import given, published_grid
from lmreach.runs.study.reach_schedule import ReachSchedule
from lmreach.runs.study.run import run_study

ONE = Condition("random", 1)
FAILED, SOUND = Answer(0, False, failed=True), Answer(5, False)


def trial(index: int, outcome: str) -> Trial:
    return Trial(
        index=index,
        outcome=outcome,
        reach=4,
        limit=9,
        smallest_gap=None,
        steps=1,
        seconds=0.1,
        text="",
        emitted="",
    )


def test_failed_strings_do_not_count_and_break_no_row() -> None:
    own = [trial(0, "spent"), trial(1, "non_finite"), trial(2, "gave_up"), trial(4, "spent")]
    assert [one.index for one in counted(own)] == [0, 2]
    assert [one.index for one in whole_rounds(own)] == [0, 1, 2]


@pytest.mark.parametrize("width", [None, 0.1])
def test_a_round_that_failed_ends_its_condition_and_a_string_that_failed_does_not(width) -> None:
    plan = ReachSchedule.of(["random"], [1], 32, 4, width)
    plan.finish(Chunk(ONE, 0, 4), 1.0, [FAILED, SOUND, FAILED, SOUND])
    assert plan.done(ONE) == 4, "failed strings are not run again"
    chunk = plan.next(None)
    assert chunk is not None
    assert chunk.first == 4
    plan.finish(chunk, 1.0, [FAILED] * chunk.strings)
    assert plan.next(None) is None
    (left,) = plan.skipped
    assert left.why == f"the loss of all {chunk.strings} strings stopped being a number"


def test_lengths_at_which_all_failed_are_not_asked_again() -> None:
    for place in (lambda _: given((4, 8), 4), lambda _: published_grid(1, 500, 4)):
        plan = LengthSchedule.of(["random"], [1], place, lambda _m: 500, 4)
        asked = 0
        while (chunk := plan.next(None)) is not None:
            asked += 1
            plan.finish(chunk, 1.0, [FAILED] * chunk.strings)
        assert asked == 1
    plan = LengthSchedule.of(["random"], [1], lambda _: given((4,), 4), lambda _m: 500, 4)
    plan.finish(plan.next(None), 1.0, [FAILED, Answer(4, True), FAILED, Answer(4, True)])
    assert [one.tolist() for one in plan._known[ONE].points()] == [[4], [2], [2]]


def test_eight_of_eight_that_failed_are_no_n50_below_one_token(tmp_path: Path) -> None:
    """Starts that overflow: "n50 below 1 token" was said of them."""
    config = StudyConfig(
        model="builtin:random",
        m=(1,),
        targets=("random",),
        budget_s=None,
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(strings=8, max_steps=5, n_max=6, start_scale=1e38),
    )
    folder = run_study(config, tmp_path / "run").folder
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["accessibility"] == []
    told = {one["what"]: one["why"] for one in results["not_done"]}
    assert "stopped being a number" in told["8 strings of random m=1 failed and do not count"]


def test_failed_strings_of_a_copier_are_told_beside_the_others() -> None:
    sound = CramResult(0, 3, "spent", None, None, 0.1, 3, 9)
    entry = cram_entry(1, 9, [sound, CramResult(1, 0, "non_finite", None, None, None, 0, 2)])
    assert (entry.strings, entry.failed, entry.reaches) == (1, 1, (3,))
    none = cram_entry(1, 9, [CramResult(1, 0, "non_finite", None, None, None, 0, 2)])
    assert (none.strings, none.failed, none.n50.verdict) == (0, 1, "no_data")
