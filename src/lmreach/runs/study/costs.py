"""What work costs here and now, learned from every chunk: a machine that gets busier is noticed."""

from dataclasses import dataclass, field

from lmreach.runs.study.conditions import Condition

__all__ = ["Costs"]


@dataclass
class Costs:
    """Seconds per unit of work, of the machine as it is and of each condition beside the others.

    Attributes
    ----------
    pace
        Seconds per unit of work as last seen; None before anything was timed.
    timed
        Whether ``pace`` comes from finished chunks; before that it is a guess from timed steps.
    """

    pace: float | None = None
    timed: bool = False
    _factors: dict[Condition, float] = field(default_factory=dict)

    def note(self, condition: Condition, work: float, seconds: float) -> None:
        """Take note of finished work.

        A condition that has run before costs what it did, so a change is the machine's and holds for all; of
        a new one the difference to the others is taken for its own.
        """
        if seconds <= 0 or work <= 0:
            return
        rate = seconds / work
        if condition in self._factors and self.pace is not None:
            self.pace = rate / self._factors[condition]
        elif self.timed and self.pace is not None:
            self._factors[condition] = rate / self.pace
        else:
            self.pace, self._factors[condition] = rate, 1.0
        self.timed = True

    def predict(self, condition: Condition, work: float) -> float | None:
        """Return the seconds that work will take: as the condition's own, else as that of the nearest m."""
        if self.pace is None:
            return None
        return work * self.pace * self._factor(condition)

    def _factor(self, condition: Condition) -> float:
        if condition in self._factors:
            return self._factors[condition]
        alike = [one for one in self._factors if one.target == condition.target] or list(self._factors)
        if not alike:
            return 1.0
        near = min(alike, key=lambda one: (abs(one.m - condition.m), -one.steps))
        return self._factors[near]
