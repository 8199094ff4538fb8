"""How long a run may still take: its budget, and whoever may stop it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

__all__ = ["Clock"]

# What is kept back of a budget to write results and draw the report, before either was timed: seconds, or a
# share of what importing took, which says how busy the machine is; never more than these shares of it.
_CLOSING_S, _CLOSING_SHARE = 8.0, 0.1
_OF_IMPORTING, _MOST_SHARE = 0.4, 0.25


class Clock:
    """Time of one run.

    Parameters
    ----------
    budget_s
        Seconds for the whole run, results and report included; None: no limit.
    stopped
        Whether the run was asked to end.
    now
        Seconds of a clock that never goes back.
    begun
        When the run began, on that clock; None: now. A command begins before torch is imported.

    Attributes
    ----------
    started
        When the run began, UTC.
    told
        Whether anybody who asked was told that measuring has to end.
    """

    def __init__(
        self,
        budget_s: float | None,
        stopped: Callable[[], bool] = lambda: False,
        *,
        now: Callable[[], float] = time.monotonic,
        begun: float | None = None,
    ) -> None:
        self.stopped = stopped
        self.started = datetime.now(UTC)
        self.now = now
        self.budget_s = budget_s
        self.told = False
        self._begun = now() if begun is None else begun
        self._closing = 0.0
        if budget_s is not None:
            busy = min(_OF_IMPORTING * self.spent(), _MOST_SHARE * budget_s)
            self._closing = max(min(_CLOSING_S, _CLOSING_SHARE * budget_s), busy)

    def spent(self) -> float:
        """Return the seconds since the beginning."""
        return self.now() - self._begun

    def keep_back(self, seconds: float) -> None:
        """Keep so many seconds of the budget for the end, in place of what was kept before."""
        self._closing = seconds

    @property
    def closing(self) -> float:
        """Seconds of the budget kept for the end."""
        return self._closing

    def remaining(self) -> float | None:
        """Return the seconds left for measuring, below 0 once they are spent; None without a budget."""
        return None if self.budget_s is None else self.budget_s - self._closing - self.spent()

    def over(self, ahead: float = 0.0) -> bool:
        """Say whether measuring has to end: the run was stopped, or its budget is spent.

        Parameters
        ----------
        ahead
            Seconds of work that would still follow.
        """
        self.told = (over := self.stopped() or self.late(ahead)) or self.told
        return over

    def late(self, ahead: float = 0.0) -> bool:
        """Say whether the budget is spent, ``ahead`` seconds from now."""
        left = self.remaining()
        return left is not None and left <= ahead

    def within(self, seconds: float | None) -> "Callable[[], bool]":
        """Return a question that is answered yes after so many seconds, or once measuring has to end."""
        ends = None if seconds is None else self.now() + seconds
        return lambda: self.over() or (ends is not None and self.now() >= ends)
