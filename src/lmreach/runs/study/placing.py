"""Where the lengths of trials are placed, for protocols that answer one length at a time (docs/cramming.md).

Three ways: those that were asked for, every string at each; the next one where a trial is expected to narrow
n50 most per second (`stats.posterior.Posterior.expected_spread`), a fresh string for every trial; and the
grid of the published protocol. Where the next trial of a condition lies depends on that condition's own
finished trials alone, never on time, so a resumed run goes on as it would have gone on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmreach.runs.study.conditions import Answer, Chunk
from lmreach.runs.study.schedule import Evidence
from lmreach.stats.placement import NEARLY, Standing
from lmreach.stats.points import point_curve
from lmreach.stats.posterior import Posterior, posterior_of_points

__all__ = ["Placed", "Placing", "Trials", "chosen", "given", "published_grid"]

# Strings tried at one length before the next is chosen: looks lie at multiples of it.
_ROUND = 4
_FIRST_PER_VECTOR = 8
_CANDIDATES = 25
_GRID_START, _GRID_BIG, _GRID_SMALL = 10, 100, 10
_GRID_HIGH, _GRID_LOW = 0.9, 0.1

Placed = tuple[int, int, int]
"""A length and the strings, first and last (exclusive), to try there."""


@dataclass
class Trials(Evidence):
    """Finished trials of a condition: reached or not, per string and length, and their chunks.

    Attributes
    ----------
    limit
        Longest length allowed, in tokens.
    """

    limit: int = 0
    outcomes: dict[int, dict[int, bool]] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    _posterior: Posterior | None = None

    @property
    def count(self) -> int:
        """Return the number of finished trials."""
        return sum(last - first for _, first, last in self.placed)

    def add(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Take note of a finished chunk."""
        assert chunk.n is not None
        self.placed.append((chunk.n, chunk.first, chunk.last))
        self._posterior = None
        for string, answer in zip(range(chunk.first, chunk.last), answers, strict=True):
            if not answer.failed:
                self.outcomes.setdefault(string, {})[chunk.n] = answer.whole

    def shares(self) -> dict[int, float]:
        """Return the share of strings reached at every length."""
        n, reached, tried = self.points()
        return {int(at): r / t for at, r, t in zip(n, reached, tried, strict=True)}

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return lengths, strings reached and strings tried."""
        told = [(n, solved) for own in self.outcomes.values() for n, solved in own.items()]
        n = sorted({at for at, _ in told})
        counts = [[solved for at, solved in told if at == one] for one in n]
        return np.array(n), np.array([sum(one) for one in counts]), np.array([len(one) for one in counts])

    def posterior(self) -> Posterior:
        """Return the posterior of the curve, every trial of a string of its own."""
        if self._posterior is None:
            self._posterior = posterior_of_points(*self.points())
        return self._posterior

    def standing(self, m: int) -> Standing:
        """Return n50 and its error from the curve's posterior."""
        found = self.posterior()
        n50, _, _ = found.interval(found.n50, 0.95)
        return Standing(m, n50, found.spread() * n50, self.count)

    def judge(self, width: float) -> bool:
        """Judge the interval of n50."""
        found = point_curve(list(self.outcomes.values()))
        share = self.shares()
        self.reason = ""
        if found.verdict == "above_limit" and self.limit in share:
            self.reason = "n50 lies beyond the longest length allowed: only a longer one would tell more"
        elif found.verdict == "below_first" and 1 in share:
            self.reason = "n50 surely lies below one token"
        self.no_value = bool(self.reason)
        narrow = found.relative_width is not None and found.relative_width <= NEARLY * width
        return narrow or self.no_value


Placing = Callable[[Trials], Placed | None]


def given(lengths: Sequence[int], strings: int, size: int = 8) -> Placing:
    """Try every string at every length asked for, a few strings at all lengths before the next few."""
    starts = range(0, strings, size)
    every = [(n, first, min(first + size, strings)) for first in starts for n in sorted(set(lengths))]
    return lambda trials: every[len(trials.placed)] if len(trials.placed) < len(every) else None


def chosen(m: int, limit: int, strings: int) -> Placing:
    """Try each string once, a round of them at the length that tells most of n50 per second."""

    def place(trials: Trials) -> Placed | None:
        first = trials.count
        if first >= strings:
            return None
        n = min(_FIRST_PER_VECTOR * m, limit) if first == 0 else _most_telling(trials, m, limit)
        return n, first, min(first + _ROUND, strings)

    return place


def _most_telling(trials: Trials, m: int, limit: int) -> int:
    """Return the length at which one more string narrows ln n50 most, over positions computed there."""
    found = trials.posterior()
    lengths = _candidates(found, limit)
    before = found.spread() ** 2
    gains = [(before - found.expected_spread(float(n)) ** 2) / (m + n) for n in lengths]
    return lengths[int(np.argmax(gains))]


def _candidates(found: Posterior, limit: int) -> list[int]:
    """Return whole lengths over the range in which n50 may lie."""
    _, low, high = found.interval(found.n50, 0.98)
    ends = (min(max(low, 1.0), limit), min(max(high, 1.0), limit))
    return sorted({min(max(round(n), 1), limit) for n in np.geomspace(*ends, _CANDIDATES).tolist()})


def published_grid(m: int, limit: int, strings: int) -> Placing:
    """Return the grid of Meyer et al. 2026: from 10 tokens in steps of 100 while more than 0.9 are reached,
    then in steps of 10 from the last such length until fewer than 0.1 are, and one more step of 100.
    """  # noqa: D205

    def place(trials: Trials) -> Placed | None:
        n = _next_on_grid(trials.shares(), max(_GRID_START, m + 1), limit)
        return None if n is None else (n, 0, strings)

    return place


def _next_on_grid(share: dict[int, float], start: int, limit: int) -> int | None:
    """Return the next length of the grid, or None at its end."""
    n, high = start, None
    while n <= limit and n in share and share[n] > _GRID_HIGH:
        n, high = n + _GRID_BIG, n
    if n <= limit and n not in share:
        return n
    n = start if high is None else high + _GRID_SMALL
    while n <= limit:
        if n not in share:
            return n
        if share[n] < _GRID_LOW:
            n += _GRID_BIG
            return n if n <= limit and n not in share else None
        n += _GRID_SMALL
    return None
