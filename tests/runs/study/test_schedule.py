"""The contract of every schedule: budgets, rounds, looks, and nothing dropped without a word."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.runs.study.conditions import Answer, Chunk, Condition
from lmreach.runs.study.costs import Costs
from lmreach.runs.study.length_schedule import LengthSchedule
from lmreach.runs.study.placing import chosen
from lmreach.runs.study.reach_schedule import ReachSchedule
from lmreach.runs.study.schedule import AbstractSchedule

Make = Callable[..., AbstractSchedule]
PER_VECTOR = 20.0


def reaches(ms, strings: int, width: float | None = None, kinds=("random",)) -> AbstractSchedule:
    return ReachSchedule.of(kinds, ms, strings, 4, width)


def lengths(ms, strings: int, width: float | None = None, kinds=("random",)) -> AbstractSchedule:
    limit = int(50 * PER_VECTOR)
    return LengthSchedule.of(
        kinds, ms, lambda c: chosen(c.m, limit, strings), lambda _: limit, strings, width
    )


BOTH = pytest.mark.parametrize("make", [reaches, lengths])


def seconds_of(chunk: Chunk) -> float:
    return float(chunk.strings * (chunk.condition.m if chunk.n is None else chunk.condition.m + chunk.n))


def answers_of(chunk: Chunk, scale: float) -> list[Answer]:
    """String i of a condition reaches the same length whenever it is asked."""
    middle = PER_VECTOR * chunk.condition.m
    seed = [chunk.condition.m, len(chunk.condition.target)]
    drawn = np.random.default_rng(seed).logistic(middle, scale * middle, 700).clip(0).round().astype(int)
    own = drawn[chunk.first : chunk.last].tolist()
    if chunk.n is None:
        return [Answer(one, False) for one in own]
    return [Answer(min(one, chunk.n), one >= chunk.n) for one in own]


def play(
    schedule: AbstractSchedule,
    budget: float | None = None,
    scale: float = 0.1,
    cost: Callable[[Chunk, float], float] = lambda chunk, _clock: seconds_of(chunk),
) -> tuple[list[Chunk], float]:
    """Run a schedule against a clock of its own; returns what was run, and when it ended."""
    ran, clock = [], 0.0
    while (chunk := schedule.next(None if budget is None else budget - clock)) is not None:
        seconds = cost(chunk, clock)
        clock += seconds
        schedule.finish(chunk, seconds, answers_of(chunk, scale))
        ran.append(chunk)
    return ran, clock


@BOTH
class TestContract:
    @settings(deadline=None, max_examples=15)
    @given(
        ms=st.lists(st.integers(1, 16), min_size=1, max_size=3, unique=True),
        strings=st.integers(1, 20),
        budget=st.one_of(st.none(), st.floats(0, 4000)),
        width=st.sampled_from([None, 0.1, 0.5]),
    )
    def test_every_trial_is_run_or_accounted_for(self, make: Make, ms, strings, budget, width) -> None:
        schedule = make(ms, strings, width)
        ran, _ = play(schedule, budget)
        for condition in schedule.conditions:
            own = [chunk for chunk in ran if chunk.condition == condition]
            # Strings in their order, each once.
            assert [c.first for c in own] == [0, *(c.last for c in own)][: len(own)]
            said = (*schedule.skipped, *schedule.settled)
            assert len([one for one in said if one.condition == condition]) <= 1
            missing = sum(one.strings for one in said if one.condition == condition)
            assert sum(c.strings for c in own) + missing == strings
            assert schedule.done(condition) + missing == strings
        assert schedule.planned == 0
        assert budget is not None or not schedule.skipped

    @settings(deadline=None, max_examples=15)
    @given(st.floats(1, 3000))
    def test_known_costs_keep_the_budget(self, make: Make, budget: float) -> None:
        """Costs in proportion to the work are predicted exactly: only the very first chunk may overrun."""
        ran, clock = play(make((1, 2, 4), 16), budget)
        assert clock <= max(budget, seconds_of(ran[0])) + 1e-6

    def test_a_machine_that_gets_busy_is_noticed(self, make: Make) -> None:
        """After an eighth of the budget all costs five times as much: what does not fit then is not begun."""
        slow = 5.0
        _, budget = play(make((1, 2, 4), 64))

        def cost(chunk: Chunk, clock: float) -> float:
            return seconds_of(chunk) * (slow if clock > budget / 8 else 1.0)

        ran, clock = play(make((1, 2, 4), 64), budget, cost=cost)
        assert len(ran) < 48
        assert clock > budget / 2
        longest = max(slow * seconds_of(chunk) for chunk in ran)
        # The chunk in which the change came was not foreseen, those after it were.
        assert clock <= budget + longest

    def test_a_condition_that_costs_more_than_its_share_does_not_slow_the_others(self, make: Make) -> None:
        def cost(chunk: Chunk, _clock: float) -> float:
            return seconds_of(chunk) * (10.0 if chunk.condition.m == 4 else 1.0)

        schedule = make((1, 2, 4), 12)
        ran, _ = play(schedule, cost=cost)
        again = [chunk for chunk in ran if chunk.condition.m == 1][-1]
        assert schedule.predict(again) == pytest.approx(seconds_of(again), rel=0.5)

    def test_every_condition_has_a_chunk_before_any_has_three(self, make: Make) -> None:
        schedule = make((2, 1), 16, kinds=("random", "self"))
        ran, _ = play(schedule)
        names = [chunk.condition.name for chunk in ran]
        assert names[:4] == ["random m=1", "self m=1", "random m=2", "self m=2"] or len(set(names[:8])) == 4

    def test_what_is_expected_shrinks_to_nothing(self, make: Make) -> None:
        schedule = make((1, 2), 8)
        assert schedule.expected(None) is None
        assert schedule.expected(7.0) == 7.0
        first = schedule.next(None)
        assert first is not None
        schedule.finish(first, seconds_of(first), answers_of(first, 0.1))
        expected = schedule.expected(None)
        assert expected is not None
        assert expected > 0
        assert schedule.expected(0.5) == 0.5
        play(schedule)
        assert schedule.expected(None) == 0
        assert schedule.next(None) is None

    def test_it_stops_by_itself_when_everything_is_known(self, make: Make) -> None:
        schedule = make((1, 2), 600, 0.3)
        ran, _ = play(schedule, scale=0.03)
        assert not schedule.skipped
        assert {one.condition.m for one in schedule.settled} == {1, 2}
        assert all("known to 30 %" in one.why for one in schedule.settled)
        assert sum(chunk.strings for chunk in ran) < 300

    def test_what_is_narrow_at_a_look_ends_at_the_next_and_no_sooner(self, make: Make) -> None:
        """One m: n50 alone decides. The first look is at 16 trials, so nothing ends before 24."""
        ran, _ = play(make((1,), 600, 0.9), scale=0.01)
        assert sum(chunk.strings for chunk in ran) == 24

    def test_a_slope_ends_its_kind_at_the_second_look_too(self, make: Make) -> None:
        """Widths so large that n50 and slope are known as soon as they may be."""
        schedule = make((1, 2), 600, 50.0)
        while (chunk := schedule.next(None)) is not None:
            schedule.finish(chunk, seconds_of(chunk), answers_of(chunk, 0.01))
            if schedule.settled:
                break
        looked = [schedule._known[condition].looked_at for condition in schedule.conditions]
        assert max(looked) >= 24
        # The slope was judged once when both had a look, and again at the look after it.
        assert schedule.slope_width("random") is not None
        assert "random" in schedule._slope_due

    def test_what_is_not_known_in_the_end_is_not_called_settled(self, make: Make) -> None:
        schedule = make((1, 2), 32, 0.001)
        ran, _ = play(schedule, scale=0.4)
        assert not schedule.settled
        assert not schedule.skipped
        assert sum(chunk.strings for chunk in ran) == 64

    def test_giving_up_names_what_is_open_once(self, make: Make) -> None:
        schedule = make((1, 2), 12)
        chunk = schedule.next(None)
        assert chunk is not None
        schedule.finish(chunk, 1.0, answers_of(chunk, 0.1))
        schedule.close(chunk.condition, "the run was stopped")
        schedule.give_up("twice")
        assert [(one.condition.m, one.strings, one.why) for one in schedule.skipped] == [
            (1, 12 - chunk.strings, "the run was stopped"),
            (2, 12, "twice"),
        ]
        assert schedule.next(None) is None

    def test_the_same_data_give_the_same_order(self, make: Make) -> None:
        runs = [play(make((1, 2), 40, 0.1), 2000.0)[0] for _ in range(2)]
        assert runs[0] == runs[1]

    def test_an_answer_is_needed_for_every_string(self, make: Make) -> None:
        schedule = make((1,), 8)
        chunk = schedule.next(None)
        assert chunk is not None
        with pytest.raises(AssertionError):
            schedule.finish(chunk, 1.0, answers_of(chunk, 0.1)[:-1])


def test_costs_tell_a_busy_machine_from_a_dear_condition() -> None:
    one, two = Condition("random", 1), Condition("random", 2)
    costs = Costs()
    assert costs.predict(one, 1.0) is None
    costs.note(one, 10, 10.0)
    costs.note(two, 10, 30.0)
    assert costs.predict(one, 1) == 1.0
    assert costs.predict(two, 1) == 3.0
    assert costs.predict(Condition("self", 4), 1) == 3.0
    costs.note(one, 10, 40.0)
    assert costs.predict(two, 1) == 12.0


def test_a_guess_gives_way_to_the_first_measured_chunk() -> None:
    one = Condition("random", 1)
    costs = Costs(pace=5.0)
    assert costs.predict(one, 2) == 10.0
    costs.note(one, 10, 10.0)
    assert costs.predict(one, 2) == 2.0
