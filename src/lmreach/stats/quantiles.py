"""The length at which the share of strings reached crosses a level, with an interval that holds its level.

The share is joined linearly between whole lengths, so at theta = j + f it is the mean over strings of
Y = 1 for a reach above j, 1 - f for a reach of j, 0 below. The interval holds every theta at which a score
test does not reject "the mean of Y is the level". Y has three values, so the test's variance comes from
their maximum-likelihood probabilities under that hypothesis, in closed form (a root of a quadratic), as
Tango (1998, Statistics in Medicine 17, 891) does for the difference of paired proportions; Wilson's
interval is the case f = 0. Reading the ends off a band of Clopper-Pearson intervals instead covers 97 to
100 % where 95 % is asked for, because it takes strings that end at j for strings of unknown side.

Between reaches that lie apart nothing fixes the ends, and a step function leaves them too far out or too
far in. There they are interpolated between order statistics (Hettmansperger and Sheather 1986, Statistics
and Probability Letters 4, 75): a stretch on which the share rests is tilted by one string's share.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import special

from lmreach.stats.survival import Censored, Reach, crossings, effective_strings, last_length, shares

_BISECTIONS = 40


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the share crosses a level.

    Attributes
    ----------
    value, low, high
        In tokens; None where the data do not hold one.
    side
        0: among the lengths tried; 1: the share never falls below the level; -1: it is below it at one token.
    last
        Last length with a known share.
    """

    value: float | None
    low: float | None
    high: float | None
    side: int
    last: int


def crossing(reach: Reach, censored: Censored, *, level: float, confidence: float) -> Crossing:
    """Return where the share of reaches crosses ``level`` in (0, 1), with its interval.

    Parameters
    ----------
    reach, censored
        Shape (k,), k at least 1, as `survival.check_reaches` returns them.
    level
        Share of strings: 0.5 for n50, 0.9 for n90, the length that nine in ten reach.
    confidence
        Level of the interval.
    """
    last = max(1, last_length(reach, censored))
    share = shares(np.ones((1, reach.size)), reach, censored, last)
    (at,), (side,) = crossings(share, level)
    strings = np.concatenate([[float(reach.size)], effective_strings(reach, censored, share[0])])
    score = _Score(_rested(np.concatenate([[1.0], share[0]]), strings), strings, level)
    low, high = _ends(score, reach.size, confidence)
    value = float(at) if side == 0 else None
    if value is not None:
        low, high = (None if low is None else min(low, value)), (None if high is None else max(high, value))
    # Below one token there are no lengths: an end there says only that less than 1 is not excluded.
    low = None if low is not None and low < 1 else low
    high = 1.0 if high is not None and high < 1 else high
    return Crossing(value, low, high, int(side), last)


@dataclass(frozen=True, slots=True)
class _Score:
    """The test's statistic at every theta: shares and effective strings at lengths 0 .. last."""

    share: Float[np.ndarray, " knots"]
    strings: Float[np.ndarray, " knots"]
    level: float

    def at_knots(self) -> Float[np.ndarray, " knots"]:
        """Return the statistic at whole lengths."""
        spread = math.sqrt(self.level * (1 - self.level))
        return np.asarray(np.sqrt(self.strings) * (self.share - self.level) / spread)

    def at(self, j: int, f: float) -> float:
        """Return the statistic at j + f: falls as theta grows."""
        more = float(self.share[j + 1])
        equal = float(self.share[j]) - more
        variance = self.level * (1 - self.level) - f * (1 - f) * self._equal_under_test(more, equal, f)
        distance = more + (1 - f) * equal - self.level
        strings = float(self.strings[j + 1])
        return distance * math.sqrt(strings / max(variance, 1e-300))

    def _equal_under_test(self, more: float, equal: float, f: float) -> float:
        """Return the most likely probability of a reach of j, given that Y has the level as its mean."""
        p, q, less = self.level, 1 - self.level, 1 - more - equal
        if equal <= 0.0 or not 0.0 < f < 1.0:
            return max(equal, 0.0)
        half = (equal * (p * f + (1 - f) * q) + more * (1 - f) * q + less * f * p) / 2
        under = max(half**2 - f * (1 - f) * equal * p * q, 0.0)
        return equal * p * q / (half + math.sqrt(under))


def _rested(
    share: Float[np.ndarray, " knots"], strings: Float[np.ndarray, " knots"]
) -> Float[np.ndarray, " knots"]:
    """Tilt every stretch on which the share rests (at neither 0 nor 1) by one string's share."""
    tilted = share.copy()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(share) != 0) + 1])
    stops = np.concatenate([starts[1:], [share.size]])
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        # The last stretch may only rest because nothing was tried beyond it.
        if stop - start > 1 and 0 < share[start] < 1 and stop < share.size:
            tilted[start:stop] += np.linspace(0.5, -0.5, stop - start) / strings[start]
    return np.asarray(np.clip(tilted, 0.0, 1.0))


def _ends(score: _Score, strings: int, confidence: float) -> tuple[float | None, float | None]:
    """Return the ends of the acceptance region; None where even all strings alike could not exclude more."""
    tail = (1 - confidence) / 2
    z = float(special.ndtri(1 - tail))
    knots = score.at_knots()
    low = high = None
    if score.level**strings <= tail:
        low = _passes(score, knots, z)
    if (1 - score.level) ** strings <= tail:
        high = _passes(score, knots, -z)
    last = float(knots.size - 1)
    # Not even at the last length tried can the test place the crossing below: it lies beyond.
    return (last if low is None and knots[-1] > z else low), high


def _passes(score: _Score, knots: Float[np.ndarray, " knots"], z: float) -> float | None:
    """Return the first theta at which the statistic falls to z; None where it does not."""
    if knots[0] <= z or knots.min() > z:
        return None
    j = int((knots <= z).argmax()) - 1
    left, right = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (left + right) / 2
        left, right = (middle, right) if score.at(j, middle) > z else (left, middle)
    return j + right
