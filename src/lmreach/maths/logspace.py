"""Ball volumes, cap shares and Gaussian integrals in natural logs, where plain values leave float64.

Symbols: d dimension, phi half-angle in radians, s_d(phi) share of a d-ball inside a cone of half-angle phi.
"""

import math

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from scipy import special

from lmreach.errors import InputError, problem
from lmreach.maths.checks import whole

# Below this share the regularised incomplete beta function nears the end of float64's range.
_SMALLEST_PLAIN_SHARE = 1e-280
# Levels of the continued fraction: it is used only where 1 - x > 40 / d, where far fewer suffice.
_FRACTION_LEVELS = 64
# Expansion of lnGamma(a + 1/2) - lnGamma(a) - ln(a)/2 in odd powers of 1/a: the k-th coefficient is
# (B_{k+1}(1/2) - B_{k+1}) / (k (k + 1)), B the Bernoulli polynomials and numbers (DLMF 5.11.8).
_HALF_STEP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
Lanes = Float[np.ndarray, " lanes"]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def log1p_ratio(numerator: ArrayLike, denominator: float) -> Float[np.ndarray, "..."]:
    """Return ln(1 + numerator / denominator) without forming the ratio (numerator >= 0, denominator > 0).

    Parameters
    ----------
    numerator
        Any shape; 0 is allowed and gives 0.
    denominator
        Above 0.
    """
    top = np.asarray(numerator, dtype=np.float64)
    # log1p keeps the digits of small ratios, logaddexp does not overflow on large ones.
    small = top <= denominator
    ratio = np.where(small, top, 0.0) / denominator
    logs = np.log(np.where(small, denominator, top)) - math.log(denominator)
    return np.where(small, np.log1p(ratio), np.logaddexp(0.0, logs))


def log_ball_volume(d: int, p: float = 2.0) -> float:
    """Return the log volume of the unit ball of the p-norm in d dimensions.

    ln V = d ln(2 Gamma(1 + 1/p)) - lnGamma(1 + d/p); for p = 2 this is (d/2) ln pi - lnGamma(d/2 + 1).

    Parameters
    ----------
    d
        Dimension, at least 0 (a point has volume 1).
    p
        At least 1; ``math.inf`` gives the cube of side 2.

    Returns
    -------
    float
        Nats.

    Raises
    ------
    InputError
        For a negative d or p below 1.
    """
    d = whole("dimension", d, least=0)
    if not p >= 1:
        raise InputError(problem("a norm order p of at least 1", f"{p}", "use 1, 2 or inf"))
    return float(log_ball_volumes(np.array([float(d)]), p)[0])


def log_ball_volumes(d: Lanes, p: float = 2.0) -> Lanes:
    """Return `log_ball_volume` of many dimensions at once, unchecked."""
    if math.isinf(p):
        return d * math.log(2.0)
    return np.asarray(d * (math.log(2.0) + math.lgamma(1.0 + 1.0 / p)) - special.gammaln(1.0 + d / p))


def log_cap_share(d: ArrayLike, phi: ArrayLike) -> Float[np.ndarray, "..."]:
    """Return ln s_d(phi), the log share of a d-ball (or of its surface) inside a cone of half-angle phi.

    s_d(phi) = I_x((d-1)/2, 1/2) / 2 with x = sin(phi)^2 up to a right angle, and 1 minus the share of the
    opposite cone beyond it. The plain function underflows on most widths in use (d = 640 at phi = 0.1 is
    exp(-1475)); there the prefactor is kept in logs and only the continued fraction behind it is summed.

    Parameters
    ----------
    d
        Dimension, at least 2; broadcasts against ``phi``.
    phi
        Half-angle in radians, in (0, pi].

    Returns
    -------
    array
        Nats, at most 0. Relative error below 1e-10 for d up to 65,536 and angles from 1e-6 (against mpmath).
        Within about 1e-308 of a full ball the answer is 0.

    Raises
    ------
    InputError
        For d below 2 or an angle outside (0, pi].
    """
    width, angle = np.broadcast_arrays(np.asarray(d, dtype=np.float64), np.asarray(phi, dtype=np.float64))
    if not (width >= 2).all():
        raise InputError(
            problem("a dimension of at least 2 for a cone", f"{width.min()}", "use a ball or a box")
        )
    if not ((angle > 0) & (angle <= math.pi)).all():
        raise InputError(
            problem("half-angles in (0, pi] radians", f"{angle.min()} to {angle.max()}", "check units")
        )
    lanes = angle.ravel()
    # sin and cos reduce their argument exactly, so no digits are lost near pi.
    smaller = _log_smaller_cap((width.ravel() - 1) / 2, np.sin(lanes), np.cos(lanes))
    either = np.where(lanes <= math.pi / 2, smaller, np.log1p(-np.exp(smaller)))
    return either.reshape(angle.shape)


def _log_smaller_cap(a: Lanes, sin: Lanes, cos: Lanes) -> Lanes:
    """Return the log share of the cone or of its opposite, whichever is at most half; a = (d-1)/2."""
    x, rest = sin * sin, cos * cos
    # Of the two equal forms, take the one whose argument is not rounded towards 1.
    wide = rest < 0.5
    share = 0.5 * np.where(wide, special.betaincc(0.5, a, rest), special.betainc(a, 0.5, x))
    deep = share < _SMALLEST_PLAIN_SHARE
    log_share = np.log(np.where(deep, 1.0, share))
    log_share[deep] = _log_deep_cap(a[deep], np.abs(sin[deep]), np.abs(cos[deep]))
    return log_share


def _log_deep_cap(a: Lanes, sin: Lanes, cos: Lanes) -> Lanes:
    """Return ln(I_x(a, 1/2) / 2) from the continued fraction of DLMF 8.17.22.

    I_x(a, 1/2) = x^a cos / (a B(a, 1/2)) / (1 + d_1 / (1 + d_2 / ...)).
    """
    x = sin * sin
    # 2 ln(sin), without rounding x towards 1 first; the share is deep, so cos is not small.
    log_x = np.where(x > 0.5, np.log1p(-np.minimum(cos * cos, 0.5)), 2.0 * np.log(sin))
    log_beta = 0.5 * math.log(math.pi) - _log_half_step(a)
    tail = np.ones_like(a)
    for level in range(_FRACTION_LEVELS, 0, -1):
        k = level // 2
        if level % 2:
            coefficient = -(a + k) * (a + 0.5 + k) / ((a + 2 * k) * (a + 2 * k + 1))
        else:
            coefficient = k * (0.5 - k) / ((a + 2 * k - 1) * (a + 2 * k))
        tail = 1.0 + coefficient * x / tail
    return np.asarray(a * log_x + np.log(cos) - np.log(2.0 * a) - log_beta - np.log(tail))


def _log_half_step(a: Lanes) -> Lanes:
    """Return lnGamma(a + 1/2) - lnGamma(a) without subtracting two large numbers."""
    large = np.maximum(a, 16.0)
    series = np.zeros_like(large)
    for coefficient in reversed(_HALF_STEP):
        series = series / large**2 + coefficient
    small = np.minimum(a, 16.0)
    difference = special.gammaln(small + 0.5) - special.gammaln(small)
    return np.asarray(np.where(a >= 16.0, 0.5 * np.log(large) + series / large, difference))


def log_gaussian_integral(lo: Lanes, hi: Lanes) -> Lanes:
    """Return ln of the integral of exp(-y^2) over [lo, hi], lo < hi, also far out in the tails.

    Parameters
    ----------
    lo, hi
        Shape (lanes,), finite.

    Returns
    -------
    array
        Nats. Narrow intervals are summed by Gauss-Legendre around the middle, where the difference of two
        error functions would cancel; one-sided ones use the scaled complementary error function.
    """
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    narrow = half * (1.0 + 2.0 * np.abs(middle) + half) < 1.0
    with np.errstate(under="ignore"):
        return np.where(narrow, _log_narrow(middle, np.where(narrow, half, 1e-3)), _log_wide(lo, hi, narrow))


def _log_narrow(middle: Lanes, half: Lanes) -> Lanes:
    """Return the integral around ``middle`` by quadrature of exp(-2 middle y - y^2) over [-half, half]."""
    safe = np.where(half * (1.0 + 2.0 * np.abs(middle)) < 1.0, middle, 0.0)
    steps = half[..., None] * _NODES
    inner = np.exp(-2.0 * safe[..., None] * steps - steps**2) @ _WEIGHTS
    return np.asarray(-(middle**2) + np.log(half) + np.log(inner))


def _log_wide(lo: Lanes, hi: Lanes, skip: Bool[np.ndarray, " lanes"]) -> Lanes:
    """Return the integral from error functions; lanes in ``skip`` hold any finite value."""
    both_sides = (lo < 0) & (hi > 0)
    near = np.where(both_sides, 0.0, np.minimum(np.abs(lo), np.abs(hi)))
    far = np.maximum(np.abs(lo), np.abs(hi))
    one_side = special.erfcx(near) - special.erfcx(far) * np.exp(-(far - near) * (far + near))
    across = special.erf(np.where(both_sides, hi, 1.0)) - special.erf(np.where(both_sides, lo, 0.0))
    tail = np.log(np.where(skip | both_sides, 1.0, one_side)) - near**2
    # Both error functions carry a factor 2 / sqrt(pi).
    factor = 0.5 * math.log(math.pi) - math.log(2.0)
    return np.asarray(np.where(both_sides, np.log(across), tail) + factor)
