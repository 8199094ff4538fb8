"""Which strings to cram next where one run of a string gives its reach (protocol *frontier*)."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmreach.config.targets import labels
from lmreach.runs.study.conditions import Answer, Chunk, Condition, Skipped
from lmreach.runs.study.costs import Costs
from lmreach.runs.study.schedule import AbstractSchedule, Evidence
from lmreach.stats.accessibility import half_length
from lmreach.stats.placement import NEARLY, Standing, is_narrow, next_look
from lmreach.stats.posterior import posterior_of_reaches

__all__ = ["FOR_AN_INTERVAL", "ReachSchedule", "Reaches"]

FOR_AN_INTERVAL = 6
"""Fewer strings leave a 95 % interval of n50 open whatever they reach."""


@dataclass
class Reaches(Evidence):
    """Reaches of the finished strings of a condition."""

    reach: list[int] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    failed: int = 0
    _standing: Standing | None = None

    @property
    def count(self) -> int:
        """Return the number of finished strings, failed ones included."""
        return len(self.reach) + self.failed

    def add(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Take note of a finished chunk."""
        sound = [answer for answer in answers if not answer.failed]
        self.reach += [answer.reach for answer in sound]
        self.censored += [answer.whole for answer in sound]
        self.failed += len(answers) - len(sound)
        self._standing = None

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return reaches and censoring flags."""
        return np.array(self.reach, dtype=np.int64), np.array(self.censored, dtype=bool)

    def standing(self, m: int) -> Standing:
        """Return n50 and its error from the curve's posterior."""
        if self._standing is None:
            found = posterior_of_reaches(*self.arrays())
            n50, _, _ = found.interval(found.n50, 0.95)
            self._standing = Standing(m, n50, found.spread() * n50, self.count)
        return self._standing

    def judge(self, width: float) -> bool:
        """Judge the interval of n50; the longest reach stands for the limit, as in the results."""
        half = half_length(*self.arrays(), limit=max(self.reach) or 1)
        self.no_value = half.value is None
        if half.low is not None and half.high is None:
            self.reason = "n50 lies at the length limit or beyond it: only a longer one would tell more"
        else:
            self.reason = "n50 surely lies below one token" if self.no_value else ""
        below = half.verdict == "below_one" and half.high is not None and half.high <= 1
        return below or is_narrow(half, NEARLY * width)


@dataclass
class ReachSchedule(AbstractSchedule):
    """Strings of every condition in rounds.

    Attributes
    ----------
    strings
        Wanted per condition.
    round_size
        Strings per chunk.
    mine
        Whether a round, by its number in the plan, is run here at all; others are left to other runs.
    """

    strings: int = 1
    round_size: int = 1
    mine: Callable[[int], bool] = lambda _: True
    _elsewhere: Counter[Condition] = field(default_factory=Counter)
    _early: dict[Condition, dict[int, tuple[Chunk, Sequence[Answer]]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        targets: Iterable[str],
        ms: Iterable[int],
        strings: int,
        round_size: int,
        width: float | None = None,
        costs: Costs | None = None,
        mine: Callable[[int], bool] = lambda _: True,
    ) -> "ReachSchedule":
        """Return a schedule over all pairs, smallest m first."""
        kinds = labels(targets)
        conditions = [Condition(kind, m) for m in sorted(set(ms)) for kind in kinds]
        size = min(round_size, strings)
        return cls(conditions, width, costs or Costs(), strings=strings, round_size=size, mine=mine)

    def _evidence(self, condition: Condition) -> Reaches:
        return Reaches()

    def _chunk(self, condition: Condition) -> Chunk:
        """Return the next round: it never goes past a look, so looks do not depend on round sizes."""
        first = self.served(condition)
        last = min(first + self.round_size, self.strings)
        if self.width is not None:
            last = min(last, next_look(first))
        return Chunk(condition, first, last)

    def _choose(self, remaining: float | None) -> Chunk | None:
        while (chunk := super()._choose(remaining)) is not None and not self.mine(self._number(chunk)):
            self._away.append(chunk)  # for good
            self._elsewhere[chunk.condition] += chunk.strings
        return chunk

    def _number(self, chunk: Chunk) -> int:
        rounds = -(-self.strings // self.round_size)
        return self.conditions.index(chunk.condition) * rounds + chunk.first // self.round_size

    def give_up(self, why: str) -> None:
        """Close whatever is still open, and say what other runs have."""
        super().give_up(why)
        for condition, strings in self._elsewhere.items():
            self.settled.append(Skipped(condition, strings, "another part of the plan has them"))

    def _take(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Take note of rounds in the order of their strings: what comes early waits."""
        early = self._early.setdefault(chunk.condition, {})
        early[chunk.first] = (chunk, answers)
        while (one := early.pop(self.done(chunk.condition), None)) is not None:
            super()._take(*one)

    def away(self, condition: Condition) -> int:
        """Return how many strings are being run, or wait for those before them."""
        early = self._early.get(condition, {}).values()
        return super().away(condition) + sum(chunk.strings for chunk, _ in early)

    def _goes_ahead(self, condition: Condition) -> bool:
        return True

    def _left(self, condition: Condition) -> int:
        return max(self.strings - self.done(condition), 0)

    def _work(self, chunk: Chunk) -> float:
        """Positions per step grow about as m, reached tokens being so many a vector."""
        return float(chunk.strings * chunk.condition.m * max(chunk.condition.steps, 1))

    def _is_fresh(self, condition: Condition) -> bool:
        return self.served(condition) < min(FOR_AN_INTERVAL, self.strings)
