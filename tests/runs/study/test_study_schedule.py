"""A study under a clock of its own: a picture by half of the budget, then more steps and strings."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.clock import Clock
from lmreach.progress import Silent
from lmreach.runs.study.conditions import Answer, Chunk, Condition
from lmreach.runs.study.kept import Kept
from lmreach.runs.study.rounds import planned, serve
from lmreach.runs.study.step_model import StepModel
from lmreach.runs.study.study_schedule import PICTURE_STRINGS, StudySchedule
from lmreach.runs.study.trials import Finished

STEPS = StepModel(per_pass=0.02, per_position=0.0003, per_token=0.01, block=lambda m: max(8, 7 * m))
BUDGET = 300.0
MS = StudyConfig(model="builtin:verse").m


@dataclass
class Machine:
    """Runs chunks on a clock of its own, ``slow`` times as slowly as foreseen; cuts at the deadline.

    Reaches grow with steps towards ``per_vector`` tokens a vector, with half of it won in ``half`` steps.
    """

    slow: Callable[[float], float] = lambda _: 1.0
    per_vector: float = 5.0
    half: float = 40.0
    spread: float = 0.15
    at: float = 0.0
    ran: list[Chunk] = field(default_factory=list)
    cut: list[Chunk] = field(default_factory=list)
    clock: Clock = field(init=False)

    def __call__(self) -> float:
        return self.at

    size = 1

    def start(self, chunk: Chunk) -> Future:
        future: Future = Future()
        future.set_result(self.run(chunk))
        return future

    def wait(self, futures: Iterable[Future]) -> set[Future]:
        return set(futures)

    def finished(self, future: Future) -> Finished:
        return future.result()

    def stop(self) -> None:
        """Nothing runs."""

    def run(self, chunk: Chunk) -> Finished:
        begun, need = self.at, STEPS.seconds(chunk) * self.slow(self.at)
        left = self.clock.remaining()
        share = 1.0 if left is None or need <= left else max(left, 0.0) / need
        self.at += share * need
        (self.ran if share == 1.0 else self.cut).append(chunk)
        return Finished(
            self.at - begun, [self.answer(chunk, i, share) for i in range(chunk.first, chunk.last)]
        )

    def answer(self, chunk: Chunk, string: int, share: float) -> Answer:
        condition, steps = chunk.condition, share * chunk.condition.steps
        own = np.random.default_rng([string, condition.m]).normal(1.0, self.spread)
        kind = 1.0 if condition.target == "random" else 4.0
        reach = kind * self.per_vector * condition.m * own * steps / (steps + self.half)
        return Answer(max(round(reach), 0), False)


def study(
    machine: Machine,
    budget: float = BUDGET,
    config: StudyConfig | None = None,
    **more: object,
) -> StudySchedule:
    """Play a study: what runs before and after cramming is left out."""
    config = config or StudyConfig(model="builtin:verse", budget_s=budget)
    machine.clock = Clock(budget, now=machine)
    rounds = planned(config, STEPS, 0.5 * budget)
    serve(rounds, machine, machine.clock, Silent(), **more)
    return rounds


def strings_of(machine: Machine) -> dict[tuple[str, int, int], int]:
    counts: dict[tuple[str, int, int], int] = {}
    for chunk in machine.ran:
        key = (chunk.condition.target, chunk.condition.m, chunk.condition.steps)
        counts[key] = counts.get(key, 0) + chunk.strings
    return counts


@pytest.mark.parametrize("slow", [0.5, 1.0, 3.0, 6.0])
def test_the_budget_is_kept_and_spent(slow: float) -> None:
    """Whatever the machine does: nothing runs past the end, and no more than a tenth is left over."""
    machine = Machine(lambda _: slow)
    study(machine)
    assert machine.at <= BUDGET
    assert machine.at >= 0.85 * BUDGET


@pytest.mark.parametrize("slow", [1.0, 2.0])
def test_a_first_picture_stands_by_half_of_the_budget(slow: float) -> None:
    """Twice as slow as foreseen, it has had twice its time."""
    machine = Machine(lambda _: slow)
    rounds = study(machine, until=lambda: machine.at >= 0.5 * slow * BUDGET)
    assert all(rounds.done(condition) >= PICTURE_STRINGS for condition in rounds.picture)
    assert {condition.m for condition in rounds.picture} >= {1, 2, 4}


def test_on_a_free_machine_both_kinds_have_a_line_of_four_m_and_more_steps_follow() -> None:
    machine = Machine()
    rounds = study(machine)
    counts = strings_of(machine)
    for kind in ("random", "self"):
        at = rounds.lines()[kind]
        assert len([1 for (k, _, s), n in counts.items() if (k, s) == (kind, at) and n >= 8]) >= 4
    assert len(rounds.levels("random")) > 1
    width = rounds.slope_width("random")
    assert width is not None
    assert width <= 0.4


def test_a_machine_four_times_as_slow_still_has_a_slope_of_random_targets() -> None:
    machine = Machine(lambda _: 4.0)
    study(machine)
    own = {m: n for (kind, m, _), n in strings_of(machine).items() if kind == "random"}
    assert len([m for m, n in own.items() if n >= 6]) >= 3


def test_a_machine_that_gets_busy_halfway_is_noticed() -> None:
    machine = Machine(lambda at: 1.0 if at < 60 else 5.0)
    study(machine)
    assert machine.at <= BUDGET
    assert len(machine.cut) <= 1


def test_a_line_has_one_number_of_steps_and_strings_keep_their_order() -> None:
    machine = Machine()
    rounds = study(machine)
    for kind in ("random", "self"):
        line = rounds._line(kind)
        assert {c.steps for c in line} == {rounds.lines()[kind]}
    for condition in rounds.conditions:
        own = [chunk for chunk in machine.ran if chunk.condition == condition]
        assert [c.first for c in own] == [0, *(c.last for c in own)][: len(own)]


def test_steps_double_until_n50_stands_still() -> None:
    """Strings that win half of their tokens in one step have nothing to gain from more."""
    early = Machine(half=0.5)
    rounds = study(early, 2000.0)
    assert rounds.has_levelled("random")
    late = Machine(half=400.0)
    assert max(study(late, 2000.0).levels("random")) > max(rounds.levels("random"))


def test_steps_that_were_asked_for_are_never_doubled() -> None:
    config = StudyConfig(model="builtin:verse", budget_s=BUDGET, cram=CramPlan(max_steps=70))
    assert not config.adapts
    machine = Machine()
    study(machine, config=config)
    assert {chunk.condition.steps for chunk in machine.ran} == {70}


def test_a_budget_too_short_for_anything_still_measures_what_it_can() -> None:
    machine = Machine(lambda _: 30.0)
    study(machine, 20.0)
    assert machine.at <= 20.0
    (first, *_) = (*machine.ran, *machine.cut)
    assert first.condition.target == "random"
    assert first.condition.m == 1


@settings(deadline=None, max_examples=10)
@given(st.floats(5, 600), st.floats(0.2, 20))
def test_nothing_that_was_asked_for_goes_without_a_word(budget: float, slow: float) -> None:
    machine = Machine(lambda _: slow)
    rounds = study(machine, budget)
    rounds.give_up("the budget was spent")
    assert machine.at <= budget
    for kind in ("random", "self"):
        for m in MS:
            said = [
                one
                for one in (*rounds.skipped, *rounds.settled)
                if (one.condition.target, one.condition.m) == (kind, m)
            ]
            ran = [
                c for c in (*machine.ran, *machine.cut) if (c.condition.target, c.condition.m) == (kind, m)
            ]
            whole = any(c.last == 32 for c in ran)
            doubled = max((c.condition.steps for c in ran), default=0) > rounds.picture[0].steps
            assert said or whole or doubled


def test_a_plan_is_kept_and_restored() -> None:
    machine = Machine()
    rounds = study(machine)
    rounds.give_up("the budget was spent")
    kept = Kept.model_validate_json(Kept.of(rounds).model_dump_json())
    again = kept.schedule(32, 0.1, STEPS.seconds)
    assert again.conditions == rounds.conditions
    assert again.picture == rounds.picture
    assert set(again.waiting) == {(k, m) for k in ("random", "self") for m in MS} - {
        (c.target, c.m) for c in rounds.conditions
    }
    for chunk in machine.ran:
        assert again.upcoming(chunk.condition) is not None or chunk.condition in again._closed
        again.finish(chunk, 0.0, [machine.answer(chunk, i, 1.0) for i in range(chunk.first, chunk.last)])
    assert again.lines() == rounds.lines()


def test_without_a_budget_a_kept_plan_runs_all_that_was_asked_for() -> None:
    first = StudySchedule.begin(
        [Condition("random", 1, 50)], ["random"], [1, 2], None, strings=10, width=None, doubling=True
    )
    ran = []
    while (chunk := first.next(None)) is not None:
        first.finish(chunk, 1.0, [Answer(3, False)] * chunk.strings)
        ran.append((chunk.condition.m, chunk.last, chunk.condition.steps))
    assert ran == [(1, 8, 50), (2, 8, 50), (1, 10, 50), (2, 10, 50)]
