"""Accessibility from success or failure at single lengths (protocols *fixed* and *published*).

Three readings of the same trials stand side by side: the binomial points with exact intervals, which suppose
nothing; Turnbull's curve of the reaches that lie between two lengths; and a logistic curve with lapses, whose
posterior gives n50 an interval. Where the strings are much likelier under Turnbull's curve than under any
logistic or log-logistic one, or the points alone exclude its n50, the curve is not believed and n50 is the
points' bracket.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from lmreach.errors import InputError
from lmreach.stats import posterior
from lmreach.stats.accessibility import check_confidence
from lmreach.stats.posterior import CurveFit, Interval, Posterior, Shape, fit_points
from lmreach.stats.survival import clopper_pearson
from lmreach.stats.turnbull import OPEN, IntervalCurve, brackets, fit_intervals

Verdict = posterior.Verdict | Literal["curve_does_not_fit"]
Outcomes = Sequence[Mapping[int, bool]]
_DRAWN = 60
_CURVE_NUMBERS = 3
_MISFIT = 0.02
"""Chance of a fit as poor as this under the curve at which it is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointCurve:
    """What single lengths say.

    Attributes
    ----------
    n, reached, tried
        Lengths in tokens, rising; strings that were reached and that were tried there.
    share, low, high
        reached / tried and its Clopper-Pearson interval at each length by itself.
    fit
        The parametric curve.
    free
        Longest length at which more than half are reached and shortest at which fewer are, both beyond
        chance at each length by itself; None where there is none. No curve is supposed, only that the share
        does not rise with n.
    intervals
        Turnbull's curve; None where its maximum was not found, as ``intervals_because`` says.
    fits
        Chance, at most, that the strings would favour Turnbull's curve over the best logistic one as much as
        they do if a logistic one were true: likelihood ratio against chi-squared with as many degrees of
        freedom as innermost intervals beyond the curve's three numbers and one. None where that leaves none.
    """

    n: Int[np.ndarray, " lengths"]
    reached: Int[np.ndarray, " lengths"]
    tried: Int[np.ndarray, " lengths"]
    share: Float[np.ndarray, " lengths"]
    low: Float[np.ndarray, " lengths"]
    high: Float[np.ndarray, " lengths"]
    confidence: float
    strings: int
    fit: CurveFit
    free: tuple[int | None, int | None]
    intervals: IntervalCurve | None
    intervals_because: str = ""
    fits: float | None = None

    @property
    def verdict(self) -> Verdict:
        """The fit's verdict, unless the curve does not fit or the points alone exclude its n50."""
        if self.fit.verdict != "estimated" or self.fit.n50 is None:
            return self.fit.verdict
        if self.fits is not None and self.fits < _MISFIT:
            return "curve_does_not_fit"
        value, (low, high) = self.fit.n50[0], self.free
        excluded = (low is not None and value < low) or (high is not None and value > high)
        return "curve_does_not_fit" if excluded else "estimated"

    @property
    def n50(self) -> tuple[float | None, float | None, float | None]:
        """Value, low and high in tokens; a value only where the verdict is ``estimated``."""
        if self.verdict == "curve_does_not_fit":
            low, high = self.free
            return None, None if low is None else float(low), None if high is None else float(high)
        if self.fit.n50 is None:
            return None, *self.fit.ends
        value, low50, high50 = self.fit.n50
        return (value if self.verdict == "estimated" else None), low50, high50

    @property
    def middle(self) -> float | None:
        """Where a mark may stand for n50: its value, or the middle of a closed bracket."""
        value, low, high = self.n50
        if value is not None or low is None or high is None:
            return value
        return (low + high) / 2

    @property
    def relative_width(self) -> float | None:
        """Width of the interval over n50 (or over the middle of a bracket); None where an end is missing."""
        _, low, high = self.n50
        middle = self.middle
        return None if low is None or high is None or not middle else (high - low) / middle

    def words(self) -> str:
        """Return n50 as a person would say it."""
        if self.verdict == "curve_does_not_fit":
            return f"{_between(*self.free)}, from the points alone: no logistic curve fits them"
        if self.verdict != "estimated" or self.free == (None, None):
            return self.fit.words()
        return f"{self.fit.words()}; without a curve {_between(*self.free)}"

    def steepness(self) -> str:
        """Say how steep the fall is."""
        width: Interval | None = self.fit.width
        if width is None:
            return ""
        if self.fit.verdict == "separated":
            return f"from 90 % to 10 % within at most {width[2]:.1f} tokens"
        return f"from 90 % to 10 % within {width[0]:.1f} tokens ({width[1]:.1f} to {width[2]:.1f})"

    def drawn(self) -> dict[str, list[float]] | None:
        """Return the curve and its pointwise band at a few lengths, for a figure."""
        if self.fit.posterior is None:
            return None
        first, last = max(float(self.n[0]) / 2, 0.5), float(self.n[-1]) * 1.25
        at = np.linspace(first, last, _DRAWN)
        share, low, high = self.fit.posterior.band(at, self.confidence)
        return {"n": at.tolist(), "share": share.tolist(), "low": low.tolist(), "high": high.tolist()}


def point_curve(outcomes: Outcomes, *, shape: Shape | None = None, confidence: float = 0.95) -> PointCurve:
    """Return what trials at single lengths say.

    Parameters
    ----------
    outcomes
        Per string: reached or not, by length in tokens (at least 1). A string may have been tried at several
        lengths; the curve's likelihood then takes it as one string, not as several.
    shape
        Of the parametric curve; None: logistic, or log-logistic where only that one fits.
    confidence
        Of all intervals.

    Raises
    ------
    InputError
        A length below 1, or a level outside (0, 1).
    """
    check_confidence(confidence)
    told = [one for one in outcomes if one]
    low, high = brackets(told)
    n = np.array(sorted({length for one in told for length in one}), dtype=np.int64)
    counts = [[one[length] for one in told if length in one] for length in n.tolist()]
    reached = np.array([sum(one) for one in counts], dtype=np.int64)
    tried = np.array([len(one) for one in counts], dtype=np.int64)
    below, above = clopper_pearson(reached.astype(float), tried.astype(float), confidence)
    intervals, because = _turnbull(low, high)
    candidates = (
        PointCurve(
            n=n,
            reached=reached,
            tried=tried,
            share=reached / np.maximum(tried, 1),
            low=below,
            high=above,
            confidence=confidence,
            strings=len(told),
            fit=fit,
            free=_free(n, below, above),
            intervals=intervals,
            intervals_because=because,
            fits=_fits(fit.posterior, intervals, low, high),
        )
        for fit in _curves(n, reached, tried, (low, high), shape, confidence)
    )
    first = next(candidates)
    if first.verdict != "curve_does_not_fit":
        return first
    return next((one for one in candidates if one.verdict != "curve_does_not_fit"), first)


def _curves(
    n: Int[np.ndarray, " l"],
    reached: Int[np.ndarray, " l"],
    tried: Int[np.ndarray, " l"],
    known: tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]],
    shape: Shape | None,
    confidence: float,
) -> Iterator[CurveFit]:
    """Yield the curves to try, in order."""
    shapes: tuple[Shape, ...] = ("logistic", "log-logistic") if shape is None else (shape,)
    for one in shapes:
        yield fit_points(n, reached, tried, shape=one, confidence=confidence, brackets=known)


def _fits(
    curve: Posterior | None,
    intervals: IntervalCurve | None,
    low: Int[np.ndarray, " k"],
    high: Int[np.ndarray, " k"],
) -> float | None:
    """Return the tail probability of the likelihood ratio of Turnbull's curve and the best logistic one."""
    if curve is None or intervals is None:
        return None
    freedom = intervals.mass.size - 1 - _CURVE_NUMBERS
    if freedom < 1:
        return None
    best = int(curve.weight.argmax())
    ends = np.concatenate([low, np.minimum(high, 1 << 40) + 1]).astype(np.float64)
    upper, lower = curve.at(best, ends).reshape(2, -1)
    chance = upper - np.where(high == OPEN, 0.0, lower)
    ratio = 2 * (intervals.log_likelihood(low, high) - float(np.log(np.maximum(chance, 1e-12)).sum()))
    return float(special.chdtrc(freedom, max(ratio, 0.0)))


def _turnbull(low: Int[np.ndarray, " k"], high: Int[np.ndarray, " k"]) -> tuple[IntervalCurve | None, str]:
    if low.size == 0:
        return None, ""
    try:
        return fit_intervals(low, high), ""
    except InputError as error:  # the maximum was not found: no curve is better than one that is none
        return None, str(error)


def _free(
    n: Int[np.ndarray, " l"], low: Float[np.ndarray, " l"], high: Float[np.ndarray, " l"]
) -> tuple[int | None, int | None]:
    surely = n[low > 0.5]
    hardly = n[high < 0.5]
    least, most = _last(surely), int(hardly[0]) if hardly.size else None
    # Contradicting points (by chance, or a share that rises) bracket nothing.
    return (None, None) if least is not None and most is not None and most <= least else (least, most)


def _last(n: Int[np.ndarray, " l"]) -> int | None:
    return int(n[-1]) if n.size else None


def _between(low: int | None, high: int | None) -> str:
    if low is None and high is None:
        return "nothing is known of n50"
    if low is None:
        return f"below {high} tokens"
    if high is None:
        return f"at least {low} tokens"
    return f"between {low} and {high} tokens"
