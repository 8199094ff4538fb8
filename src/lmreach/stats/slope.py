"""The slope of n50 on the number of prompt vectors, in tokens per vector, and its ratio to a limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from lmreach.errors import InputError, problem
from lmreach.stats.accessibility import HalfLength, check_confidence, half_length
from lmreach.stats.survival import check_reaches, crossings, last_length, shares

Verdict = Literal["estimated", "too_few_points", "censored"]


@dataclass(frozen=True, slots=True)
class Slope:
    """n50 against m as a line with intercept.

    Attributes
    ----------
    m, n50
        All points asked for; n50 is None where it is not known (censored or without data). Those with a
        value carry the fit.
    slope, low, high
        Tokens per vector and the percentile interval; None where not known, as ``words()`` explains.
    intercept
        Tokens.
    r2
        Share of the spread of n50 that the line explains; None for two points or no spread.
    verdict
        ``estimated``; ``censored``: at least two points, but fewer than two with a known n50;
        ``too_few_points``: fewer than two different m were measured.
    confidence, resamples, failed
        Level; bootstrap resamples drawn; how many of them held fewer than two points with a known n50.
    """

    m: tuple[int, ...]
    n50: tuple[float | None, ...]
    slope: float | None
    low: float | None
    high: float | None
    intercept: float | None
    r2: float | None
    verdict: Verdict
    confidence: float
    resamples: int
    failed: int

    def words(self) -> str:
        """Return the result as a person would say it."""
        known = sum(value is not None for value in self.n50)
        if self.verdict == "too_few_points":
            return "not known: n50 was measured at fewer than two numbers of vectors"
        if self.slope is None:
            return (
                f"not known: n50 lies within the tried lengths at {known} of {len(self.m)} numbers of vectors"
            )
        line = f"{self.slope:.2f} tokens per vector ({self._interval()}, {known} of {len(self.m)} points"
        return f"{line})" if self.r2 is None else f"{line}, R^2 {self.r2:.3f})"

    def _interval(self) -> str:
        level = f"{self.confidence * 100:g} % interval"
        if self.low is None or self.high is None:
            return (
                f"{level} not known: {self.failed} of {self.resamples} resamples held fewer than two points"
            )
        return f"{level} {self.low:.2f} to {self.high:.2f}"

    def ratio(self, limit_tokens_per_vector: float) -> tuple[float | None, float | None, float | None]:
        """Return limit / slope with the ends of its interval.

        Parameters
        ----------
        limit_tokens_per_vector
            C of a limit, above 0.

        Returns
        -------
        ratio, low, high
            None where the slope, or the end of its interval that it comes from, is unknown or not above 0: a slope
            that may be 0 leaves the ratio without an upper end.
        """
        if not limit_tokens_per_vector > 0:
            got = f"{limit_tokens_per_vector}"
            raise InputError(problem("a limit above 0 tokens per vector", got, "pass the C of a limit"))
        ends = (self.slope, self.high, self.low)
        ratio, low, high = (
            limit_tokens_per_vector / end if end is not None and end > 0 else None for end in ends
        )
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

    Points whose n50 is not known are kept in the result and left out of the line. In a resample in which a point
    loses its n50, the line goes through the others; if too few remain in more than 1 - confidence of the
    resamples, the interval is not given. The published analysis fits the same line, without an interval.

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
    vectors = [int(value) for value in np.asarray(m).tolist()]
    _check_points(vectors, reaches, censored, limits, resamples)
    points = [check_reaches(r, c) for r, c in zip(reaches, censored, strict=True)]
    halves = [
        half_length(r, c, limit=limit, confidence=confidence)
        for (r, c), limit in zip(points, limits, strict=True)
    ]
    line = _line(vectors, halves)
    if line is None:
        measured = {value for value, half in zip(vectors, halves, strict=True) if half.strings}
        verdict: Verdict = "too_few_points" if len(measured) < 2 else "censored"
        values = tuple(half.value for half in halves)
        return Slope(tuple(vectors), values, None, None, None, None, None, verdict, confidence, 0, 0)
    slopes, known = _bootstrap(vectors, points, rng, resamples, paired=paired)
    low, high = _percentiles(slopes[known], resamples, confidence)
    return Slope(
        m=tuple(vectors),
        n50=tuple(half.value for half in halves),
        slope=line[0],
        low=low,
        high=high,
        intercept=line[1],
        r2=line[2],
        verdict="estimated",
        confidence=confidence,
        resamples=resamples,
        failed=int((~known).sum()),
    )


def _check_points(
    m: list[int],
    reaches: Sequence[Int[np.ndarray, " _"]],
    censored: Sequence[Bool[np.ndarray, " _"]],
    limits: Sequence[int],
    resamples: int,
) -> None:
    sizes = {len(m), len(reaches), len(censored), len(limits)}
    if len(sizes) != 1:
        raise InputError(
            problem("one m, reaches, flags and limit per point", f"{sizes}", "make the lists equal")
        )
    if any(value < 1 for value in m):
        raise InputError(problem("m of at least 1", f"{min(m)}", "pass numbers of prompt vectors"))
    if resamples < 1:
        raise InputError(problem("at least 1 resample", f"{resamples}", "use 1000"))


def _line(m: list[int], halves: list[HalfLength]) -> tuple[float, float, float | None] | None:
    """Return slope, intercept and R^2 through the points with a known n50, or None."""
    pairs = [(at, half.value) for at, half in zip(m, halves, strict=True) if half.value is not None]
    if len({at for at, _ in pairs}) < 2:
        return None
    x, y = np.array(pairs, dtype=np.float64).T
    # Taken from the middle, so that equal n50 give a slope of exactly 0.
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    spread = float(dy @ dy)
    r2 = (
        None
        if len(pairs) == 2 or spread <= 1e-18 * float(y @ y)
        else float((dx @ dy) ** 2 / (dx @ dx) / spread)
    )
    return slope, float(y.mean() - slope * x.mean()), r2


def _bootstrap(
    m: list[int],
    points: list[tuple[Int[np.ndarray, " k"], Bool[np.ndarray, " k"]]],
    rng: np.random.Generator,
    resamples: int,
    *,
    paired: bool,
) -> tuple[Float[np.ndarray, " b"], Bool[np.ndarray, " b"]]:
    """Return the slope of every resample, and whether it has one."""
    measured = [(at, r, c) for at, (r, c) in zip(m, points, strict=True) if r.size]
    counts = {r.size for _, r, _ in measured}
    if paired and len(counts) != 1:
        raise InputError(
            problem("equal numbers of strings at every m when paired", f"{counts}", "use paired=False")
        )
    shared = _weights(rng, counts.pop(), resamples) if paired else None
    values, known = [], []
    for _, reach, censored in measured:
        weights = shared if shared is not None else _weights(rng, reach.size, resamples)
        length, side = crossings(shares(weights, reach, censored, max(1, last_length(reach, censored))))
        values.append(length)
        known.append(side == 0)
    return _lines(
        np.array([at for at, _, _ in measured], dtype=np.float64), np.array(values), np.array(known)
    )


def _weights(rng: np.random.Generator, strings: int, resamples: int) -> Float[np.ndarray, "b k"]:
    """Return how often each string is drawn in each resample."""
    return rng.multinomial(strings, np.full(strings, 1.0 / strings), size=resamples).astype(np.float64)


def _lines(
    m: Float[np.ndarray, " p"], n50: Float[np.ndarray, "p b"], known: Bool[np.ndarray, "p b"]
) -> tuple[Float[np.ndarray, " b"], Bool[np.ndarray, " b"]]:
    """Return least-squares slopes over the known points of every column, and which columns have one."""
    w = known.astype(np.float64)
    total = np.maximum(w.sum(axis=0), 1.0)
    dx = w * (m[:, None] - (w * m[:, None]).sum(axis=0) / total)
    dy = n50 - (w * n50).sum(axis=0) / total
    spread = (dx * dx).sum(axis=0)
    usable = spread > 0
    return np.divide((dx * dy).sum(axis=0), spread, out=np.zeros_like(spread), where=usable), usable


def _percentiles(
    slopes: Float[np.ndarray, " b"], resamples: int, confidence: float
) -> tuple[float | None, float | None]:
    """Return the percentile interval, or None twice when too many resamples have no slope."""
    if slopes.size < confidence * resamples:
        return None, None
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(slopes, [tail, 1.0 - tail])
    return float(low), float(high)
