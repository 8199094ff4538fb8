"""Accessibility from reaches: the share of strings reached against length, and n50, where it is 1/2.

A reach is the longest confirmed prefix of one target string, in tokens. ``censored`` marks strings stopped by
a length limit: their reach is only known to be at least that. No number is extrapolated past what was tried.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from lmreach.errors import InputError, problem
from lmreach.stats.quantiles import crossing
from lmreach.stats.survival import Censored, Reach, band, check_reaches, last_length, shares

Verdict = Literal["estimated", "above_limit", "below_one", "no_data"]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Share of strings reached, at every whole length.

    Attributes
    ----------
    n
        1 .. the last length with a known share: the longest reach, one more when that string failed there.
    share, low, high
        Share of strings whose reach is at least n, and its pointwise interval.
    confidence, strings
        Level of the interval; number of strings.
    """

    n: Int[np.ndarray, " length"]
    share: Float[np.ndarray, " length"]
    low: Float[np.ndarray, " length"]
    high: Float[np.ndarray, " length"]
    confidence: float
    strings: int


@dataclass(frozen=True, slots=True)
class HalfLength:
    """n50, the length at which accessibility crosses 1/2, in tokens.

    Attributes
    ----------
    value, low, high
        Estimate and ends of its interval; None where the data do not hold one, as ``words()`` explains.
    verdict
        ``estimated``; ``above_limit``: the share never falls below 1/2 up to the last length tried;
        ``below_one``: fewer than half of the strings are reached at one token; ``no_data``: no strings.
    confidence, strings
        Level of the interval; number of strings.
    limit
        The length limit of the measurement.
    last
        Last length with a known share (0 without data).
    """

    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    confidence: float
    strings: int
    limit: int
    last: int

    def words(self) -> str:
        """Return the result as a person would say it."""
        if self.verdict == "no_data":
            return "not known: no strings were measured"
        return f"{self._what()} ({self.confidence * 100:g} % {self._interval()}, {_count(self.strings)})"

    def _what(self) -> str:
        if self.verdict == "below_one":
            return "below 1 token"
        if self.verdict == "above_limit":
            reason = "the length limit" if self.last >= self.limit else "the last length tried"
            return f"above {self.last} tokens, {reason}"
        return f"{self.value:.1f} tokens"

    def _interval(self) -> str:
        if self.low is not None and self.high is not None:
            return f"interval {self.low:.1f} to {self.high:.1f}"
        if self.low is not None:
            return f"interval from {self.low:.1f}, no upper end: too few strings failed by {self.last} tokens"
        if self.high is not None:
            return f"interval up to {self.high:.1f}, no lower end: less than 1 token is not excluded"
        return "interval open at both ends: too few strings"

    @property
    def relative_width(self) -> float | None:
        """Width of the interval over n50; None where an end or n50 is missing."""
        if self.value is None or self.low is None or self.high is None or self.value <= 0:
            return None
        return (self.high - self.low) / self.value


def curve(reach: Reach, censored: Censored, *, confidence: float = 0.95) -> Curve:
    """Return the accessibility curve of some strings.

    Kaplan-Meier on the whole lengths; up to the shortest censored reach that is the plain share with
    Clopper-Pearson's exact interval, beyond it the interval uses the effective number of strings (Greenwood).

    Parameters
    ----------
    reach, censored
        Shape (k,), one entry per string; no strings give an empty curve.
    confidence
        Level of the pointwise interval, in (0, 1).

    Raises
    ------
    InputError
        For arrays that are no reaches, or a level outside (0, 1).
    """
    reach, censored = check_reaches(reach, censored)
    check_confidence(confidence)
    if reach.size == 0:
        none = np.zeros(0)
        return Curve(np.zeros(0, dtype=np.int64), none, none, none, confidence, 0)
    length = max(1, last_length(reach, censored))
    share = shares(np.ones((1, reach.size)), reach, censored, length)[0]
    low, high = band(reach, censored, share, confidence)
    return Curve(np.arange(1, length + 1), share, low, high, confidence, reach.size)


def half_length(reach: Reach, censored: Censored, *, limit: int, confidence: float = 0.95) -> HalfLength:
    """Return n50 with an interval.

    The curve is joined linearly between whole lengths, from share 1 at length 0; the interval holds every
    length that a score test does not reject (`stats.quantiles`), and is narrower than where the pointwise
    band crosses 1/2. When the share stays at 1/2 or above up to the last length there is no value, only a
    lower end; when it is below 1/2 at one token there is none either, only an upper end.

    Parameters
    ----------
    reach, censored
        Shape (k,), one entry per string; k may be 0.
    limit
        Length limit of the measurement, in tokens (for the words).
    confidence
        Level of the interval, in (0, 1).

    Raises
    ------
    InputError
        For arrays that are no reaches, a limit below 1 or a level outside (0, 1).
    """
    reach, censored = check_reaches(reach, censored)
    check_confidence(confidence)
    if limit < 1:
        raise InputError(problem("a length limit of at least 1 token", f"{limit}", "pass the limit in use"))
    if reach.size == 0:
        return HalfLength(None, None, None, "no_data", confidence, 0, limit, 0)
    at = crossing(reach, censored, level=0.5, confidence=confidence)
    verdict: Verdict = "estimated" if at.side == 0 else ("above_limit" if at.side == 1 else "below_one")
    return HalfLength(at.value, at.low, at.high, verdict, confidence, reach.size, limit, at.last)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < confidence < 1:
        raise InputError(problem("a confidence level in (0, 1)", f"{confidence}", "use 0.95"))


def _count(strings: int) -> str:
    return "1 string" if strings == 1 else f"{strings} strings"
