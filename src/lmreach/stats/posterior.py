"""A logistic or log-logistic accessibility curve with lapses, as a posterior on a grid.

Least squares or maximum likelihood on separated data (every length reached by all or by none: usual here, as
the cliff is sharp) has no answer, and an optimiser returns whatever it stopped at. A posterior has an answer
with an interval, and what the data do not hold is said in words.

p(n) = (1 - lapse) / (1 + exp((x(n) - mu) / s)), x(n) = n (logistic) or ln n (log-logistic). Priors: uniform
in ln n50 over a third of the shortest to three times the longest length tried, in ln of the quartile width
over n50 from 0.5 % to 300 %, and in the lapse from 0 to 0.24. The grid is laid again where the mass is.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from lmreach.errors import InputError, problem
from lmreach.stats.rising import Rise, rise
from lmreach.stats.survival import Censored, Reach, check_reaches
from lmreach.stats.turnbull import OPEN

Shape = Literal["logistic", "log-logistic"]
Verdict = Literal["estimated", "separated", "above_limit", "below_first", "rises", "one_length", "no_data"]
Grid = Float[np.ndarray, " grid"]
Interval = tuple[float, float, float]

_LAPSES = np.linspace(0.0, 0.24, 7)
_HALF, _STEEP = 121, 31
_WIDTHS = (0.005, 3.0)
_RISES = 0.02  # chance of so clear a rise without one, below which no falling curve is laid through
_ROOM = 3.0  # how far beyond the lengths tried n50 may lie, as a factor


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Weights over curves.

    Attributes
    ----------
    shape
        Of the curve.
    n50, width, lapse
        Per grid point: length at share 1/2 in tokens, (n25 - n75) / n50 without lapse, and the lapse.
    weight
        Posterior probability; sums to 1.
    """

    shape: Shape
    n50: Grid
    width: Grid
    lapse: Grid
    weight: Grid

    def share(self, n: Float[np.ndarray, " lengths"]) -> Float[np.ndarray, "lengths grid"]:
        """Return p(n) of every curve."""
        return _share(self.shape, n, self.n50, self.width, self.lapse)

    def at(self, point: int, n: Float[np.ndarray, " lengths"]) -> Float[np.ndarray, " lengths"]:
        """Return p(n) of the curve at one grid point."""
        one = slice(point, point + 1)
        return _share(self.shape, n, self.n50[one], self.width[one], self.lapse[one])[:, 0]

    def length(self, share: float) -> Grid:
        """Return where every curve passes a share, in tokens; 0 where it lies below it from the start."""
        scale = self.width / (2 * math.log(3)) * (self.n50 if self.shape == "logistic" else 1.0)
        left = (1 - self.lapse) / share - 1
        logit = np.log(np.maximum(left, 1e-300)) - np.log(1 - 2 * self.lapse)
        if self.shape == "logistic":
            return np.where(left > 0, np.maximum(self.n50 + scale * logit, 0.0), 0.0)
        return np.where(left > 0, self.n50 * np.exp(np.clip(scale * logit, -50, 50)), 0.0)

    def interval(self, values: Grid, confidence: float) -> Interval:
        """Return median and equal-tailed interval of a quantity of the curves."""
        order = np.argsort(values, kind="stable")
        mass = np.cumsum(self.weight[order])
        tail = (1 - confidence) / 2
        # Mid-point of each grid point's mass, so that the median of one point is the point.
        middle = mass - self.weight[order] / 2
        median, low, high = np.interp([0.5, tail, 1 - tail], middle, values[order])
        return float(median), float(low), float(high)

    def band(
        self, n: Float[np.ndarray, " lengths"], confidence: float
    ) -> tuple[Float[np.ndarray, " lengths"], Float[np.ndarray, " lengths"], Float[np.ndarray, " lengths"]]:
        """Return median and pointwise interval of the share at some lengths."""
        found = np.array([self.interval(share, confidence) for share in self.share(n)]).reshape(-1, 3)
        return found[:, 0], found[:, 1], found[:, 2]

    def draw(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, " count"]:
        """Return ``count`` draws of n50."""
        return rng.choice(self.n50, size=count, p=self.weight)

    def spread(self) -> float:
        """Return the standard deviation of ln n50: the relative error."""
        log = np.log(self.n50)
        mean = float(self.weight @ log)
        return math.sqrt(max(float(self.weight @ (log - mean) ** 2), 0.0))

    def expected_spread(self, n: float) -> float:
        """Return the root mean square of `spread` after one more string tried at length n alone."""
        log = np.log(self.n50)
        share = self.share(np.array([n]))[0]
        left = 0.0
        for chance in (share, 1 - share):
            weight = self.weight * chance
            total = float(weight.sum())
            if total > 1e-12:
                mean = float(weight @ log) / total
                left += float(weight @ (log - mean) ** 2)
        return math.sqrt(max(left, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFit:
    """What a parametric curve says about some points.

    Attributes
    ----------
    verdict
        ``estimated``; ``separated``: every length is reached by all or by none, so n50 is only known to lie
        between two of them; ``above_limit``, ``below_first``: n50 lies beyond the lengths tried, where a
        curve would follow its prior and not the data; ``rises``: more are reached at longer lengths, beyond
        chance; ``one_length``: a curve needs two; ``no_data``.
    n50, n10, n90, width, lapse
        (median, low, high): lengths reached by half, a tenth and nine tenths, n10 - n90, in tokens; None
        where not known. Where the data are separated ``n50`` holds the bracket, with no value of its own
        in words, and ``width`` is at most its upper end: the steepness is a lower limit.
    first, last
        Shortest and longest length tried.
    bracket
        Longest length with all and shortest with none, where the data are separated.
    ends
        Where n50 has no value, the ends of its interval that the data do hold.
    risen
        The rise, where the verdict is ``rises``.
    posterior
        Of the curves behind ``n50``; None where no curve was fitted.
    """

    verdict: Verdict
    shape: Shape
    confidence: float
    strings: int
    first: float
    last: float
    n50: Interval | None = None
    n10: Interval | None = None
    n90: Interval | None = None
    width: Interval | None = None
    lapse: Interval | None = None
    bracket: tuple[float, float] | None = None
    ends: tuple[float | None, float | None] = (None, None)
    risen: Rise | None = None
    posterior: Posterior | None = field(default=None, compare=False, repr=False)

    def words(self) -> str:
        """Return the result as a person would say it."""
        level = f"{self.confidence * 100:g} % interval"
        if self.n50 is None:
            return self._without_value(level)
        assert self.width is not None
        _, low, high = self.n50
        if self.bracket is not None:
            return (
                f"between {self.bracket[0]:g} and {self.bracket[1]:g} tokens ({level} {low:.1f} to "
                f"{high:.1f}): all reached up to the one, none from the other on; the cliff is at most "
                f"{self.width[2]:.1f} tokens wide"
            )
        return (
            f"{self.n50[0]:.1f} tokens ({level} {low:.1f} to {high:.1f}, {self.shape} curve, "
            f"{self.strings} strings)"
        )

    def _without_value(self, level: str) -> str:
        if self.verdict == "no_data":
            return "not known: no strings were measured"
        if self.verdict == "one_length":
            return f"no curve: all {self.strings} strings were tried at {self.first:g} tokens alone"
        if self.risen is not None:
            return f"not known: the share reached rises with length ({self.risen.words()}), no curve does"
        low, high = self.ends
        if self.verdict == "above_limit":
            told = "the curve is above one half at every length"
            why = f"{told} ({level} from {low:.1f})" if low else "every string was reached at every length"
            return f"above {self.last:g} tokens: {why}"
        told = "the curve is below one half at every length"
        why = f"{told} ({level} up to {high:.1f})" if high else "no string was reached at any length"
        return f"below {self.first:g} tokens: {why}"


def fit_points(
    n: Int[np.ndarray, " lengths"],
    reached: Int[np.ndarray, " lengths"],
    tried: Int[np.ndarray, " lengths"],
    *,
    shape: Shape = "logistic",
    confidence: float = 0.95,
    brackets: tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]] | None = None,
) -> CurveFit:
    """Fit a curve to shares at single lengths: the protocol *fixed*.

    Points of the same strings are not independent: who reached 12 tokens reached 8. Where a string was tried
    at several lengths, ``brackets`` puts each string's own likelihood, p(low) - p(high + 1), in the place of
    the product over points; with one length a string the two are the same.

    Parameters
    ----------
    n, reached, tried
        Lengths in tokens (at least 1, a length may come twice), strings reached and strings tried there.
    shape
        Of the curve.
    confidence
        Of the equal-tailed intervals.
    brackets
        Least and largest reach of every string, as `turnbull.brackets` gives them; None: one length each.

    Raises
    ------
    InputError
        For unequal shapes, lengths below 1, or more strings reached than tried.
    """
    n, reached, tried = _points(n, reached, tried)
    strings = int(tried.sum()) if brackets is None else len(brackets[0])
    told: dict[str, Any] = {"shape": shape, "confidence": confidence, "strings": strings}
    if n.size == 0:
        return CurveFit(verdict="no_data", first=0.0, last=0.0, **told)
    told |= {"first": float(n[0]), "last": float(n[-1])}
    if reached.sum() == tried.sum():
        return CurveFit(verdict="above_limit", **told)
    if reached.sum() == 0:
        return CurveFit(verdict="below_first", **told)
    if n.size == 1:
        return CurveFit(verdict="one_length", **told)
    risen = rise(n, reached, tried)
    if risen is not None and risen.chance < _RISES:
        return CurveFit(verdict="rises", risen=risen, **told)
    if brackets is None:
        found = posterior_of_points(n, reached, tried, shape=shape)
    else:
        found = posterior_of_brackets(*brackets, shape=shape)
    return _told(found, told, _bracket(n, reached, tried), confidence)


def posterior_of_points(
    n: Int[np.ndarray, " lengths"],
    reached: Int[np.ndarray, " lengths"],
    tried: Int[np.ndarray, " lengths"],
    *,
    shape: Shape = "logistic",
) -> Posterior:
    """Return the posterior itself; with data that fix nothing it is about as wide as the prior."""
    n, reached, tried = _points(n, reached, tried)
    if n.size == 0:
        raise InputError(problem("at least one length with strings", "none", "measure one first"))

    def log_likelihood(n50: Grid, width: Grid, lapse: Grid) -> Grid:
        total = np.zeros_like(n50)
        for at, hit, all_ in zip(n.tolist(), reached.tolist(), tried.tolist(), strict=True):
            share = np.clip(_share(shape, np.array([float(at)]), n50, width, lapse)[0], 1e-12, 1 - 1e-12)
            total += hit * np.log(share) + (all_ - hit) * np.log1p(-share)
        return total

    return _on_grid(log_likelihood, shape, float(n[0]), float(n[-1]))


def posterior_of_reaches(reach: Reach, censored: Censored, *, shape: Shape = "log-logistic") -> Posterior:
    """Return the posterior from reaches: a string of reach R lies in p(R) - p(R + 1), a censored one in p(R).

    Raises
    ------
    InputError
        For arrays that are no reaches, or none at all.
    """
    reach, censored = check_reaches(reach, censored)
    if reach.size == 0:
        raise InputError(problem("at least one reach", "none", "measure one first"))
    kinds, counts = np.unique(np.stack([reach, censored.astype(np.int64)]), axis=1, return_counts=True)

    def log_likelihood(n50: Grid, width: Grid, lapse: Grid) -> Grid:
        total = np.zeros_like(n50)
        for (at, stopped), count in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            upper, lower = _share(shape, np.array([at, at + 1.0]), n50, width, lapse)
            total += count * np.log(np.clip(upper if stopped else upper - lower, 1e-12, 1.0))
        return total

    return _on_grid(log_likelihood, shape, max(float(reach.min()), 0.5), float(reach.max()) + 1.0)


def posterior_of_brackets(
    low: Int[np.ndarray, " k"], high: Int[np.ndarray, " k"], *, shape: Shape = "logistic"
) -> Posterior:
    """Return the posterior from strings whose reach lies in [low, high]: each lies in p(low) - p(high + 1).

    Parameters
    ----------
    low, high
        Shape (k,), both ends inclusive; `turnbull.OPEN` for no upper end.

    Raises
    ------
    InputError
        Unequal shapes, ends out of order, or no string that was tried at any length.
    """
    low, high = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
    if low.shape != high.shape or low.ndim != 1 or (low < 0).any() or (high < low).any():
        raise InputError(problem("0 <= low <= high for every string", "others", "use `turnbull.brackets`"))
    tried = np.concatenate([low[low > 0], high[high < OPEN] + 1])
    if tried.size == 0:
        raise InputError(problem("at least one length with strings", "none", "measure one first"))
    kinds, counts = np.unique(np.stack([low, high]), axis=1, return_counts=True)

    def log_likelihood(n50: Grid, width: Grid, lapse: Grid) -> Grid:
        total = np.zeros_like(n50)
        for (least, most), count in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            upper, lower = _share(shape, np.array([least, min(most, 1 << 40) + 1.0]), n50, width, lapse)
            share = upper if most == OPEN else upper - lower
            total += count * np.log(np.clip(share, 1e-12, 1.0))
        return total

    return _on_grid(log_likelihood, shape, float(tried.min()), float(tried.max()))


def _share(
    shape: Shape, n: Float[np.ndarray, " lengths"], n50: Grid, width: Grid, lapse: Grid
) -> Float[np.ndarray, "lengths grid"]:
    scale = width / (2 * math.log(3))
    if shape == "logistic":
        distance = (n[:, None] - n50) / (scale * n50)
    else:
        # Length 0 is reached by all but lapses; its logarithm is only needed to be very small.
        distance = (np.log(np.maximum(n, 1e-9))[:, None] - np.log(n50)) / scale
    odds = np.exp(np.clip(distance + np.log(1 - 2 * lapse), -700, 700))
    # At length 0 every string is reached, lapses included.
    return np.where(n[:, None] > 0, (1 - lapse) / (1 + odds), 1.0)


def _on_grid(log_likelihood: Any, shape: Shape, first: float, last: float) -> Posterior:
    """Weigh a grid, then a finer one where the first has its mass."""
    ends = (math.log(first / _ROOM), math.log(last * _ROOM))
    steep = (math.log(_WIDTHS[0]), math.log(_WIDTHS[1]))
    found = _weighed(log_likelihood, shape, ends, steep)
    for _ in range(2):
        found = _weighed(
            log_likelihood, shape, _where(found, found.n50, ends), _where(found, found.width, steep)
        )
    return found


def _weighed(
    log_likelihood: Any, shape: Shape, ends: tuple[float, float], steep: tuple[float, float]
) -> Posterior:
    axes = (np.exp(np.linspace(*ends, _HALF)), np.exp(np.linspace(*steep, _STEEP)), _LAPSES)
    n50, width, lapse = (part.ravel() for part in np.meshgrid(*axes, indexing="ij"))
    log = log_likelihood(n50, width, lapse)
    weight = np.exp(log - log.max())
    return Posterior(shape, n50, width, lapse, weight / weight.sum())


def _where(found: Posterior, values: Grid, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the range of an axis (in logs) outside which there is hardly any mass."""
    points, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=found.weight)
    inside = np.flatnonzero(mass > 1e-7)
    low, high = max(inside[0] - 1, 0), min(inside[-1] + 1, points.size - 1)
    return max(math.log(points[low]), ends[0]), min(math.log(points[high]), ends[1])


def _told(
    found: Posterior, told: dict[str, Any], bracket: tuple[float, float] | None, confidence: float
) -> CurveFit:
    n10, n90 = found.length(0.1), found.length(0.9)
    n50 = found.interval(found.n50, confidence)
    if bracket is None and not told["first"] <= n50[0] <= told["last"]:
        above = n50[0] > told["last"]
        ends = (min(n50[1], told["last"]), None) if above else (None, max(n50[2], told["first"]))
        verdict: Verdict = "above_limit" if above else "below_first"
        lapse = found.interval(found.lapse, confidence)
        return CurveFit(verdict=verdict, ends=ends, lapse=lapse, posterior=found, **told)
    if bracket is not None:
        # Few strings may leave n50 outside the bracket, many may seem to know it better than they do.
        n50 = (n50[0], min(n50[1], bracket[0]), max(n50[2], bracket[1]))
    return CurveFit(
        verdict="estimated" if bracket is None else "separated",
        n50=n50,
        n10=found.interval(n10, confidence),
        n90=found.interval(n90, confidence),
        width=found.interval(n10 - n90, confidence),
        lapse=found.interval(found.lapse, confidence),
        bracket=bracket,
        posterior=found,
        **told,
    )


def _bracket(
    n: Int[np.ndarray, " lengths"], reached: Int[np.ndarray, " lengths"], tried: Int[np.ndarray, " lengths"]
) -> tuple[float, float] | None:
    """Return the longest length with all and the shortest with none, if there is nothing else."""
    every: Bool[np.ndarray, " lengths"] = reached == tried
    if not (every | (reached == 0)).all() or (np.diff(every.astype(int)) > 0).any():
        return None
    return float(n[every].max()), float(n[~every].min())


def _points(
    n: Int[np.ndarray, " lengths"], reached: Int[np.ndarray, " lengths"], tried: Int[np.ndarray, " lengths"]
) -> tuple[Int[np.ndarray, " l"], Int[np.ndarray, " l"], Int[np.ndarray, " l"]]:
    """Check, drop lengths without strings, and add up what was tried at the same length."""
    arrays = [np.asarray(one, dtype=np.int64) for one in (n, reached, tried)]
    if len({one.shape for one in arrays}) != 1 or arrays[0].ndim != 1:
        got = ", ".join(str(one.shape) for one in arrays)
        raise InputError(problem("lengths, reached and tried of one shape", got, "pair them up"))
    n, reached, tried = arrays
    if (n < 1).any() or (reached < 0).any() or (reached > tried).any():
        raise InputError(
            problem("lengths of at least 1 and 0 <= reached <= tried", "others", "check the counts")
        )
    lengths, place = np.unique(n[tried > 0], return_inverse=True)
    sums = [np.bincount(place, weights=one[tried > 0], minlength=lengths.size) for one in (reached, tried)]
    return lengths, sums[0].astype(np.int64), sums[1].astype(np.int64)
