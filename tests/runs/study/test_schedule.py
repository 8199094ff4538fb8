"""The schedule: rounds, budgets, and nothing dropped without a word."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.runs.study.schedule import Condition, Schedule


def play(schedule: Schedule, budget: float | None, cost: float) -> list[tuple[Condition, int, int]]:
    """Run a schedule against strings that cost ``cost`` times m seconds."""
    clock, ran = 0.0, []
    while True:
        chunk = schedule.next(None if budget is None else budget - clock)
        if chunk is None:
            return ran
        seconds = cost * chunk.condition.m * chunk.strings
        clock += seconds
        schedule.finish(chunk, seconds)
        ran.append((chunk.condition, chunk.first, chunk.last))


@given(
    ms=st.lists(st.integers(1, 16), min_size=1, max_size=4, unique=True),
    strings=st.integers(1, 20),
    size=st.integers(1, 8),
    budget=st.one_of(st.none(), st.floats(0, 400)),
)
def test_every_string_is_run_or_accounted_for(
    ms: list[int], strings: int, size: int, budget: float | None
) -> None:
    schedule = Schedule.of(("random", "self"), ms, strings, size)
    ran = play(schedule, budget, 1.0)
    for condition in schedule.conditions:
        own = sorted((first, last) for c, first, last in ran if c == condition)
        done = sum(last - first for first, last in own)
        assert [first for first, _ in own] == [0, *(last for _, last in own)][: len(own)]
        missing = sum(one.strings for one in schedule.skipped if one.condition == condition)
        assert done + missing == strings
    if budget is None:
        assert not schedule.skipped


@given(st.floats(1, 1000))
def test_known_costs_keep_the_budget(budget: float) -> None:
    """Costs linear in m are predicted exactly, so only the very first chunk may overrun."""
    schedule = Schedule.of(("random",), (1, 2, 4, 8), 16, 4)
    ran = play(schedule, budget, 1.0)
    spent = sum(condition.m * (last - first) for condition, first, last in ran)
    assert spent <= max(budget, 4) + 1e-6


def test_every_cell_has_a_round_before_any_has_two() -> None:
    ran = play(Schedule.of(("random", "self"), (2, 1), 8, 4), None, 1.0)
    assert [(condition.name, first) for condition, first, _ in ran[:4]] == [
        ("random m=1", 0),
        ("self m=1", 0),
        ("random m=2", 0),
        ("self m=2", 0),
    ]


def test_what_is_expected_shrinks_to_nothing() -> None:
    schedule = Schedule.of(("random",), (1, 2), 4, 4)
    assert schedule.expected(None) is None
    first = schedule.next(None)
    assert first is not None
    schedule.finish(first, 8.0)
    assert schedule.expected(None) == 16.0
    assert schedule.expected(5.0) == 5.0
    second = schedule.next(None)
    assert second is not None
    schedule.finish(second, 16.0)
    assert schedule.expected(None) == 0
    assert schedule.next(None) is None


# With a wanted width --------------------------------------------------------------------------------


def measure(
    schedule: Schedule, budget: float | None = None, scale: float = 5.0, spread: float = 0.1
) -> list[tuple[Condition, int, int]]:
    """Run a schedule against simulated reaches: string i of a condition always reaches the same length."""
    clock, ran = 0.0, []
    while (chunk := schedule.next(None if budget is None else budget - clock)) is not None:
        middle = scale * chunk.condition.m
        drawn = np.random.default_rng([chunk.condition.m, len(chunk.condition.target)]).normal(
            middle, spread * middle, 600
        )
        reach = np.maximum(np.round(drawn[chunk.first : chunk.last]), 0).astype(int)
        seconds = float(chunk.condition.m * chunk.strings)
        clock += seconds
        schedule.finish(chunk, seconds, reach, np.zeros(reach.size, dtype=bool))
        ran.append((chunk.condition, chunk.first, chunk.last))
    return ran


def test_it_stops_by_itself_when_everything_is_known() -> None:
    schedule = Schedule.of(("random",), (1, 2, 4), 500, 8, 0.2)
    ran = measure(schedule, spread=0.1)
    assert not schedule.skipped
    assert {one.condition.m for one in schedule.settled} == {1, 2, 4}
    assert all("known to 20 %" in one.why for one in schedule.settled)
    assert sum(last - first for _, first, last in ran) < 3 * 100
    assert schedule.planned == 0


def test_what_is_known_well_gets_no_more_and_what_is_not_is_said() -> None:
    schedule = Schedule.of(("random",), (1, 2), 64, 8, 0.01)
    ran = measure(schedule, spread=0.5)
    assert not schedule.settled
    done = {m: sum(last - first for condition, first, last in ran if condition.m == m) for m in (1, 2)}
    assert done == {1: 64, 2: 64}
    assert not schedule.skipped  # all strings asked for were run; the results say what is not known


def test_strings_go_where_they_narrow_most_per_second() -> None:
    """One kind is sharp and soon known, the other is not."""
    schedule = Schedule.of(("random", "self"), (1,), 400, 8, 0.1)
    counts = {"random": 0, "self": 0}
    while (chunk := schedule.next(None)) is not None:
        kind = chunk.condition.target
        rng = np.random.default_rng([chunk.first, len(kind)])
        reach = rng.normal(40, 1.0 if kind == "random" else 12.0, chunk.strings).round().astype(int)
        schedule.finish(chunk, 1.0 * chunk.strings, reach, np.zeros(chunk.strings, dtype=bool))
        counts[kind] += chunk.strings
    assert counts["random"] == 24  # narrow at the first look, ended at the second
    assert counts["self"] > 100


@settings(deadline=None, max_examples=10)
@given(st.floats(0, 600), st.integers(4, 32))
def test_a_budget_and_a_width_leave_nothing_out_without_a_word(budget: float, size: int) -> None:
    schedule = Schedule.of(("random",), (1, 3), 40, size, 0.1)
    ran = measure(schedule, budget)
    for condition in schedule.conditions:
        own = [(first, last) for c, first, last in ran if c == condition]
        assert [first for first, _ in own] == [0, *(last for _, last in own)][: len(own)]
        told = sum(
            one.strings for one in (*schedule.skipped, *schedule.settled) if one.condition == condition
        )
        assert sum(last - first for first, last in own) + told == 40


def test_the_same_data_give_the_same_order() -> None:
    runs = [measure(Schedule.of(("random", "self"), (1, 2, 4), 64, 8, 0.1), 900.0) for _ in range(2)]
    assert runs[0] == runs[1]


def test_rounds_end_at_looks_whatever_their_size() -> None:
    for size in (4, 8, 32):
        ran = measure(Schedule.of(("random",), (1,), 200, size, 0.02))
        ends = {last for _, _, last in ran}
        assert {16, 24, 32, 48} <= ends
