"""How long a run may still take: its budget, and whoever may stop it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

__all__ = ["Clock"]

# What is kept back of a budget to write results and draw the report.
_CLOSING_S = 10.0


class Clock:
    """Time of one run, which begins when this is made.

    Parameters
    ----------
    budget_s
        Seconds for the whole run, results and report included; None: no limit.
    stopped
        Whether the run was asked to end.

    Attributes
    ----------
    started
        When the run began, UTC.
    """

    def __init__(self, budget_s: float | None, stopped: Callable[[], bool]) -> None:
        self.stopped = stopped
        self.started = datetime.now(UTC)
        self._begun = time.monotonic()
        self._deadline = None if budget_s is None else self._begun + budget_s - _CLOSING_S

    def spent(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._begun

    def remaining(self) -> float | None:
        """Return the seconds left for measuring, below 0 once they are spent; None without a budget."""
        return None if self._deadline is None else self._deadline - time.monotonic()

    def over(self) -> bool:
        """Say whether measuring has to end: the run was stopped, or its budget is spent."""
        return self.stopped() or (self._deadline is not None and time.monotonic() > self._deadline)
