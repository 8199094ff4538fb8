"""The schedule: rounds, budgets, and nothing dropped without a word."""

from hypothesis import given
from hypothesis import strategies as st

from lmreach.study.schedule import Cell, Schedule


def play(schedule: Schedule, budget: float | None, cost: float) -> list[tuple[Cell, int, int]]:
    """Run a schedule against strings that cost ``cost`` times m seconds."""
    clock, ran = 0.0, []
    while True:
        chunk = schedule.next(None if budget is None else budget - clock)
        if chunk is None:
            return ran
        seconds = cost * chunk.cell.m * chunk.strings
        clock += seconds
        schedule.finish(chunk, seconds)
        ran.append((chunk.cell, chunk.first, chunk.last))


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
    for cell in schedule.cells:
        own = sorted((first, last) for c, first, last in ran if c == cell)
        done = sum(last - first for first, last in own)
        assert [first for first, _ in own] == [0, *(last for _, last in own)][: len(own)]
        missing = sum(one.strings for one in schedule.skipped if one.cell == cell)
        assert done + missing == strings
    if budget is None:
        assert not schedule.skipped


@given(st.floats(1, 1000))
def test_known_costs_keep_the_budget(budget: float) -> None:
    """Costs linear in m are predicted exactly, so only the very first chunk may overrun."""
    schedule = Schedule.of(("random",), (1, 2, 4, 8), 16, 4)
    ran = play(schedule, budget, 1.0)
    spent = sum(cell.m * (last - first) for cell, first, last in ran)
    assert spent <= max(budget, 4) + 1e-6


def test_every_cell_has_a_round_before_any_has_two() -> None:
    ran = play(Schedule.of(("random", "self"), (2, 1), 8, 4), None, 1.0)
    assert [(cell.name, first) for cell, first, _ in ran[:4]] == [
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
