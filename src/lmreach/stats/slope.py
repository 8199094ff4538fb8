"""The slope of n50 on the number of prompt vectors, in tokens per vector, and its ratio to a limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from lmreach.errors import InputError, problem
from lmreach.stats.accessibility import HalfLength, check_confidence, half_length
from lmreach.stats.survival import Censored, Reach, check_reaches, crossings, last_length, shares

Verdict = Literal["estimated", "too_few_points", "censored"]
# Resampling fewer strings than this draws far too few different samples to show their spread.
FEWEST_STRINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A line with intercept through n50 against m.

    Attributes
    ----------
    m, n50
        All points asked for; n50 is None where it is not known (beyond the tried lengths, or without data).
        Those with a value carry the fit.
    verdict
        ``estimated``; ``censored``: at least two points, but fewer than two with a known n50;
        ``too_few_points``: fewer than two different m were measured.
    slope, low, high
        Tokens per vector and the bootstrap percentile interval; None where not known.
    intercept
        Tokens.
    r2
        Share of the spread of n50 that the line explains; None for two points or no spread.
    confidence
        Level of the interval.
    open_because
        Why an end of the interval is missing; empty when both are there.
    """

    m: tuple[int, ...]
    n50: tuple[float | None, ...]
    verdict: Verdict
    confidence: float
    slope: float | None = None
    low: float | None = None
    high: float | None = None
    intercept: float | None = None
    r2: float | None = None
    open_because: str = ""

    def words(self) -> str:
        """Return the result as a person would say it."""
        known = sum(value is not None for value in self.n50)
        points = f"{known} of {len(self.m)} points"
        if self.verdict == "too_few_points":
            return "not known: n50 was measured at fewer than two numbers of vectors"
        if self.slope is None:
            return f"not known: n50 lies within the tried lengths at {points}"
        fit = points if self.r2 is None else f"{points}, R^2 {self.r2:.3f}"
        return f"{self.slope:.2f} tokens per vector ({self._interval()}, {fit})"

    def _interval(self) -> str:
        level = f"{self.confidence * 100:g} % interval"
        if self.low is not None and self.high is not None:
            return f"{level} {self.low:.2f} to {self.high:.2f}"
        if self.low is not None:
            return f"{level} from {self.low:.2f}, no upper end: {self.open_because}"
        if self.high is not None:
            return f"{level} up to {self.high:.2f}, no lower end: {self.open_because}"
        return f"no interval: {self.open_because}"

    def ratio(self, limit_tokens_per_vector: float) -> tuple[float | None, float | None, float | None]:
        """Return limit / slope with the ends of its interval.

        Parameters
        ----------
        limit_tokens_per_vector
            C of a limit, above 0.

        Returns
        -------
        ratio, low, high
            None where the slope, or the end of its interval that it comes from, is unknown or not above 0: a
            slope that may be 0 leaves the ratio without an upper end.

        Raises
        ------
        InputError
            For a limit that is not above 0.
        """
        if not limit_tokens_per_vector > 0:
            got = f"{limit_tokens_per_vector}"
            raise InputError(problem("a limit above 0 tokens per vector", got, "pass the C of a limit"))
        ends = (self.slope, self.high, self.low)
        ratio, low, high = (_over(limit_tokens_per_vector, end) for end in ends)
        return ratio, low, high

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of ``results.slopes`` without target and ratios, JSON-ready."""
        return {
            "m": list(self.m),
            "n50": list(self.n50),
            "slope": self.slope,
            "low": self.low,
            "high": self.high,
            "intercept": self.intercept,
            "r2": self.r2,
            "verdict": self.verdict,
            "words": self.words(),
        }


@dataclass(frozen=True, slots=True)
class _Point:
    """Strings measured with m vectors, and the n50 found in them."""

    m: int
    reach: Reach
    censored: Censored
    half: HalfLength


def fit_slope(
    m: Int[np.ndarray, " p"],
    reaches: Sequence[Int[np.ndarray, " _"]],
    censored: Sequence[Bool[np.ndarray, " _"]],
    limits: Sequence[int],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 1000,
    paired: bool = False,
) -> Slope:
    """Fit n50 = intercept + slope m by least squares, with a bootstrap over strings for the interval.

    Points without a known n50 are kept in the result and left out of the line. Where a point that carries the
    line loses its n50 in a resample, that resample's slope is only known to lie between two values (n50 is
    at least the last length tried, or between 0 and 1); each end of the interval takes the worse of them,
    and is missing when it would be infinite. The published analysis fits the same line without an interval.

    Parameters
    ----------
    m
        Number of vectors per point.
    reaches, censored, limits
        Per point: reaches (k,), flags (k,), length limit.
    rng
        Draws the resamples.
    confidence
        Level of the percentile interval.
    resamples
        Number of bootstrap resamples, at least 1.
    paired
        Whether string i is the same string at every m: whole strings are then drawn across all points.

    Raises
    ------
    InputError
        For lists of unequal length, m below 1, or ``paired`` with unequal numbers of strings.
    """
    check_confidence(confidence)
    points = _points(m, reaches, censored, limits, confidence)
    if resamples < 1:
        raise InputError(problem("at least 1 resample", f"{resamples}", "use 1000"))
    if paired and len({point.reach.size for point in points}) > 1:
        sizes = ", ".join(str(point.reach.size) for point in points)
        raise InputError(problem("equal numbers of strings when paired", sizes, "use paired=False"))
    at, n50 = tuple(point.m for point in points), tuple(point.half.value for point in points)
    known = [point for point in points if point.half.value is not None]
    if len({point.m for point in known}) < 2:
        measured = {point.m for point in points if point.half.strings}
        verdict: Verdict = "too_few_points" if len(measured) < 2 else "censored"
        return Slope(m=at, n50=n50, verdict=verdict, confidence=confidence)
    slope, intercept, r2 = _line([(point.m, point.half.value) for point in known])
    low, high, why = _interval(known, rng, resamples, confidence, paired=paired)
    return Slope(
        m=at,
        n50=n50,
        verdict="estimated",
        confidence=confidence,
        slope=slope,
        low=low,
        high=high,
        intercept=intercept,
        r2=r2,
        open_because=why,
    )


def _over(limit: float, slope: float | None) -> float | None:
    return limit / slope if slope is not None and slope > 0 else None


def _points(
    m: Int[np.ndarray, " p"],
    reaches: Sequence[Int[np.ndarray, " _"]],
    censored: Sequence[Bool[np.ndarray, " _"]],
    limits: Sequence[int],
    confidence: float,
) -> list[_Point]:
    """Return the points with their n50, in the order given."""
    vectors = [int(value) for value in np.asarray(m).tolist()]
    sizes = [len(vectors), len(reaches), len(censored), len(limits)]
    if len(set(sizes)) != 1:
        raise InputError(problem("one m, reaches, flags and limit per point", f"{sizes}", "pair them up"))
    if any(value < 1 for value in vectors):
        raise InputError(problem("m of at least 1", f"{min(vectors)}", "pass numbers of prompt vectors"))
    points = []
    for value, reach, flags, limit in zip(vectors, reaches, censored, limits, strict=True):
        pair = check_reaches(reach, flags)
        points.append(_Point(value, *pair, half_length(*pair, limit=limit, confidence=confidence)))
    return points


def _line(pairs: list[tuple[int, float | None]]) -> tuple[float, float, float | None]:
    """Return slope, intercept and R^2 of the least-squares line through (m, n50)."""
    x, y = np.array(pairs, dtype=np.float64).T
    # About the means, so that equal n50 give a slope of exactly 0.
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    spread = float(dy @ dy)
    flat = spread <= 1e-18 * float(y @ y)
    r2 = None if len(pairs) == 2 or flat else float((dx @ dy) ** 2 / (dx @ dx) / spread)
    return slope, float(y.mean() - slope * x.mean()), r2


def _interval(
    points: list[_Point], rng: np.random.Generator, resamples: int, confidence: float, *, paired: bool
) -> tuple[float | None, float | None, str]:
    """Return the ends of the percentile interval, and why one is missing."""
    fewest = min(point.reach.size for point in points)
    if fewest < FEWEST_STRINGS:
        return None, None, f"a point has {fewest} strings, fewer than {FEWEST_STRINGS}"
    least, most = _resampled_slopes(points, rng, resamples, paired=paired)
    unsure = int((least != most).sum())
    if not unsure and np.ptp(least) <= 1e-12 * np.abs(least).max():
        return None, None, "all strings of a point reach the same length, so resampling shows no spread"
    tail = (1.0 - confidence) / 2.0
    # Order statistics, not interpolation: some slopes may be infinite.
    low = float(np.quantile(least, tail, method="lower"))
    high = float(np.quantile(most, 1.0 - tail, method="higher"))
    why = f"n50 leaves the tried lengths in {unsure} of {resamples} resamples"
    ends = [end if np.isfinite(end) else None for end in (low, high)]
    return ends[0], ends[1], why if None in ends else ""


def _resampled_slopes(
    points: list[_Point], rng: np.random.Generator, resamples: int, *, paired: bool
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return the least and the largest slope that each resample allows."""
    shared = _weights(rng, points[0].reach.size, resamples) if paired else None
    m = np.array([point.m for point in points], dtype=np.float64)
    pull = (m - m.mean()) / ((m - m.mean()) ** 2).sum()
    least, most = np.zeros(resamples), np.zeros(resamples)
    for point, coefficient in zip(points, pull.tolist(), strict=True):
        if coefficient == 0.0:
            continue
        weights = shared if shared is not None else _weights(rng, point.reach.size, resamples)
        low, high = _resampled_n50(point, weights)
        first, second = (low, high) if coefficient > 0 else (high, low)
        least += coefficient * first
        most += coefficient * second
    return least, most


def _resampled_n50(
    point: _Point, weights: Float[np.ndarray, "b k"]
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return between which lengths n50 lies in each resample: twice the same where it is known."""
    last = max(1, last_length(point.reach, point.censored))
    length, side = crossings(shares(weights, point.reach, point.censored, last))
    low = np.where(side == 0, length, np.where(side > 0, float(last), 0.0))
    high = np.where(side == 0, length, np.where(side > 0, np.inf, 1.0))
    return low, high


def _weights(rng: np.random.Generator, strings: int, resamples: int) -> Float[np.ndarray, "b k"]:
    """Return how often each string is drawn in each resample."""
    return rng.multinomial(strings, np.full(strings, 1.0 / strings), size=resamples).astype(np.float64)
