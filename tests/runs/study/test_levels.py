"""n50 against steps: from one run's growth, and what of different steps is counted."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.results.records import Trial
from lmreach.runs.study.ledger import counted, not_counted
from lmreach.runs.study.levels import half_of, steps_fields
from lmreach.stats.accessibility import half_length
from lmreach.stats.levelling import levelling


def trial(index: int, growth: list[tuple[int, int]], steps: int = 100, **more: Any) -> Trial:
    reach = growth[-1][1] if growth else 0
    said = {"outcome": "spent", "max_steps": 100, "growth": growth, "smallest_gap": None, "seconds": 0.1}
    texts = {"text": "", "emitted": ""}
    key = f"{index}-{steps}"
    return Trial(key=key, index=index, reach=reach, limit=64, steps=steps, **{**said, **texts, **more})


growths = st.lists(st.integers(1, 9), min_size=0, max_size=6).map(
    lambda gains: [(10 * i + 3, sum(gains[: i + 1])) for i in range(len(gains))]
)


@settings(deadline=None, max_examples=30)
@given(st.lists(growths, min_size=1, max_size=12))
def test_n50_read_off_one_run_never_falls_and_ends_at_its_own(runs: list[list[tuple[int, int]]]) -> None:
    kept = [trial(i, growth) for i, growth in enumerate(runs)]
    told = steps_fields(kept, [kept])["by_steps"]
    assert list(told.steps) == sorted(set(told.steps))
    assert told.steps[-1] == 100
    assert told.n50[-1] == half_of(kept).value
    known = [0.0 if value is None else value for value in told.n50]
    assert known == sorted(known)
    # The slow way: each string's longest prefix by then.
    for steps, value in zip(told.steps, told.n50, strict=True):
        reach = [max([t for s, t in growth if s <= steps], default=0) for growth in runs]
        assert half_length(reach, [False] * len(reach), limit=64).value == value


def test_records_of_older_runs_have_no_such_figure() -> None:
    old = trial(0, [(3, 4)], max_steps=None).model_copy(update={"growth": None})
    told = steps_fields([old], [[old]])
    assert told["by_steps"] is None
    assert told["max_steps"] is None
    assert told["levelling"] == "not tested"


def test_twice_the_steps_decide_whether_n50_had_levelled_off() -> None:
    before = [trial(i, [(5, 10 + i % 4)], 50, max_steps=50) for i in range(8)]
    same = [trial(i, [(5, 10 + i % 4)]) for i in range(8)]
    further = [trial(i, [(5, 10 + i % 4), (60, 20 + i % 4)]) for i in range(8)]
    assert steps_fields(same, [before, same])["levelling"] == "converged"
    assert steps_fields(further, [before, further])["levelling"] == "still growing"
    assert steps_fields(further, [further])["levelling"] == "not tested"
    # Strings that only one of both has are no reason for a difference.
    more = [*same, *(trial(i, [(5, 40)]) for i in range(8, 16))]
    assert steps_fields(more, [before, more])["levelling"] == "converged"


def test_an_open_interval_tests_nothing() -> None:
    few = half_length([3, 4, 5], [False] * 3, limit=64)
    assert few.high is None
    assert levelling(few, few) == "not tested"


def test_strings_that_were_cut_count_unless_the_others_suffice() -> None:
    whole = [trial(i, [(5, 9)]) for i in range(8)]
    cut = [trial(i, [(5, 6)], 40, outcome="cut", cut_of=f"{i}-100") for i in range(8, 16)]
    assert counted(whole + cut) == whole
    assert not_counted(whole + cut) == cut
    few = whole[:4]
    own = [trial(i, [(5, 6)], 40, outcome="cut", cut_of=f"{i}-100") for i in range(4, 8)]
    assert counted(few + own) == few + own
    told = steps_fields(few + own, [few + own])
    assert told["cut"] == 4
    assert told["steps_taken"] == (40, 100)


def test_a_string_that_was_cut_and_run_again_counts_once() -> None:
    cut = [trial(i, [(5, 6)], 40, outcome="cut", cut_of=f"{i}-100") for i in range(8)]
    later = [trial(i, [(5, 7)], 60, outcome="cut", cut_of=f"{i}-100") for i in range(8)]
    assert [one.steps for one in counted(cut + later)] == [60] * 8
    again = [trial(i, [(5, 9)]) for i in range(8)]
    assert counted(cut + again + later) == again
    assert not_counted(cut + again + later) == []
