"""Supports: bounded sets of prompt vectors or hidden states, and how many of their points can differ.

``log_packing(eps)`` bounds ln P(S, eps), the log of the most points of S that are pairwise at least eps apart
in the support's own norm. Every proved bound here compares volumes: balls of radius eps/2 about such
points do not overlap and lie inside S grown by eps/2.

Two statements must be told apart. ``packing`` says whether that bound is mathematics for the set as given;
``premise`` says what has to be true of the model or of the vectors before the set says anything about them.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import optimize

from lmreach.errors import InputError, problem
from lmreach.maths import checks
from lmreach.maths.logspace import log1p_ratio, log_ball_volumes, log_cap_share, log_gaussian_integral
from lmreach.maths.precision import number_format

Premise = Literal["format", "input", "hidden"]
Packing = Literal["proved", "convention", "exact count"]
Vector = Float[np.ndarray, " _"]
# Beyond this many axes' lengths exp(-q) is 0 in any precision, and q is still a float64.
_FAR = 1e100


@dataclass(frozen=True, eq=False)
class AbstractSupport(ABC):
    """A bounded set of vectors.

    Attributes
    ----------
    premise
        ``format``: vectors are stored in a dtype, nothing else; ``input``: vectors lie in this region of the
        input space; ``hidden``: prompts are told apart only through final hidden states, which lie here.
    source
        Where the numbers came from (samples, weights, dtype).
    """

    premise: Premise = field(kw_only=True, default="hidden")
    source: str = field(kw_only=True, default="given numbers")

    kind: ClassVar[str]

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates of one vector."""

    @property
    @abstractmethod
    def norm(self) -> str:
        """Norm in which points are eps apart: ``linf``, ``l2``, ``l1``, ``lp``, or ``none`` for counts."""

    @property
    @abstractmethod
    def packing(self) -> Packing:
        """Whether `log_packing` is proved for this set, a convention of the paper, or an exact count."""

    @abstractmethod
    def log_packing(self, eps: float) -> float:
        """Return an upper bound on ln P(S, eps) in nats, at least 0 (one point always fits)."""


class AbstractRegion(AbstractSupport):
    """A support in which distances, and so a precision eps, mean something."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest distance between two points in the support's norm, or an upper bound on it."""


@dataclass(frozen=True, eq=False)
class Ball(AbstractRegion):
    """Ball of a p-norm: ln P <= d ln(1 + 2 r / eps), in the same norm (M26, Theorem 4.5)."""

    d: int
    radius: float
    p: float = math.inf

    kind: ClassVar[str] = "ball"
    packing: ClassVar[Packing] = "proved"

    def __post_init__(self) -> None:
        checks.whole("width", self.d)
        checks.positive("radius", self.radius)
        if not self.p >= 1:
            raise InputError(problem("a norm order p of at least 1", f"{self.p}", "use 1, 2 or inf"))

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.d

    @property
    def norm(self) -> str:
        """The ball's own norm."""
        return {1.0: "l1", 2.0: "l2", math.inf: "linf"}.get(float(self.p), "lp")

    @property
    def diameter(self) -> float:
        """Largest distance between two points, in the ball's norm."""
        return 2.0 * self.radius

    def log_packing(self, eps: float) -> float:
        """Return d ln(1 + 2 r / eps)."""
        return self.d * float(log1p_ratio(self.diameter, checks.positive("eps", eps)))


@dataclass(frozen=True, eq=False)
class Box(AbstractRegion):
    """Box with corners lo and hi: ln P <= sum_i ln(1 + (hi_i - lo_i) / eps), in the maximum norm.

    The published code calls this region rectangle or ellipsoid; it is a box.
    """

    lo: Vector
    hi: Vector

    kind: ClassVar[str] = "box"
    norm: ClassVar[str] = "linf"
    packing: ClassVar[Packing] = "proved"

    def __post_init__(self) -> None:
        low, high = checks.interval("box", self.lo, self.hi)
        object.__setattr__(self, "lo", low)
        object.__setattr__(self, "hi", high)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.lo.size

    @property
    def radius(self) -> float:
        """Largest |coordinate| (the paper's r)."""
        return float(np.maximum(np.abs(self.lo), np.abs(self.hi)).max())

    @property
    def diameter(self) -> float:
        """Longest side."""
        return float((self.hi - self.lo).max())

    def log_packing(self, eps: float) -> float:
        """Return sum_i ln(1 + l_i / eps) over the side lengths l_i."""
        return float(log1p_ratio(self.hi - self.lo, checks.positive("eps", eps)).sum())


@dataclass(frozen=True, eq=False)
class Cone(AbstractRegion):
    """Part of an L2 ball about 0 inside a cone with tip 0 and half-angle phi.

    Attributes
    ----------
    d, radius, half_angle
        Dimension (at least 2), L2 radius, half-angle in radians.
    convention
        True: the paper's ln P = d ln(1 + 2 r / eps) + ln s_d(phi) with phi half of the largest pairwise
        angle seen. It is no bound: vectors pairwise within an angle need not fit a cone of half of it (Jung's
        theorem on the sphere), and growing a cone by eps/2 widens it. False: the set really lies in the
        cone, and the grown cone lies in one with its tip moved back by eps / (2 sin phi), so
        ln P <= d ln(1 + 2 r / eps + 1 / sin phi) + ln s_d(phi); never more than the ball's bound, and equal
        to it for phi above a right angle.
    """

    d: int
    radius: float
    half_angle: float
    convention: bool = False

    kind: ClassVar[str] = "cone"
    norm: ClassVar[str] = "l2"

    def __post_init__(self) -> None:
        checks.whole("width", self.d, least=2)
        checks.positive("radius", self.radius)
        log_cap_share(self.d, self.half_angle)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.d

    @property
    def packing(self) -> Packing:
        """Convention or proved, as asked."""
        return "convention" if self.convention else "proved"

    @property
    def diameter(self) -> float:
        """Diameter of the ball that holds the cone (an upper bound)."""
        return 2.0 * self.radius

    def log_packing(self, eps: float) -> float:
        """Return the cone's bound, or the paper's value, in nats."""
        eps = checks.positive("eps", eps)
        ball = self.d * float(log1p_ratio(self.diameter, eps))
        share = float(log_cap_share(self.d, self.half_angle))
        if self.convention:
            return max(0.0, ball + share)
        if self.half_angle > math.pi / 2:
            return ball
        grown = self.d * float(log1p_ratio(self.diameter + eps / math.sin(self.half_angle), eps))
        return max(0.0, min(ball, grown + share))


@dataclass(frozen=True, eq=False)
class Ellipsoid(AbstractRegion):
    """Axis-parallel ellipsoid {x : sum_i ((x_i - c_i) / a_i)^2 <= 1}, packed in the maximum norm.

    Cubes of side eps about the points lie in the ellipsoid scaled by 1 + rho with
    rho = (eps / 2) sqrt(sum_i 1 / a_i^2), hence P <= V_d prod(a_i) (1 + rho)^d / eps^d. One short axis
    makes rho explode, so the shortest axes are bounded as sides of a box instead, 1 + 2 a_i / eps each; the
    split with the smallest bound is taken (the set lies in the product of both projections, so each is one).

    Note that points eps apart in L2 may be closer than eps in the maximum norm: this bounds the latter only.

    Attributes
    ----------
    axes
        Semi-axes, shape (d,), at least 0.
    center
        Shape (d,).
    """

    axes: Vector
    center: Vector

    kind: ClassVar[str] = "ellipsoid"
    norm: ClassVar[str] = "linf"
    packing: ClassVar[Packing] = "proved"

    def __post_init__(self) -> None:
        axes = checks.vector("semi-axes", self.axes)
        if (axes < 0).any():
            raise InputError(problem("semi-axes of at least 0", f"{axes.min()}", "pass absolute values"))
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "center", checks.vector("center", self.center, width=axes.size))

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.axes.size

    @property
    def radius(self) -> float:
        """Largest |coordinate| in the set."""
        return float((np.abs(self.center) + self.axes).max())

    @property
    def diameter(self) -> float:
        """Longest axis: the diameter in the maximum norm."""
        return 2.0 * float(self.axes.max())

    @property
    def extent(self) -> Box:
        """The smallest box around the ellipsoid."""
        corners = (self.center - self.axes, self.center + self.axes)
        return Box(*corners, premise=self.premise, source=self.source)

    def log_packing(self, eps: float) -> float:
        """Return the bound of the best split, in nats."""
        return max(0.0, float(self._split_bounds(checks.positive("eps", eps)).min()))

    def _split_bounds(self, eps: float) -> Float[np.ndarray, " splits"]:
        """Return the bound for k = 0 .. number of axes above 0, the k longest of them in the ellipsoid."""
        longest_first = np.sort(self.axes)[::-1]
        used = longest_first[longest_first > 0]
        k = np.arange(used.size + 1)
        sides = np.append(0.0, np.cumsum(log1p_ratio(2.0 * used, eps)))
        log_volumes = log_ball_volumes(k.astype(np.float64))
        in_units = np.append(0.0, np.cumsum(np.log(used) - math.log(eps)))
        # eps / a overflows only for axes that no good split keeps.
        with np.errstate(over="ignore"):
            rho = 0.5 * np.sqrt(np.append(0.0, np.cumsum((eps / used) ** 2)))
            ellipsoid = log_volumes + in_units + k * np.log1p(rho)
        return np.asarray(ellipsoid + (sides[-1] - sides))


@dataclass(frozen=True, eq=False)
class BoxEllipsoid(AbstractRegion):
    """Intersection of a box and an ellipsoid, packed in the maximum norm.

    Write q_i(s) = ((s - c_i) / a_i)^2, so that sum_i q_i <= 1 on S. Each point x of the grown set has a point
    s of S with |x_i - s_i| <= eps / 2 for all i; with the smallest q_i that such an s_i in [lo_i, hi_i] can
    have, the sum is still at most 1. So for every lam >= 0 the grown volume is at most exp(lam) times the
    product of the integrals of exp(-lam q_i), and in units of eps^d

        ln P <= lam + sum_i ln(exp(-lam q_i(m_i)) + (1 / eps) int exp(-lam q_i(y)) dy over [lo_i, hi_i]),

    m_i the point of [lo_i, hi_i] nearest to c_i. lam = 0 gives the box; the best lam is found by a
    one-dimensional convex search. Growing coordinate by coordinate, instead of scaling the ellipsoid by
    1 + rho, keeps short axes harmless and makes the bound monotone in eps, in the box and in the axes.
    """

    box: Box
    ellipsoid: Ellipsoid

    kind: ClassVar[str] = "box and ellipsoid"
    norm: ClassVar[str] = "linf"
    packing: ClassVar[Packing] = "proved"

    def __post_init__(self) -> None:
        checks.vector("ellipsoid center", self.ellipsoid.center, width=self.box.dimension)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.box.dimension

    @property
    def radius(self) -> float:
        """Largest |coordinate| that both sets allow."""
        return min(self.box.radius, self.ellipsoid.radius)

    @property
    def diameter(self) -> float:
        """An upper bound on the diameter in the maximum norm."""
        return min(self.box.diameter, self.ellipsoid.diameter)

    def log_packing(self, eps: float) -> float:
        """Return the smallest of the box's, the ellipsoid's and the joint bound, in nats."""
        eps = checks.positive("eps", eps)
        alone = min(self.box.log_packing(eps), self.ellipsoid.log_packing(eps))
        return max(0.0, min(alone, self._joint(eps)))

    def _joint(self, eps: float) -> float:
        """Return the joint bound at the best lam, in nats; an axis of length 0 adds nothing."""
        thick = self.ellipsoid.axes > 0
        if not thick.any():
            return 0.0
        axes, center = self.ellipsoid.axes[thick], self.ellipsoid.center[thick]
        low, high = self.box.lo[thick], self.box.hi[thick]
        with np.errstate(over="ignore"):
            ends = (low, high, np.clip(center, low, high))
            lo, hi, nearest = (np.clip((end - center) / axes, -_FAR, _FAR) for end in ends)
        in_eps = np.log(axes) - math.log(eps)
        # A side of length 0 has no integral; a hair's breadth stands for it and only enlarges the bound.
        hi = np.maximum(hi, lo + 1e-12 * (1.0 + np.abs(lo)))

        def bound(log_lam: float) -> float:
            lam, root = math.exp(log_lam), math.exp(log_lam / 2)
            integrals = in_eps + log_gaussian_integral(root * lo, root * hi) - log_lam / 2
            return lam + float(np.logaddexp(-lam * nearest**2, integrals).sum())

        # d / 2 is the best lam of the ellipsoid alone. A binding box makes it smaller, one that hardly meets
        # the ellipsoid larger.
        middle = math.log(axes.size / 2)
        found = optimize.minimize_scalar(bound, bounds=(middle - 14.0, middle + 8.0), method="bounded")
        return float(found.fun)


@dataclass(frozen=True, eq=False)
class FloatGrid(AbstractSupport):
    """Every vector that a number format can hold, within a box or anywhere: an exact count, no eps.

    With no box the premise is ``format``: it holds for every soft prompt stored in that dtype. With a box it
    also assumes that the vectors stay inside, so the premise to state is ``input``.
    """

    d: int
    dtype: str
    lo: Vector | None = None
    hi: Vector | None = None

    kind: ClassVar[str] = "float grid"
    norm: ClassVar[str] = "none"
    packing: ClassVar[Packing] = "exact count"

    def __post_init__(self) -> None:
        checks.whole("width", self.d)
        number_format(self.dtype)
        if (self.lo is None) != (self.hi is None):
            raise InputError(problem("both corners of the box or none", "one of them", "pass lo and hi"))
        if self.lo is not None and self.hi is not None:
            low, high = checks.interval("box", self.lo, self.hi, width=self.d)
            object.__setattr__(self, "lo", low)
            object.__setattr__(self, "hi", high)
        self._check_values()

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.d

    def counts(self) -> np.ndarray:
        """Return the number of distinct values per coordinate, shape (d,), int64."""
        grid = number_format(self.dtype)
        if self.lo is None or self.hi is None:
            return np.full(self.d, grid.finite_values, dtype=np.int64)
        return grid.count(self.lo, self.hi)

    def log_packing(self, eps: float = 0.0) -> float:
        """Return the log number of vectors, in nats; ``eps`` plays no part."""
        return float(np.log(self.counts().astype(np.float64)).sum())

    def _check_values(self) -> None:
        counts = self.counts()
        if (counts == 0).any():
            first = int(np.flatnonzero(counts == 0)[0])
            got = f"none at coordinate {first}"
            expected = f"at least one {self.dtype} value per side of the box"
            raise InputError(problem(expected, got, "widen the box or name the dtype it was measured in"))


def norm_ellipsoid(kind: str, gain: ArrayLike, bias: ArrayLike | None = None) -> Ellipsoid:
    """Return the ellipsoid that holds every hidden state behind a final norm; needs no samples.

    RMSNorm gives h = g u + b with ||u||_2 <= sqrt(d), LayerNorm the same with sum(u) = 0 besides (which is
    not used). The semi-axes are |g_i| sqrt(d), the center is b.

    Parameters
    ----------
    kind
        ``rms`` or ``layer``.
    gain, bias
        Shape (d,), as applied (1 + g where the model multiplies by that). No bias: zeros.

    Raises
    ------
    InputError
        For another kind of norm, which bounds nothing known here.
    """
    if kind not in ("rms", "layer"):
        raise InputError(problem("a norm of kind rms or layer", repr(kind), "measure the support instead"))
    scale = checks.vector("norm gain", gain)
    center = np.zeros(scale.size) if bias is None else checks.vector("norm bias", bias, width=scale.size)
    axes = np.abs(scale) * math.sqrt(scale.size)
    return Ellipsoid(axes, center, premise="hidden", source=f"weights of the final norm ({kind})")
