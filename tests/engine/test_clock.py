"""A run's clock: its budget holds whatever time does."""

import pytest

from lmreach.engine.clock import Clock


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_a_budget_is_counted_from_where_it_began() -> None:
    hand = Hand()
    clock = Clock(60.0, now=hand, begun=90.0)
    assert clock.spent() == 10
    assert clock.remaining() == pytest.approx(60 - 10 - clock.closing)
    hand.at = 140.0
    assert clock.remaining() == pytest.approx(10 - clock.closing)
    assert not clock.over()
    assert clock.over(ahead=10.0)
    hand.at = 150.0
    assert clock.over()


def test_what_is_kept_back_for_the_end_is_never_more_than_a_tenth_at_first() -> None:
    for budget in (5.0, 60.0, 3600.0):
        assert Clock(budget, now=Hand()).closing <= 0.1 * budget
    clock = Clock(60.0, now=Hand())
    clock.keep_back(3.0)
    assert clock.remaining() == 57.0


def test_without_a_budget_only_a_stop_ends_it() -> None:
    hand, asked = Hand(), []
    clock = Clock(None, lambda: bool(asked), now=hand)
    hand.at = 1e9
    assert clock.remaining() is None
    assert not clock.over(ahead=1e9)
    asked.append(1)
    assert clock.over()
    assert not clock.late()


def test_a_part_ends_with_its_share_or_with_the_run() -> None:
    hand = Hand()
    clock = Clock(1000.0, now=hand)
    ended, forever = clock.within(5.0), clock.within(None)
    assert not ended()
    hand.at += 5.0
    assert ended()
    assert not forever()
    hand.at += 1000.0
    assert forever()


def test_the_time_of_day_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is set, or that changes to summer time, spends its budget no sooner."""
    day = [1e9]
    monkeypatch.setattr("time.time", lambda: day[0])
    clock = Clock(60.0)
    for jump in (3600.0, -7200.0, 1e8):
        day[0] += jump
        assert not clock.over()
        assert 0 <= clock.spent() < 30
