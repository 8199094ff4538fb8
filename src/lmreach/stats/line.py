"""Least-squares lines in closed form: with weights, with and without an intercept, and with points that are
only known to lie above or below a value.
"""  # noqa: D205

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from lmreach.errors import InputError, problem

Points = Float[np.ndarray, " p"]
Stack = Float[np.ndarray, "b p"]


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope x; ``r2`` is None for two points or fewer, or where y has no spread."""

    slope: float
    intercept: float
    r2: float | None


def fit_line(x: Points, y: Points, weights: Points | None = None, *, origin: bool = False) -> Line:
    """Return the weighted least-squares line.

    Parameters
    ----------
    x, y
        Shape (p,), at least two different x (one above 0 is enough through the origin).
    weights
        Shape (p,), above 0; None: all alike.
    origin
        Leave the intercept out. R^2 is then still about the mean, and may be below 0.

    Raises
    ------
    InputError
        Too few different x, or weights that are not above 0.
    """
    weight = np.ones_like(x) if weights is None else weights
    if not (weight > 0).all():
        raise InputError(problem("weights above 0", f"{weight.tolist()}", "leave points without weight out"))
    if (origin and not x.any()) or (not origin and np.unique(x).size < 2):
        raise InputError(problem("two different x", f"{x.tolist()}", "measure at another m"))
    slope, intercept = (float(part[0]) for part in lines(x, y[None], weight, origin=origin))
    # About the means, so that equal y give no spread at all.
    away = y - np.average(y, weights=weight)
    spread = float(weight @ away**2)
    if x.size == 2 or spread <= 1e-18 * float(weight @ y**2):
        return Line(slope, intercept, None)
    left = float(weight @ (y - intercept - slope * x) ** 2)
    return Line(slope, intercept, 1.0 - left / spread)


def lines(
    x: Points, y: Stack, weight: Points | Stack, *, origin: bool = False
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return slopes and intercepts of a stack of lines over the same x; weights may differ per line."""
    weight = np.broadcast_to(weight, y.shape)
    if origin:
        return (weight * x * y).sum(1) / (weight * x * x).sum(1), np.zeros(y.shape[0])
    total = weight.sum(1, keepdims=True)
    dx = x - (weight * x).sum(1, keepdims=True) / total
    dy = y - (weight * y).sum(1, keepdims=True) / total
    slope = (weight * dx * dy).sum(1) / (weight * dx * dx).sum(1)
    return slope, ((weight * y).sum(1) - slope * (weight * x).sum(1)) / total[:, 0]


def bounded_lines(
    x: Points, y: Stack, side: Int[np.ndarray, " p"], *, origin: bool = False
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Return lines through points some of which are bounds: side 1 at least y, -1 at most y, 0 exact.

    A bound that the line keeps costs nothing, one that it breaks costs its squared distance, so the sum is
    convex and its minimum is the line through the exact points and the bounds broken at that minimum.
    """
    active = np.broadcast_to(side == 0, y.shape).copy()
    slope, intercept = _lines_of(x, y, active, origin)
    for _ in range(4 * x.size):
        fitted = intercept[:, None] + slope[:, None] * x
        broken = (side == 0) | (side * (y - fitted) > 0)
        if (broken == active).all():
            break
        active = broken
        slope, intercept = _lines_of(x, y, active, origin)
    return slope, intercept


def _lines_of(
    x: Points, y: Stack, active: np.ndarray, origin: bool
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    return lines(x, np.where(active, y, 0.0), active.astype(np.float64), origin=origin)
