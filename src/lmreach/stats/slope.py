"""The slope of n50 on the number of prompt vectors, in tokens per vector, and its ratio to a limit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from lmreach.errors import InputError, problem
from lmreach.stats.accessibility import HalfLength, check_confidence, half_length
from lmreach.stats.line import Line, bounded_lines, fit_line, lines
from lmreach.stats.posterior import CurveFit
from lmreach.stats.survival import Censored, Reach, check_reaches, crossings, last_length, shares

Verdict = Literal["estimated", "too_few_points", "censored"]
Known = tuple[float, float | None, float | None]
"""A value with the ends of its interval, None where an end is missing."""

# Resampling fewer strings than this draws far too few different samples to show their spread.
FEWEST_STRINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A line with intercept through n50 against m.

    Attributes
    ----------
    m, n50
        All points asked for; n50 is None where it is not known (beyond the tried lengths, or without data).
        Those with a value carry the fit; those known to lie beyond the tried lengths hold it only if it
        would run on the wrong side of them.
    n50_low, n50_high
        Ends of the points' intervals, None where missing.
    verdict
        ``estimated``; ``censored``: at least two points, but fewer than two with a known n50;
        ``too_few_points``: fewer than two different m were measured.
    slope, low, high
        Tokens per vector and the bootstrap percentile interval; None where not known.
    intercept
        Tokens.
    r2
        Share of the spread of n50 that the line explains; None for two points or no spread.
    covariance
        Bootstrap variance of the slope, variance of the intercept, and their covariance.
    through_origin
        Slope of the line without intercept, which theory predicts for random targets.
    exponent
        a of n50 = c m^a, from the logarithms; 1 is linear growth.
    better
        Which of line and power law leaves the smaller sum of squares in units of the points' errors; None
        with fewer than three points, a missing error, or sums less than 1 apart.
    bounds
        Number of points that enter as bounds only.
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
    covariance: tuple[float, float, float] | None = None
    through_origin: Known | None = None
    exponent: Known | None = None
    better: Literal["line", "power law"] | None = None
    bounds: int = 0
    n50_low: tuple[float | None, ...] = ()
    n50_high: tuple[float | None, ...] = ()
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
        if self.bounds:
            fit += f", {self.bounds} more as {'a bound' if self.bounds == 1 else 'bounds'}"
        return f"{self.slope:.2f} tokens per vector ({self._interval()}, {fit})"

    def shape_words(self) -> str:
        """Say how far the growth is a straight line through 0; empty where nothing is known of it."""
        said = []
        if self.through_origin is not None:
            said.append(f"without intercept {_told(self.through_origin)} tokens per vector")
        if self.exponent is not None:
            _, low, high = self.exponent
            said.append(f"n50 grows as m to the power {_told(self.exponent)}")
            if low is not None and high is not None:
                said.append(_linearity(low, high, self.better))
        return "; ".join(said)

    @property
    def relative_width(self) -> float | None:
        """Width of the interval over the slope; None where an end is missing or the slope is not above 0."""
        if self.slope is None or self.low is None or self.high is None or self.slope <= 0:
            return None
        return (self.high - self.low) / self.slope

    def at(self, m: float) -> Known | None:
        """Return the line's n50 at any m with its interval, normal about the bootstrap covariance.

        Beyond the m measured this supposes that growth stays linear. None where there is no line.
        """
        if self.slope is None or self.intercept is None:
            return None
        value = self.intercept + self.slope * m
        if self.covariance is None:
            return value, None, None
        of_slope, of_intercept, both = self.covariance
        variance = of_intercept + 2 * m * both + m * m * of_slope
        half = _normal(self.confidence) * math.sqrt(max(variance, 0.0))
        return value, value - half, value + half

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


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Strings measured with m vectors, and the n50 found in them; ``first`` is the shortest length tried."""

    m: int
    reach: Reach
    censored: Censored
    half: HalfLength
    first: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class _Resamples:
    """Least and largest n50 that each resample allows at each point: twice the same where it is known."""

    low: Float[np.ndarray, "b p"]
    high: Float[np.ndarray, "b p"]

    def ends(
        self, pull: Float[np.ndarray, " p"]
    ) -> tuple[Float[np.ndarray, "b p"], Float[np.ndarray, "b p"]]:
        """Return the n50 that make something growing with ``pull`` times n50 least and largest."""
        up = pull >= 0
        return np.where(up, self.low, self.high), np.where(up, self.high, self.low)


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

    Points whose n50 is only known to lie beyond the tried lengths are bounds: they pull at the line where it
    runs on their wrong side, and cost nothing else. Where a point with a known n50 loses it in a resample,
    that resample's slope is only known to lie between two values (n50 is at least the last length tried, or
    between 0 and 1); each end of the interval takes the worse of them, and is missing when it would be
    infinite. Strings without any spread give no bootstrap; the intervals of n50 then stand for it. The
    published analysis fits the same line without an interval and drops points beyond its grid.

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
        Whether string i is the same string at every m: whole strings are then drawn across all points. Where
        the points have unequal numbers, those with fewer are taken to hold the first of them.

    Raises
    ------
    InputError
        For lists of unequal length, or m below 1.
    """
    check_confidence(confidence)
    points = _points(m, reaches, censored, limits, confidence)
    if resamples < 1:
        raise InputError(problem("at least 1 resample", f"{resamples}", "use 1000"))
    return _fit(
        points,
        lambda known, beyond: _from_strings(known, beyond, rng, resamples, confidence, paired=paired),
        confidence,
    )


def fit_slope_of_curves(
    m: Int[np.ndarray, " p"],
    curves: Sequence[CurveFit],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 1000,
) -> Slope:
    """Fit n50 = intercept + slope m where n50 comes from shares at single lengths (protocol *fixed*).

    As `fit_slope`, but what stands for the spread of n50 at each m are draws from its curve's posterior,
    independent across m: strings that are hard at every m make the slope's true spread smaller than that.
    Separated data enter with the posterior's median. ``above_limit`` and ``below_first`` are bounds.

    Raises
    ------
    InputError
        For lists of unequal length, m below 1, or no resamples.
    """
    check_confidence(confidence)
    vectors = [int(value) for value in np.asarray(m).tolist()]
    if len(vectors) != len(curves) or any(value < 1 for value in vectors) or resamples < 1:
        got = f"{len(vectors)} m, {len(curves)} curves, {resamples} resamples"
        raise InputError(problem("one curve per m of at least 1, and a resample", got, "pair them up"))
    none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    pairs = [(_Point(v, *none, _half(c), int(c.first)), c) for v, c in zip(vectors, curves, strict=True)]
    drawn = {
        point: curve.posterior.draw(rng, resamples) for point, curve in pairs if curve.posterior is not None
    }

    def resampled(known: list[_Point], _beyond: list[_Point]) -> "_Resamples | str":
        n50 = np.stack([drawn[point] for point in known], axis=1)
        return _Resamples(n50, n50)

    return _fit([point for point, _ in pairs], resampled, confidence)


def _half(curve: CurveFit) -> HalfLength:
    """Return a curve's n50 in the form that reaches give it."""
    value, low, high = curve.n50 or (None, None, None)
    verdict: Any = {"above_limit": "above_limit", "below_first": "below_one"}.get(curve.verdict, "no_data")
    last = int(curve.last)
    strings = curve.strings if verdict != "no_data" or value is not None else 0
    if value is not None:
        verdict = "estimated"
    return HalfLength(value, low, high, verdict, curve.confidence, strings, last, last)


def _fit(
    points: list[_Point],
    resampled: Callable[[list[_Point], list[_Point]], "_Resamples | str"],
    confidence: float,
) -> Slope:
    """Fit the line through points with a known n50, with intervals from resamples (or why there are none)."""
    about: dict[str, Any] = {
        "m": tuple(point.m for point in points),
        "n50": tuple(point.half.value for point in points),
        "n50_low": tuple(point.half.low for point in points),
        "n50_high": tuple(point.half.high for point in points),
        "confidence": confidence,
    }
    known = [point for point in points if point.half.value is not None]
    if len({point.m for point in known}) < 2:
        measured = {point.m for point in points if point.half.strings}
        return Slope(verdict="too_few_points" if len(measured) < 2 else "censored", **about)
    beyond = [point for point in points if point.half.value is None and point.half.strings]
    line = _line(known, beyond)
    return Slope(
        verdict="estimated",
        slope=line.slope,
        intercept=line.intercept,
        r2=line.r2,
        bounds=len(beyond),
        better=_better(known, confidence),
        **_intervals(known, beyond, resampled(known, beyond), confidence),
        **about,
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


def _told(known: Known) -> str:
    value, low, high = known
    ends = [None if end is None else f"{end:.2f}" for end in (low, high)]
    if None in ends:
        return f"{value:.2f}"
    return f"{value:.2f} ({ends[0]} to {ends[1]})"


def _linearity(low: float, high: float, better: str | None) -> str:
    straight = low <= 1 <= high
    said = "a straight line is not excluded" if straight else "not a straight line through 0"
    return said if better is None else f"{said}; of line and power law the {better} fits better"


def _normal(confidence: float) -> float:
    return float(special.ndtri((1 + confidence) / 2))


def _axis(points: Sequence[_Point]) -> Float[np.ndarray, " p"]:
    return np.array([point.m for point in points], dtype=np.float64)


def _values(points: Sequence[_Point]) -> Float[np.ndarray, " p"]:
    return np.array([point.half.value for point in points], dtype=np.float64)


def _bounds(beyond: Sequence[_Point]) -> tuple[Float[np.ndarray, " p"], Int[np.ndarray, " p"]]:
    """Return the lengths that n50 lies beyond, and on which side."""
    above = [point.half.verdict == "above_limit" for point in beyond]
    at = [float(p.half.last if up else p.first) for p, up in zip(beyond, above, strict=True)]
    return np.array(at), np.where(above, 1, -1).astype(np.int64)


def _line(known: Sequence[_Point], beyond: Sequence[_Point]) -> Line:
    """Return the line through the known points, held by the bounds."""
    plain = fit_line(_axis(known), _values(known))
    if not beyond:
        return plain
    slope, intercept = _slopes(known, beyond, _values(known)[None], origin=False)
    return Line(float(slope[0]), float(intercept[0]), plain.r2)


def _slopes(
    known: Sequence[_Point], beyond: Sequence[_Point], n50: Float[np.ndarray, "b p"], *, origin: bool
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    if not beyond:
        return lines(_axis(known), n50, np.ones(len(known)), origin=origin)
    at, side = _bounds(beyond)
    x = np.concatenate([_axis(known), _axis(beyond)])
    y = np.hstack([n50, np.broadcast_to(at, (n50.shape[0], at.size))])
    return bounded_lines(x, y, np.concatenate([np.zeros(len(known), dtype=np.int64), side]), origin=origin)


def _from_strings(
    known: list[_Point],
    beyond: list[_Point],
    rng: np.random.Generator,
    resamples: int,
    confidence: float,
    *,
    paired: bool,
) -> "_Resamples | str":
    """Return n50 in resamples of the strings, or why they tell nothing."""
    fewest = min(point.reach.size for point in known)
    if fewest < FEWEST_STRINGS:
        return f"a point has {fewest} strings, fewer than {FEWEST_STRINGS}"
    drawn = _resampled(known, rng, resamples, paired=paired)
    n50 = _values(known)
    sure = bool((drawn.low == drawn.high).all())
    if sure and np.ptp(_least_most(known, beyond, drawn, origin=False)[0]) <= 1e-12 * n50.max():
        instead = _from_errors(known, rng, resamples, confidence)
        return instead or "all strings of a point reach the same length, and they are few"
    return drawn


def _intervals(
    known: list[_Point], beyond: list[_Point], drawn: "_Resamples | str", confidence: float
) -> dict[str, Any]:
    """Return everything of a `Slope` that comes from resampling."""
    n50, m = _values(known), _axis(known)
    origin = float(_slopes(known, beyond, n50[None], origin=True)[0][0])
    power = fit_line(np.log(m), np.log(n50)).slope if (n50 > 0).all() else None
    if isinstance(drawn, str):
        return {
            "through_origin": (origin, None, None),
            "exponent": None if power is None else (power, None, None),
            "open_because": drawn,
        }
    resamples = drawn.low.shape[0]
    unsure = int((drawn.low != drawn.high).any(axis=1).sum())
    low, high = _percentiles(*_least_most(known, beyond, drawn, origin=False), confidence)
    through = _percentiles(*_least_most(known, beyond, drawn, origin=True), confidence)
    both = low is not None and high is not None
    return {
        "low": low,
        "high": high,
        "open_because": "" if both else f"n50 leaves the tried lengths in {unsure} of {resamples} resamples",
        "covariance": _covariance(known, beyond, drawn) if both else None,
        "through_origin": (origin, *through),
        "exponent": None if power is None else (power, *_exponents(m, drawn, confidence)),
    }


def _least_most(
    known: Sequence[_Point], beyond: Sequence[_Point], drawn: _Resamples, *, origin: bool
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return the least and the largest slope that each resample allows."""
    m = _axis(known)
    ends = drawn.ends(m if origin else m - m.mean())
    least, most = (
        _slopes(known, beyond, np.where(np.isfinite(end), end, 0.0), origin=origin)[0] for end in ends
    )
    # At the centre m does not matter to a slope, so an unknown n50 there does not either.
    turning = np.abs(m if origin else m - m.mean()) > 0
    lost = [(~np.isfinite(end) & turning).any(axis=1) for end in ends]
    return np.where(lost[0], -np.inf, least), np.where(lost[1], np.inf, most)


def _percentiles(
    least: Float[np.ndarray, " b"], most: Float[np.ndarray, " b"], confidence: float
) -> tuple[float | None, float | None]:
    """Return the ends of the percentile interval; None where one is infinite."""
    tail = (1.0 - confidence) / 2.0
    # Order statistics, not interpolation: some slopes may be infinite.
    low = float(np.quantile(least, tail, method="lower"))
    high = float(np.quantile(most, 1.0 - tail, method="higher"))
    return (low if math.isfinite(low) else None), (high if math.isfinite(high) else None)


def _exponents(
    m: Float[np.ndarray, " p"], drawn: _Resamples, confidence: float
) -> tuple[float | None, float | None]:
    """Return the interval of the exponent; a resample whose n50 may be 0 or unbounded leaves it open."""
    x = np.log(m)
    found = []
    for end, worst in zip(drawn.ends(x - x.mean()), (-np.inf, np.inf), strict=True):
        usable = np.isfinite(end) & (end > 0)
        slope, _ = lines(x, np.log(np.where(usable, end, 1.0)), np.ones(x.size))
        found.append(np.where(usable.all(axis=1), slope, worst))
    return _percentiles(found[0], found[1], confidence)


def _covariance(
    known: Sequence[_Point], beyond: Sequence[_Point], drawn: _Resamples
) -> tuple[float, float, float] | None:
    sure = (drawn.low == drawn.high).all(axis=1)
    if sure.sum() < 2:
        return None
    slope, intercept = _slopes(known, beyond, drawn.low[sure], origin=False)
    matrix = np.cov(slope, intercept)
    return float(matrix[0, 0]), float(matrix[1, 1]), float(matrix[0, 1])


def _errors(points: Sequence[_Point], confidence: float) -> Float[np.ndarray, " p"] | None:
    """Return the standard errors that the intervals of n50 stand for; None where an end is missing."""
    widths = []
    for point in points:
        low, high = point.half.low, point.half.high
        if low is None or high is None or high <= low:
            return None
        widths.append(high - low)
    return np.array(widths) / (2 * _normal(confidence))


def _from_errors(
    points: Sequence[_Point], rng: np.random.Generator, resamples: int, confidence: float
) -> _Resamples | None:
    """Draw n50 from its interval: for strings that all reach the same length, so that resampling is idle."""
    errors = _errors(points, confidence)
    if errors is None:
        return None
    drawn = np.maximum(rng.normal(_values(points), errors, size=(resamples, len(points))), 0.0)
    return _Resamples(drawn, drawn)


def _better(points: Sequence[_Point], confidence: float) -> Literal["line", "power law"] | None:
    """Compare a line and a power law, two numbers each, by squares in units of the points' errors."""
    errors = _errors(points, confidence)
    if errors is None or len({point.m for point in points}) < 3:
        return None
    m, n50, weight = _axis(points), _values(points), errors**-2
    line = fit_line(m, n50, weight)
    straight = float(weight @ (n50 - line.intercept - line.slope * m) ** 2)
    # Every exponent of a fine grid with its best factor: nothing that could fail to converge.
    curves = m[None] ** np.linspace(0.0, 3.0, 601)[:, None]
    factor = (weight * curves * n50).sum(1) / (weight * curves**2).sum(1)
    bent = float((weight * (n50 - factor[:, None] * curves) ** 2).sum(1).min())
    if abs(straight - bent) < 1:
        return None
    return "line" if straight < bent else "power law"


def _resampled(
    points: Sequence[_Point], rng: np.random.Generator, resamples: int, *, paired: bool
) -> _Resamples:
    """Draw strings with replacement: the same ones at every m when paired."""
    shared = _weights(rng, max(point.reach.size for point in points), resamples) if paired else None
    ends = [
        _resampled_n50(point, _of_first(shared, point.reach.size))
        if shared is not None
        else _resampled_n50(point, _weights(rng, point.reach.size, resamples))
        for point in points
    ]
    return _Resamples(
        np.stack([low for low, _ in ends], axis=1), np.stack([high for _, high in ends], axis=1)
    )


def _resampled_n50(
    point: _Point, weights: Float[np.ndarray, "b k"]
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return between which lengths n50 lies in each resample: twice the same where it is known."""
    last = max(1, last_length(point.reach, point.censored))
    length, side = crossings(shares(weights, point.reach, point.censored, last))
    low = np.where(side == 0, length, np.where(side > 0, float(last), 0.0))
    high = np.where(side == 0, length, np.where(side > 0, np.inf, 1.0))
    return low, high


def _of_first(shared: Float[np.ndarray, "b k"], strings: int) -> Float[np.ndarray, "b strings"]:
    """Return the draws of the first strings; where none was drawn, the data as they are."""
    own = shared[:, :strings]
    return np.where(own.sum(axis=1, keepdims=True) > 0, own, 1.0)


def _weights(rng: np.random.Generator, strings: int, resamples: int) -> Float[np.ndarray, "b k"]:
    """Return how often each string is drawn in each resample."""
    return rng.multinomial(strings, np.full(strings, 1.0 / strings), size=resamples).astype(np.float64)
