"""Cells of a decoder: where token t has the largest score w_t . h + b_t, and whether it has it anywhere.

Let S be the set the hidden states may lie in and f_s(h) = w_s . h + b_s. Of a score that is made of terms of
size a, what is below `RESOLUTION` * a is lost in float32, so verdicts are given at that resolution, which has
no units: a is that of the scores which are compared, whatever other rows and biases the head has. Token t is

reachable
    if f_t(h) - f_s(h) > RESOLUTION * a_s(h) for every other s at some h in S (the witness), with a_s(h) the
    larger of sum_i |w_ti h_i| + |b_t| and the same of s;
tie-only
    if it is not, but is level with the best at some h in S where the tokens are not all level:
    f_t(h) - f_s(h) >= -`TIE` * m for every s, where m = f_t(h) - mean_s f_s(h) > RESOLUTION * L, with L the
    largest |f_s(h)| over all of S; mean and L are those of ordinary tokens, whose largest |score| is at most
    2^10 times the median one. Without the last condition h = 0 would make every token of a head without bias
    tie. In such a head, with 0 inside S, reachable tokens are the vertices of the convex
    hull of the rows, tie-only ones its other boundary points (and vertices that are rows of several tokens),
    unreachable ones its inner points;
unreachable
    otherwise. The certificate is a convex combination of other tokens, sum_s p_s f_s, that stays within
    RESOLUTION * A of f_t or above it on all of S: the largest of the f_s is then never clearly below f_t. A
    is the larger of the largest |f_t| over S and of sum_s p_s (the largest |f_s| over S);
undetermined
    where neither is shown, or a solver gave no answer.

Grivas, Bogoychev and Lopez (2022), "Low-rank softmax can have unargmaxable classes in theory but rarely in
practice", solve a linear program per token over a box of fixed size. Here the set is named by the caller,
ties are told apart, and each verdict carries what proves it. A tie-only token is emitted by a rule for ties,
if at all.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import optimize

from lmreach.errors import InputError, problem
from lmreach.maths import checks
from lmreach.maths.supports import Box, Ellipsoid

__all__ = [
    "RESOLUTION",
    "TIE",
    "BoundedHead",
    "Region",
    "TokenReach",
    "Verdict",
    "WholeSpace",
    "argmax_cell",
    "bounded_head",
    "bounding_box",
    "certified_bound",
    "compared_size",
    "highest",
    "largest_score",
    "largest_scores",
    "least_distance",
    "log_share_without",
    "nearest_row",
    "ordinary",
    "reach_by_lp",
    "share_of",
    "sum_of_terms",
    "tie_region",
    "top_margin",
]

Verdict = Literal["reachable", "tie-only", "unreachable", "undetermined"]
RESOLUTION = 2.0**-23
TIE = 2.0**-19
_FLOOR = (
    2.0**-10
)  # how near to infinity a tie may lie, in units of the bias (whole space with a head bias only)
_ORDINARY = 2.0**10
_INFEASIBLE = 2  # scipy's status
_CUTS = 400  # tangent planes that may stand for an ellipsoid in the reference solver

Rows = Float[np.ndarray, "V d"]
Bias = Float[np.ndarray, " V"]


@dataclass(frozen=True)
class WholeSpace:
    """All of R^d. Without a head bias only the direction of a hidden state then matters."""

    dimension: int


Region = WholeSpace | Box | Ellipsoid


@dataclass(frozen=True, eq=False)
class BoundedHead:
    """A head on a bounded set with the same verdicts as the head it was made from.

    Attributes
    ----------
    rows, bias, region
        Scores are rows @ u + bias for u in the region.
    lifted
        Whether the last coordinate of u stands for the 1 that multiplies the bias, so that
        h = u[:-1] / u[-1]: how all of R^d is bounded when there is a head bias.
    """

    rows: Rows
    bias: Bias
    region: Box | Ellipsoid
    lifted: bool = False

    def hidden(self, u: Float[np.ndarray, " e"]) -> Float[np.ndarray, " d"]:
        """Return the hidden state that a point of the region stands for."""
        if not self.lifted:
            return u
        spread = float(np.ptp(self.rows[:, -1]))
        lead = float(np.diff(np.partition(self.rows @ u, -2)[-2:])[0])
        # A witness at infinity (last coordinate 0) becomes a far one: half of its lead is spent on the bias.
        return np.asarray(u[:-1] / max(float(u[-1]), lead / (2 * spread)))


@dataclass(frozen=True, eq=False)
class TokenReach:
    """Verdict on one token.

    Attributes
    ----------
    token
        Row of the token.
    verdict
        See the module.
    margin, bound
        Best smallest lead over the other tokens that was found, and what no hidden state of the set can
        exceed; both as a share of A. Infinite, with their signs, where the solver gave no answer.
    witness
        Hidden state of shape (d,) that proves ``reachable`` or ``tie-only``, else None.
    weights
        Convex weights p of shape (V,), 0 at the token itself, that prove the bound; None for ``reachable``.
    """

    token: int
    verdict: Verdict
    margin: float
    bound: float
    witness: Float[np.ndarray, " d"] | None
    weights: Bias | None


def argmax_cell(
    points: Float[np.ndarray, "k d"], rows: Rows, bias: Bias | None = None
) -> Int[np.ndarray, " k"]:
    """Return the token with the largest score at each point (the first of those that tie)."""
    return np.asarray(_scores(points, rows, bias).argmax(axis=1))


def top_margin(
    points: Float[np.ndarray, "k d"], token: int, rows: Rows, bias: Bias | None = None
) -> Float[np.ndarray, " k"]:
    """Return the score of ``token`` minus the largest other score, at each point."""
    scores = _scores(points, rows, bias)
    return np.asarray(scores[:, token] - np.delete(scores, token, axis=1).max(axis=1))


def nearest_row(points: Float[np.ndarray, "k d"], rows: Rows) -> Int[np.ndarray, " k"]:
    """Return the row nearest to each point in L2: the published convention for cells.

    Those are Voronoi cells, another partition than the decoder's: |h - w|^2 = |h|^2 - 2 w.h + |w|^2 also
    rewards short rows. Rows (3, 0) and (0, 1): (0.5, 1.2) is nearest to row 1, but row 0 wins there.
    """
    return argmax_cell(points, rows, -0.5 * (rows**2).sum(axis=1))


def log_share_without(length: int, log_kept: float) -> float:
    """Return the log share of length-n sequences free of every removed token: n times one token's, nats.

    Tokens are drawn independently; ``log_kept`` is ln(1 - U / V) when U of V equally likely ones are removed.
    """
    return 0.0 if length == 0 else length * log_kept


def highest(normals: Float[np.ndarray, "k d"], region: Box | Ellipsoid) -> Float[np.ndarray, " k"]:
    """Return the largest value of each linear function over the region."""
    if isinstance(region, Box):
        return np.asarray(np.maximum(normals * region.lo, normals * region.hi).sum(axis=1))
    return np.asarray(normals @ region.center + np.linalg.norm(normals * region.axes, axis=1))


def largest_scores(rows: Rows, bias: Bias, region: Box | Ellipsoid) -> Bias:
    """Return the largest |score| of each token over the region, shape (V,)."""
    up, down = highest(rows, region) + bias, highest(-rows, region) - bias
    return np.asarray(np.maximum(up, down))


def largest_score(rows: Rows, bias: Bias, region: Box | Ellipsoid) -> float:
    """Return L, the largest |score| over tokens and region."""
    return float(largest_scores(rows, bias, region).max())


def ordinary(largest: Bias) -> Bool[np.ndarray, " V"]:
    """Return which tokens have a largest |score| of at most 2^10 times the median of those above 0."""
    return np.asarray(largest <= _ORDINARY * np.median(largest[largest > 0]))


def sum_of_terms(rows: Rows, bias: Bias, point: Float[np.ndarray, " d"]) -> Bias:
    """Return sum_i |w_i h_i| + |b| of each token: what the rounding of its score is relative to."""
    return np.asarray(np.abs(rows) @ np.abs(point) + np.abs(bias))


def bounded_head(rows: Rows, bias: Bias, region: Region) -> BoundedHead:
    """Return a head with the same verdicts on a bounded region; one that is bounded stays as it is.

    All of R^d without bias: scores scale with h, so a box about 0 will do; its sides are in units of each
    coordinate's spread over the rows. With bias: (h, 1) is scaled by any factor above 0 instead.
    """
    if not isinstance(region, WholeSpace):
        return BoundedHead(rows, bias, region)
    if (bias == bias[0]).all():
        box = bounding_box(np.sqrt(np.mean(rows**2, axis=0)), lifted=False)
        return BoundedHead(rows, np.zeros_like(bias), box)
    both = np.column_stack([rows, bias])
    box = bounding_box(np.sqrt(np.mean(both**2, axis=0)), lifted=True)
    return BoundedHead(both, np.zeros_like(bias), box, lifted=True)


def bounding_box(rms: Float[np.ndarray, " e"], *, lifted: bool) -> Box:
    """Return the box that stands for R^d, from the root mean square of each coordinate over the rows.

    A coordinate that no row uses gets no room. ``lifted``: the last coordinate multiplies the bias, so it is
    at least 0.
    """
    sides = np.divide(1.0, rms, out=np.zeros_like(rms), where=rms > 0)
    low = -sides
    if lifted:
        low[-1] = 0.0
    return Box(low, sides)


def tie_region(region: Box | Ellipsoid, *, lifted: bool) -> Box | Ellipsoid:
    """Return where ties are looked for: all of the region, but not at infinity where R^d was lifted."""
    if lifted and isinstance(region, Box):
        return Box(np.append(region.lo[:-1], _FLOOR * region.hi[-1]), region.hi)
    return region


def certified_bound(token: int, weights: Bias, head: BoundedHead) -> float:
    """Return what the convex weights prove: no lead of ``token`` over the others exceeds this share of A.

    The smallest lead is at most the weighted mean lead, whose maximum over the region is closed form.
    """
    rest = weights / weights.sum()
    row = head.rows[token] - rest @ head.rows
    offset = head.bias[token] - rest @ head.bias
    lead = float(highest(row[None], head.region)[0] + offset)
    return share_of(lead, compared_size(token, weights, head))


def compared_size(token: int, weights: Bias, head: BoundedHead) -> float:
    """Return A, the size of the scores that a combination compares with the token's."""
    largest = largest_scores(head.rows, head.bias, head.region)
    return float(max(largest[token], weights @ largest / weights.sum()))


def share_of(value: float, size: float) -> float:
    """Return value / size; where all that is compared is 0, so is the share."""
    if size > 0:
        return value / size
    return 0.0 if value == 0 else math.copysign(math.inf, value)


def least_distance(
    normals: Float[np.ndarray, "k d"], offsets: Float[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, " d"] | None, Float[np.ndarray, " k"]]:
    """Return the shortest x with normals @ x >= offsets, and multipliers >= 0.

    Lawson and Hanson (1974), chapter 23: one nonnegative least-squares problem. Where no such x exists x is
    None, and the multipliers y prove it: y @ normals = 0 up to rounding while y @ offsets > 0.

    Raises
    ------
    RuntimeError
        If the solver gives up.
    """
    system = np.vstack([normals.T, offsets])
    target = np.zeros(len(system))
    target[-1] = 1.0
    multipliers, _ = optimize.nnls(system, target, maxiter=30 * system.shape[1])
    residual = system @ multipliers - target
    if -residual[-1] <= 1e-13:
        return None, multipliers
    return residual[:-1] / -residual[-1], multipliers


def reach_by_lp(token: int, rows: Rows, bias: Bias, region: Region) -> TokenReach:
    """Decide one token by one linear program over all others (scipy, HiGHS): slow and plain, the reference.

    max delta subject to (w_t - w_s).h + (b_t - b_s) >= delta for all s, h in S; if delta is not above the
    resolution, a second program looks for a tie. An ellipsoid is cut out of a box by tangent planes.

    Raises
    ------
    InputError
        For shapes that do not fit, numbers that are not finite, or rows that are all zero.
    """
    _check(token, rows, bias, region)
    head = bounded_head(rows, bias, region)
    # The solver sees scores in units of ordinary ones: a row or bias far above them does not set the unit.
    largest = largest_scores(head.rows, head.bias, head.region)
    unit = float(largest[ordinary(largest)].max())
    leads = np.delete(head.rows[token] - head.rows, token, axis=0) / unit
    offsets = np.delete(head.bias[token] - head.bias, token) / unit
    found = _best(leads, offsets, np.ones(len(leads)), np.zeros(leads.shape[1]), head.region)
    if found is None or found.u is None:
        return TokenReach(token, "undetermined", -math.inf, math.inf, None, None)
    weights = np.insert(np.maximum(found.prices, 0.0), token, 0.0)
    if not weights.any():
        return TokenReach(token, "undetermined", -math.inf, math.inf, None, None)
    gaps, bound = leads @ found.u + offsets, certified_bound(token, weights, head)
    margin = share_of(float(gaps.min()) * unit, compared_size(token, weights, head))
    terms = sum_of_terms(head.rows, head.bias, found.u)
    if (gaps * unit > RESOLUTION * np.maximum(np.delete(terms, token), terms[token])).all():
        return TokenReach(token, "reachable", margin, bound, head.hidden(found.u), None)
    if not bound <= RESOLUTION:
        return TokenReach(token, "undetermined", margin, bound, None, weights)
    tie = _tie(token, head, unit)
    if tie is None:
        return TokenReach(token, "undetermined", margin, bound, None, weights)
    verdict: Verdict = "unreachable" if tie.u is None else "tie-only"
    return TokenReach(token, verdict, margin, bound, tie.u, weights)


@dataclass(frozen=True, eq=False)
class _Solved:
    """A solver's answer: a point (None: there is none), and the prices of the constraints."""

    u: Float[np.ndarray, " e"] | None
    prices: Bias


def _tie(token: int, head: BoundedHead, size: float) -> _Solved | None:
    """Return where the token is level with the best though not all tokens are level; None: no answer."""
    leads, offsets = (head.rows[token] - head.rows) / size, (head.bias[token] - head.bias) / size
    usual = ordinary(largest_scores(head.rows, head.bias, head.region))
    mean, mean_offset = leads[usual].mean(axis=0), float(offsets[usual].mean())
    region = tie_region(head.region, lifted=head.lifted)
    rows, levels = leads + TIE * mean, offsets + TIE * mean_offset
    found = _best(rows, levels, np.zeros(len(rows)), mean, region)
    if found is None or found.u is None:
        return found
    if float(mean @ found.u) + mean_offset <= RESOLUTION:
        return _Solved(None, found.prices)
    return _Solved(found.u[:-1] / found.u[-1] if head.lifted else found.u, found.prices)


def _best(
    leads: Rows,
    offsets: Bias,
    takes: Bias,
    objective: Float[np.ndarray, " d"],
    region: Box | Ellipsoid,
) -> _Solved | None:
    """Maximise objective.u + delta with leads @ u + offsets >= takes * delta over the region.

    None where the solver gave no answer: that there is no such u is one, that it gave up is none.
    """
    middle, half = _frame(region)
    # Coordinates of the unit cube: the solver's tolerances then mean the same in every unit.
    inside, levels = leads * half, offsets + leads @ middle
    free = bool(takes.any())
    goal = -np.append(objective * half, 1.0 if free else 0.0)
    left, right = np.column_stack([-inside, takes]), levels
    cuts: list[Float[np.ndarray, " d"]] = []
    for _ in range(_CUTS if isinstance(region, Ellipsoid) else 1):
        planes = np.column_stack([np.array(cuts).reshape(-1, len(middle)), np.zeros(len(cuts))])
        found = optimize.linprog(
            goal,
            A_ub=np.vstack([left, planes]),
            b_ub=np.append(right, np.ones(len(cuts))),
            bounds=[(-1.0, 1.0)] * len(middle) + [(None, None) if free else (0.0, 0.0)],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            return _Solved(None, np.zeros(len(leads))) if found.status == _INFEASIBLE else None
        solution = np.asarray(found.x)
        v, prices = solution[:-1], -found.ineqlin.marginals[: len(leads)]
        length = float(np.linalg.norm(v))
        if isinstance(region, Box) or length <= 1.0 + 1e-10:
            break
        cuts.append(v / length)
    if isinstance(region, Ellipsoid):
        v = v / max(1.0, length)
    return _Solved(middle + half * v, prices)


def _frame(region: Box | Ellipsoid) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Return middle and half-widths: the region is middle + half * (unit cube or ball)."""
    if isinstance(region, Box):
        return (region.lo + region.hi) / 2, (region.hi - region.lo) / 2
    return region.center, region.axes


def _scores(points: Float[np.ndarray, "k d"], rows: Rows, bias: Bias | None) -> Float[np.ndarray, "k V"]:
    scores = points @ rows.T
    return np.asarray(scores if bias is None else scores + bias)


def _check(token: int, rows: Rows, bias: Bias, region: Region) -> None:
    if rows.ndim != 2 or len(rows) < 2 or bias.shape != rows.shape[:1]:
        got = f"shapes {rows.shape} and {bias.shape}"
        raise InputError(problem("rows (V, d) with V >= 2 and bias (V,)", got, "pass one bias per row"))
    checks.vector("rows", rows.ravel())
    checks.vector("bias", bias)
    if not rows.any():
        raise InputError(problem("rows that tell tokens apart", "zeros only", "bring trained weights"))
    if not 0 <= token < len(rows):
        raise InputError(problem(f"a token from 0 to {len(rows) - 1}", str(token), "name a row"))
    if region.dimension != rows.shape[1]:
        got = f"one of dimension {region.dimension}"
        raise InputError(problem(f"a support of dimension {rows.shape[1]}", got, "measure it on this model"))
    if not math.isfinite(largest_score(*_plain(bounded_head(rows, bias, region)))):
        raise InputError(problem("finite scores on the support", "overflow", "use smaller units"))


def _plain(head: BoundedHead) -> tuple[Rows, Bias, Box | Ellipsoid]:
    return head.rows, head.bias, head.region
