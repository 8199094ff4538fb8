"""Rounds of strings whose reach is measured: where they go, and where they end."""

import numpy as np

from lmreach.runs.study.conditions import Answer, Chunk
from lmreach.runs.study.reach_schedule import ReachSchedule


def answers(reach: np.ndarray) -> list[Answer]:
    return [Answer(max(round(one), 0), False) for one in reach.tolist()]


def finish(schedule: ReachSchedule, chunk: Chunk, spread: float) -> None:
    middle = 5.0 * chunk.condition.m
    reach = np.random.default_rng(chunk.condition.m).normal(middle, spread * middle, 600)
    schedule.finish(chunk, float(chunk.condition.m * chunk.strings), answers(reach[chunk.first : chunk.last]))


def test_an_interval_has_its_strings_before_any_condition_has_more() -> None:
    schedule = ReachSchedule.of(("random",), (1, 2, 4), 64, 4, 0.1)
    served = []
    while len(served) < 6 and (chunk := schedule.next(None)) is not None:
        finish(schedule, chunk, 0.3)
        served.append((chunk.condition.m, chunk.last))
    assert sorted(served) == [(1, 4), (1, 8), (2, 4), (2, 8), (4, 4), (4, 8)]


def test_strings_go_where_they_narrow_most_per_second() -> None:
    """One kind is sharp and soon known, the other is not."""
    schedule = ReachSchedule.of(("random", "self"), (1,), 400, 8, 0.1)
    counts = {"random": 0, "self": 0}
    while (chunk := schedule.next(None)) is not None:
        kind = chunk.condition.target
        rng = np.random.default_rng([chunk.first, len(kind)])
        reach = rng.normal(40, 1.0 if kind == "random" else 12.0, chunk.strings)
        schedule.finish(chunk, 1.0 * chunk.strings, answers(reach))
        counts[kind] += chunk.strings
    assert counts["random"] == 24  # narrow at the first look, ended at the second
    assert counts["self"] > 100


def test_rounds_end_at_looks_whatever_their_size() -> None:
    for size in (4, 8, 32):
        schedule = ReachSchedule.of(("random",), (1,), 200, size, 0.02)
        ends = set()
        while (chunk := schedule.next(None)) is not None:
            finish(schedule, chunk, 0.1)
            ends.add(chunk.last)
        assert {16, 24, 32, 48} <= ends


def test_a_limit_that_is_met_by_all_ends_with_its_reason() -> None:
    schedule = ReachSchedule.of(("random",), (1,), 400, 8, 0.1)
    while (chunk := schedule.next(None)) is not None:
        schedule.finish(chunk, 1.0, [Answer(5, True)] * chunk.strings)
    (one,) = schedule.settled
    assert one.strings == 400 - 24
    assert "only a longer one" in one.why
