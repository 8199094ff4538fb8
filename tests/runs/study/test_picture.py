"""What a first picture has, from what steps cost."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.picture import STEPS, first_picture, in_order
from lmreach.runs.study.step_model import StepModel

KINDS, MS = ("random", "self"), (1, 2, 4, 8, 16)


def model(per_pass: float = 0.01, per_position: float = 0.0002) -> StepModel:
    return StepModel(per_pass, per_position, per_token=per_pass, block=lambda m: max(8, 7 * m))


def picture(seconds: float, timed: StepModel | None = None, **more):
    timed = timed or model()
    more.setdefault("most_steps", 300)
    return first_picture(KINDS, MS, lambda c: timed.seconds(Chunk(c, 0, 8)), seconds, **more)


@settings(deadline=None)
@given(st.floats(0.5, 5000), st.floats(0.0001, 1), st.floats(1e-5, 0.05))
def test_a_picture_has_one_number_of_steps_and_fits_if_anything_does(seconds, each, position) -> None:
    found = picture(seconds, model(each, position))
    assert {one.steps for one in found.conditions} == {found.steps}
    assert found.steps in STEPS
    assert found.conditions[0] == Condition("random", 1, found.steps)
    if found.seconds > 1.8 * seconds:
        assert found.conditions == (Condition("random", 1, STEPS[0]),)


def test_more_time_never_measures_less() -> None:
    order = [picture(seconds) for seconds in (1, 3, 10, 30, 100, 300, 1000, 3000)]
    for less, more in pairwise(order):
        measured = [len({(c.target, c.m) for c in one.conditions}) for one in (less, more)]
        assert measured[0] <= measured[1]


def test_where_all_fits_easily_half_of_the_time_is_left_for_doubling() -> None:
    found = picture(2000.0)
    assert len(found.conditions) == 10
    assert found.steps >= 60
    assert found.seconds <= 1000.0


def test_a_busy_machine_gives_up_large_m_first_and_keeps_three_for_a_line() -> None:
    free = picture(150.0)
    for slower in (2, 4, 8):
        busy = picture(150.0, model(0.01 * slower, 0.0002 * slower))
        assert len(busy.conditions) <= len(free.conditions)
    assert {c.m for c in busy.conditions if c.target == "random"} >= {1, 2, 4}


def test_steps_that_were_asked_for_stay() -> None:
    for seconds in (1.0, 100.0, 10_000.0):
        assert picture(seconds, steps=77).steps == 77


def test_three_m_of_each_kind_come_before_the_larger() -> None:
    order = in_order([Condition(kind, m) for kind in KINDS for m in reversed(MS)])
    assert [(c.target[0], c.m) for c in order] == [
        *(("r", m) for m in MS[:3]),
        *(("s", m) for m in MS[:3]),
        *((kind, m) for m in MS[3:] for kind in "rs"),
    ]


def test_a_model_of_steps_is_linear_in_rows_and_steps() -> None:
    steps = model()
    one = steps.seconds(Chunk(Condition("random", 2, 100), 0, 4))
    twice = steps.seconds(Chunk(Condition("random", 2, 200), 0, 4))
    confirming = steps.confirming(Chunk(Condition("random", 2), 0, 4))
    assert twice - confirming == pytest.approx(2 * (one - confirming))
    assert steps.step(Condition("self", 2), 8) > steps.step(Condition("random", 2), 8)
