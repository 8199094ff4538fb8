"""Where lengths are placed: those asked for, those that tell most, the published grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.runs.study.conditions import Answer, Chunk, Condition
from lmreach.runs.study.length_schedule import LengthSchedule
from lmreach.runs.study.placing import Placing, Trials, chosen, published_grid
from lmreach.runs.study.placing import given as asked
from lmreach.stats.points import point_curve


def schedule_of(place, ms=(1,), limit: int = 200, most: int = 24, width: float | None = None):
    return LengthSchedule.of(("random",), ms, place, lambda _: limit, most, width)


def answers(chunk: Chunk, reach: np.ndarray) -> list[Answer]:
    assert chunk.n is not None
    return [Answer(int(min(one, chunk.n)), bool(one >= chunk.n)) for one in reach[chunk.first : chunk.last]]


def play(
    plan: LengthSchedule, budget: float | None = None, per: float = 20.0, scale: float = 0.1
) -> list[Chunk]:
    """Run a schedule against strings whose reach is drawn once per condition; a trial costs m + n seconds."""
    ran, clock = [], 0.0
    while (chunk := plan.next(None if budget is None else budget - clock)) is not None:
        middle = per * chunk.condition.m
        reach = np.random.default_rng([chunk.condition.m, 3]).logistic(middle, scale * middle, 600)
        seconds = float(chunk.strings * (chunk.condition.m + chunk.n))
        clock += seconds
        plan.finish(chunk, seconds, answers(chunk, reach))
        ran.append(chunk)
    return ran


def test_every_string_at_every_length_asked_for() -> None:
    plan = schedule_of(lambda _: asked((12, 8, 8), 10), ms=(1, 2), most=20)
    ran = play(plan)
    for m in (1, 2):
        pairs = [(c.n, i) for c in ran if c.condition.m == m for i in range(c.first, c.last)]
        assert sorted(pairs) == [(n, i) for n in (8, 12) for i in range(10)]
    assert plan.planned == 0
    assert plan.expected(None) == 0
    assert not plan.skipped


def test_chosen_lengths_close_in_on_n50_and_use_every_string_once() -> None:
    ran = play(schedule_of(lambda condition: chosen(condition.m, 200, 48), most=48))
    strings = [i for c in ran for i in range(c.first, c.last)]
    assert strings == list(range(48))
    assert ran[0].n == 8
    late = [c.n for c in ran[6:]]
    assert all(12 <= n <= 30 for n in late), late
    tried = [{c.n: True} for c in ran]
    assert len(point_curve(tried).n) >= 4


def test_a_length_limit_is_kept() -> None:
    ran = play(schedule_of(lambda condition: chosen(condition.m, 11, 24), limit=11))
    assert max(c.n for c in ran) <= 11
    assert ran[-1].n == 11


def test_beyond_the_limit_ends_early_and_says_so() -> None:
    plan = schedule_of(lambda condition: chosen(condition.m, 5, 400), limit=5, most=400, width=0.1)
    ran = play(plan)
    assert sum(c.strings for c in ran) == 24
    assert "longer one" in plan.settled[0].why


def test_time_does_not_move_a_cells_own_lengths() -> None:
    """A resumed run, on a slower machine, tries the same strings at the same lengths."""

    def lengths(slow: float) -> list[tuple[int, int, int]]:
        plan = schedule_of(lambda condition: chosen(condition.m, 200, 32), ms=(1, 2), most=32)
        ran = []
        while (chunk := plan.next(None)) is not None:
            reach = np.random.default_rng(chunk.condition.m).logistic(20 * chunk.condition.m, 3, 32)
            seconds = slow if chunk.condition.m == 1 else 1.0
            plan.finish(chunk, seconds, answers(chunk, reach))
            ran.append((chunk.condition.m, chunk.n, chunk.first))
        return sorted(ran)

    assert lengths(0.1) == lengths(50.0)


@settings(deadline=None, max_examples=20)
@given(st.floats(0, 3000))
def test_a_budget_leaves_nothing_out_without_a_word(budget: float) -> None:
    plan = schedule_of(lambda _: asked((8, 16), 12), ms=(1, 3), most=24)
    ran = play(plan, budget)
    for condition in plan.conditions:
        done = sum(c.strings for c in ran if c.condition == condition)
        assert done + sum(one.strings for one in plan.skipped if one.condition == condition) == 24
    assert sum(c.strings * (c.condition.m + c.n) for c in ran) <= max(budget, ran[0].strings * (1 + ran[0].n))


def sweep(share, start: int, longest: int) -> list[int]:
    """The published sweep as their code walks it, slow and plain: the order of lengths sampled."""
    sampled: list[int] = []

    def at(n: int) -> float:
        if n not in sampled:
            sampled.append(n)
        return share(n)

    n, high = start, None
    while n <= longest and at(n) > 0.9:
        high, n = n, n + 100
    n = start if high is None else high + 10
    while n <= longest:
        if at(n) < 0.1:
            if n + 100 <= longest:
                at(n + 100)
            break
        n += 10
    return sampled


def walk(place: Placing, share) -> list[int]:
    trials, walked = Trials(), []
    while (placed := place(trials)) is not None:
        n, first, last = placed
        reached = round(share(n) * (last - first))
        told = [Answer(0, i < reached) for i in range(last - first)]
        trials.add(Chunk(Condition("random", 1), first, last, n), told)
        walked.append(n)
    return walked


@given(
    st.integers(1, 400),
    st.integers(1, 80),
    st.integers(1, 15),
    st.integers(20, 700),
)
def test_the_published_grid(middle: int, scale: int, m: int, longest: int) -> None:
    def share(n: int) -> float:
        # In twentieths, as 20 strings give it.
        return round(20 / (1 + np.exp(np.clip((n - middle) / scale, -50, 50)))) / 20

    assert walk(published_grid(m, longest, 20), share) == sweep(share, max(10, m + 1), longest)


def test_a_grid_that_cannot_begin_is_empty() -> None:
    plan = schedule_of(lambda condition: published_grid(condition.m, 6, 20), limit=6, most=20)
    assert plan.next(None) is None


def test_a_chunk_without_a_length_is_none_of_its_own() -> None:
    plan = schedule_of(lambda _: asked((8,), 12), most=12)
    with pytest.raises(AssertionError):
        plan.finish(Chunk(Condition("random", 1), 0, 4), 1.0, [Answer(8, True)] * 4)
