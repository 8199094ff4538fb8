"""Reaches known only to lie between two lengths: the nonparametric maximum-likelihood survival curve.

Protocol *fixed* says of a string that it was reached at one length and not at another, so its reach lies in
between. The estimate puts all mass on the innermost intervals (Turnbull 1976, JRSS B 38, 290), found by
Newton and self-consistency steps, and is accepted only with the optimality test of Gentleman and Geyer
(1994, Biometrika 81, 618): no derivative of the log-likelihood towards any innermost interval is above zero.
How mass lies within an innermost interval is not identified, so the curve is a pair of bounds and n50 a
bracket.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls

from lmreach.errors import InputError, problem

OPEN = np.iinfo(np.int64).max
"""Upper end of a string that was reached at every length tried."""

_STEPS = 500
_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class IntervalCurve:
    """Shares of strings whose reach lies in each innermost interval.

    Attributes
    ----------
    low, high
        Ends of the innermost intervals, both inclusive, in tokens; `OPEN` for no upper end.
    mass
        Share of strings in each; sums to 1.
    excess
        Largest derivative of the mean log-likelihood towards an interval; at most 0 at the maximum, up to
        rounding. Below 1e-8 here, or no curve is returned.
    strings
        Number of strings.
    """

    low: Int[np.ndarray, " cells"]
    high: Int[np.ndarray, " cells"]
    mass: Float[np.ndarray, " cells"]
    excess: float
    strings: int

    def share(self, n: int) -> tuple[float, float]:
        """Return the least and the largest share of strings of reach at least n that the estimate allows."""
        return float(self.mass[self.low >= n].sum()), float(self.mass[self.high >= n].sum())

    def log_likelihood(self, low: Int[np.ndarray, " k"], high: Int[np.ndarray, " k"]) -> float:
        """Return ln of the chance that reaches lie in [low, high], summed over strings."""
        inside = (low[:, None] <= self.low) & (self.high <= high[:, None])
        return float(np.log(inside @ self.mass).sum())

    def half_length(self) -> tuple[int | None, int | None]:
        """Return between which lengths n50 lies.

        The longest with a share surely of at least 1/2, and the shortest with one surely below; None where
        there is no such length (below 1, or beyond all that was tried).
        """
        ends = np.concatenate([self.low, self.high[self.high < OPEN] + 1])
        tried = sorted({int(n) for n in ends if n >= 1})
        sure = [n for n in tried if self.share(n)[0] >= 0.5 - 1e-12]
        below = [n for n in tried if self.share(n)[1] < 0.5 - 1e-12]
        return max(sure, default=None), min(below, default=None)

    def words(self) -> str:
        """Return n50 as a person would say it."""
        low, high = self.half_length()
        told = "1 string" if self.strings == 1 else f"{self.strings} strings"
        if low is None and high is None:
            return f"n50 is not bracketed by the lengths tried ({told})"
        if low is None:
            return f"n50 is below {high} tokens ({told})"
        if high is None:
            return f"n50 is at least {low} tokens ({told})"
        return f"n50 lies between {low} and {high} tokens ({told}, each known between two lengths)"


def brackets(
    outcomes: Sequence[Mapping[int, bool]],
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Return the least and the largest reach that each string's outcomes allow.

    Vectors that emit n tokens emit every shorter prefix, so a failure below a success is the optimiser's, not
    the string's, and says nothing; failures above it bound the reach.

    Parameters
    ----------
    outcomes
        Per string: reached or not, by length in tokens (at least 1).

    Raises
    ------
    InputError
        A length below 1.
    """
    low, high = [], []
    for tried in outcomes:
        if any(n < 1 for n in tried):
            raise InputError(problem("lengths of at least 1 token", f"{min(tried)}", "check the lengths"))
        least = max((n for n, reached in tried.items() if reached), default=0)
        low.append(least)
        high.append(min((n - 1 for n, reached in tried.items() if not reached and n > least), default=OPEN))
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def fit_intervals(low: Int[np.ndarray, " k"], high: Int[np.ndarray, " k"]) -> IntervalCurve:
    """Return the nonparametric maximum-likelihood curve of reaches known to lie in [low, high].

    Parameters
    ----------
    low, high
        Shape (k,), whole tokens, both ends inclusive; equal ends are an exact reach, `OPEN` no upper end.

    Raises
    ------
    InputError
        No strings, unequal shapes, or ends out of order.
    """
    low, high = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
    if low.ndim != 1 or low.shape != high.shape or low.size == 0:
        raise InputError(
            problem(
                "ends of one shape (k,), k at least 1", f"{low.shape} and {high.shape}", "pass one pair each"
            )
        )
    if (low < 0).any() or (high < low).any():
        raise InputError(problem("0 <= low <= high for every string", "others", "use `brackets`"))
    inner_low, inner_high = _innermost(low, high)
    inside = (low[:, None] <= inner_low) & (inner_high <= high[:, None])
    mass, excess = _maximise(inside)
    return IntervalCurve(inner_low, inner_high, mass, excess, low.size)


def _innermost(
    low: Int[np.ndarray, " k"], high: Int[np.ndarray, " k"]
) -> tuple[Int[np.ndarray, " c"], Int[np.ndarray, " c"]]:
    """Return the intervals from a lower end to the next upper end with no other lower end between them."""
    starts, stops = np.unique(low), np.unique(high)
    last = starts[np.searchsorted(starts, stops, side="right") - 1]
    first = stops[np.searchsorted(stops, last)]
    keep = first == stops
    return last[keep], stops[keep]


def _maximise(inside: Bool[np.ndarray, "k c"]) -> tuple[Float[np.ndarray, " c"], float]:
    """Newton steps over non-negative masses (Wang 2008, Statistics and Computing 18, 21), each followed by a
    self-consistency step, until the derivatives say that the maximum is reached.
    """  # noqa: D205
    table = inside.astype(np.float64)
    mass = np.full(table.shape[1], 1.0 / table.shape[1])
    for _ in range(_STEPS):
        pull = table / (table @ mass)[:, None]
        excess = float(pull.mean(axis=0).max() - 1.0)
        if excess <= _TOLERANCE:
            return mass, excess
        mass = _uphill(table, mass, _newton(pull))
        mass = mass * (table / (table @ mass)[:, None]).mean(axis=0)
        mass /= mass.sum()
    raise InputError(
        problem(
            f"a maximum within {_STEPS} steps", f"a derivative of {excess:.1e} left", "merge lengths tried"
        )
    )


def _newton(pull: Float[np.ndarray, "k c"]) -> Float[np.ndarray, " c"]:
    """Return the maximiser of the log-likelihood's quadratic expansion over masses that sum to 1."""
    heavy = 1e4 * np.abs(pull).max()  # holds the sum at 1 within the least squares
    left = np.vstack([pull, np.full((1, pull.shape[1]), heavy)])
    found, _ = nnls(left, np.append(np.full(pull.shape[0], 2.0), heavy))
    return np.asarray(found / found.sum())


def _uphill(
    table: Float[np.ndarray, "k c"], mass: Float[np.ndarray, " c"], towards: Float[np.ndarray, " c"]
) -> Float[np.ndarray, " c"]:
    """Halve the step until the likelihood is no lower than before."""
    before = float(np.log(table @ mass).sum())
    for halvings in range(40):
        tried = mass + (towards - mass) * 0.5**halvings
        chance = table @ tried
        if (chance > 0).all() and float(np.log(chance).sum()) >= before:
            return np.asarray(tried)
    return mass
