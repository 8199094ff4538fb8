"""Where the next strings tell most: expected narrowing of what is not yet known well enough, per second.

An error falls as one over the root of the number of strings, so s more strings at k narrow a relative width w
to w sqrt(k / (k + s)). What counts is the part above the wanted width: a number known well enough is worth
nothing more. Each point serves two numbers, its own n50 and the slope through all points of its kind.

Looking after every string and stopping at the first interval that is narrow enough favours intervals that
are narrow by accident. Hence looks come at a few numbers of strings fixed beforehand (16, 24, 32, 48, 64,
...), and an interval that is narrow at one look, or nearly, ends the measurement at the next: the strings in
between did not decide. docs/statistics.md has the coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmreach.stats.accessibility import HalfLength

FIRST_LOOK = 16
NEARLY = 1.1
"""Widths up to so many times the wanted one will be narrow enough at the next look."""


def is_narrow(half: HalfLength, wanted: float) -> bool:
    """Say whether an interval of n50 is as narrow as wanted, or only a longer length limit could make it so.

    An upper end beyond the last length tried counts as that length. Going on until it comes back below would
    end the measurement just when the estimate is low by accident.
    """
    if half.low is None:
        return False
    high = float(half.last) if half.high is None else half.high
    middle = high if half.value is None else half.value
    return high - half.low <= wanted * middle


def next_look(strings: int) -> int:
    """Return the least number above ``strings`` at which intervals may be judged: 16, 24, 32, ..."""
    look = FIRST_LOOK
    while True:
        for at in (look, look + look // 2):
            if at > strings:
                return at
        look *= 2


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one point.

    Attributes
    ----------
    m
        Number of vectors.
    n50, error
        Best guess and its standard error, in tokens.
    strings
        Number of strings behind it, at least 1.
    """

    m: int
    n50: float
    error: float
    strings: int

    def width(self, more: int = 0) -> float:
        """Return the relative width of a 95 % interval, now or after ``more`` strings."""
        return _FULL * self.error / self.n50 * math.sqrt(self.strings / (self.strings + more))


_FULL = 2 * 1.959963984540054


def slope_width(points: Sequence[Standing], more: Sequence[int] | None = None) -> float | None:
    """Return the slope's relative width from the points' errors; None without a rising line."""
    m = np.array([point.m for point in points], dtype=np.float64)
    if np.unique(m).size < 2:
        return None
    pull = (m - m.mean()) / ((m - m.mean()) ** 2).sum()
    slope = float(pull @ np.array([point.n50 for point in points]))
    if slope <= 0:
        return None
    extra = [0] * len(points) if more is None else more
    errors = [p.error * math.sqrt(p.strings / (p.strings + s)) for p, s in zip(points, extra, strict=True)]
    return _FULL * math.sqrt(float(((pull * errors) ** 2).sum())) / slope


def gain(points: Sequence[Standing], at: int, more: int, wanted: float, *, own: bool, slope: bool) -> float:
    """Return by how much ``more`` strings at point ``at`` are expected to narrow what is wider than wanted.

    Parameters
    ----------
    points
        Of one target kind.
    own, slope
        Whether the point's n50 and the kind's slope are still open; a settled number gains nothing.
    """
    point = points[at]
    total = _excess(point.width(), point.width(more), wanted) if own else 0.0
    if slope:
        before = slope_width(points)
        after = slope_width(points, [more if i == at else 0 for i in range(len(points))])
        if before is not None and after is not None:
            total += _excess(before, after, wanted)
    return total


def _excess(before: float, after: float, wanted: float) -> float:
    return max(before - wanted, 0.0) - max(after - wanted, 0.0)
