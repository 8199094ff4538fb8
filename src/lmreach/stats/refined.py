"""The refined limit: mean log share of the cells of tokens drawn from q, and what follows for the slope.

CE(q, v) = -E_q ln v_t nats per token is what a token of a sequence drawn from q costs, and C_cells(q) =
ln P / CE tokens per vector is the limit it leaves. Tokens are drawn from q with replacement and each drawn
token's share is estimated once, so the standard error has two parts: between the draws, and from the
estimates. The second is taken over replicates of the mean, for the estimates of different tokens may share
random numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from lmreach.errors import InputError, problem
from lmreach.maths.checks import positive, whole
from lmreach.maths.splitting import LogProbability

__all__ = [
    "CellLimit",
    "HitCells",
    "MeanLogShare",
    "SlopeRatio",
    "cell_limit",
    "draw_unigram",
    "hit_cells",
    "mean_log_share",
    "slope_ratio",
]

Bound = Literal["estimated", "at_most", "at_least", "unknown"]


def draw_unigram(
    ids: Int[np.ndarray, "*shape"],
    usable: Int[np.ndarray, " V"],
    draws: int,
    *,
    rng: np.random.Generator,
) -> Int[np.ndarray, " draws"]:
    """Draw tokens with the frequencies they have in a text, with replacement.

    Parameters
    ----------
    ids
        Token ids of the text, any shape. Handing in ``usable`` itself draws uniformly.
    usable
        Ids that have a cell.

    Raises
    ------
    InputError
        For a text without tokens, or with one that has no cell.
    """
    flat = np.asarray(ids, dtype=np.int64).ravel()
    if not len(flat):
        raise InputError(problem("a text of at least 1 token", "none", "bring a longer text"))
    bad = flat[~np.isin(flat, usable)]
    if len(bad):
        raise InputError(problem("usable token ids", f"id {bad[0]}", "drop ids the tokenizer does not know"))
    drawn: Int[np.ndarray, " draws"] = rng.choice(flat, size=whole("draws", draws, least=2))
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanLogShare:
    """E_q ln v_t, nats per token.

    Attributes
    ----------
    name
        Of q.
    verdict
        ``estimated``; ``at_most`` where some drawn tokens are only known to lie below a limit, which they
        then enter with: the true mean is lower (minus infinity if one of them has no cell at all).
    draws, distinct, below
        Tokens drawn, different ones among them, and draws that are only known to lie below a limit.
    value, se, low, high
        Mean, its standard error and interval.
    se_draws, se_estimates
        The two parts of the standard error: from drawing tokens, and from the estimates of their shares.
    confidence
        Level of the interval.
    replicates
        Jackknife pseudo-values of the mean by replicate, shape (R,), for covariances with other means.
    """

    name: str
    verdict: Bound
    draws: int
    distinct: int
    below: int
    value: float
    se: float
    low: float
    high: float
    se_draws: float
    se_estimates: float
    confidence: float
    replicates: tuple[float, ...]

    @property
    def cross_entropy(self) -> float:
        """CE(q, v), nats per token."""
        return -self.value


def mean_log_share(
    drawn: Int[np.ndarray, " n"],
    shares: Mapping[int, LogProbability],
    *,
    name: str,
    confidence: float = 0.95,
) -> MeanLogShare:
    """Return E_q ln v_t from tokens drawn from q with replacement.

    Parameters
    ----------
    drawn
        Token ids, at least 2 draws, repeats included.
    shares
        An estimate for each drawn id; all estimated ones with the same number of replicates.

    Raises
    ------
    InputError
        For fewer than 2 draws, a drawn token without estimate, or unequal numbers of replicates.
    """
    if len(drawn) < 2:
        raise InputError(problem("at least 2 drawn tokens", f"{len(drawn)}", "draw more"))
    ids, times = np.unique(np.asarray(drawn, dtype=np.int64), return_counts=True)
    found = [_known(shares, token) for token in ids.tolist()]
    runs = _runs(found)
    values = np.array([_level(one) for one in found])
    logs = np.array([one.logs if one.logs else (_level(one),) * runs for one in found])
    return _combine(name, times, values, logs, [one.verdict == "below" for one in found], confidence)


def _known(shares: Mapping[int, LogProbability], token: int) -> LogProbability:
    if token not in shares:
        raise InputError(problem("an estimate for every drawn token", f"none for id {token}", "estimate it"))
    return shares[token]


def _level(share: LogProbability) -> float:
    """Return the value, or the limit it lies below."""
    level = share.value if share.value is not None else share.at_most
    assert level is not None
    return level


def _runs(found: list[LogProbability]) -> int:
    sizes = sorted({len(one.logs) for one in found if one.logs})
    if len(sizes) > 1:
        raise InputError(problem("equal numbers of replicates", f"{sizes}", "estimate all tokens alike"))
    return sizes[0] if sizes else 2


def _combine(
    name: str,
    times: Int[np.ndarray, " k"],
    values: Float[np.ndarray, " k"],
    logs: Float[np.ndarray, "k r"],
    below: list[bool],
    confidence: float,
) -> MeanLogShare:
    draws, runs = int(times.sum()), logs.shape[1]
    weights = times / draws
    value = float(weights @ values)
    spread = logs.var(axis=1, ddof=1)
    own = spread / runs + spread**2 / (2 * (runs - 1))  # squared standard errors, as in `lognormal_mean`
    # The spread of the estimates over the draws holds their own noise; that part is counted below.
    between = float(weights @ (values - value) ** 2) * draws / (draws - 1) - float(weights @ own)
    from_draws = max(between, 0.0) / draws
    pseudo = weights @ _pseudo_values(logs)
    from_estimates = float(pseudo.var(ddof=1)) / runs
    se = math.sqrt(from_draws + from_estimates)
    reach = _student([(from_draws, draws - 1), (from_estimates, runs - 1)], confidence) * se
    return MeanLogShare(
        name=name,
        verdict="at_most" if any(below) else "estimated",
        draws=draws,
        distinct=len(times),
        below=int(times[np.array(below)].sum()),
        value=value,
        se=se,
        low=value - reach,
        high=min(value + reach, 0.0),
        se_draws=math.sqrt(from_draws),
        se_estimates=math.sqrt(from_estimates),
        confidence=confidence,
        replicates=tuple(pseudo.tolist()),
    )


def _pseudo_values(logs: Float[np.ndarray, "k r"]) -> Float[np.ndarray, "k r"]:
    """Return the jackknife's pseudo-values of `lognormal_mean` over replicates.

    Their mean estimates ln v, and their variance over replicates, divided by r, that estimate's variance, the
    s^2 / 2 terms and whatever tokens share included. Two replicates leave no variance when one is left out,
    and the logs themselves are returned.
    """
    runs = logs.shape[1]
    if runs == 2:
        return logs
    total, centred = logs.sum(axis=1, keepdims=True), logs - logs.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1, keepdims=True)
    value = total / runs + squares / (2 * (runs - 1))
    without = (squares - centred**2 * runs / (runs - 1)) / (2 * (runs - 2))
    left_out = (total - logs) / (runs - 1) + without
    pseudo: Float[np.ndarray, "k r"] = runs * value - (runs - 1) * left_out
    return pseudo


def _student(parts: list[tuple[float, int]], confidence: float) -> float:
    """Return Student's quantile for a sum of variances (Welch 1947, Satterthwaite 1946)."""
    total = sum(variance for variance, _ in parts)
    if total == 0:
        return 0.0
    freedom = total**2 / sum(variance**2 / degrees for variance, degrees in parts)
    return float(special.stdtrit(freedom, 0.5 + confidence / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimit:
    """C_cells(q) = ln P / CE(q, v), tokens per vector.

    Attributes
    ----------
    name
        Of q.
    verdict
        ``estimated``, or ``at_most`` as in `MeanLogShare`.
    value, low, high
        Tokens per vector; high is None where the cross-entropy may be 0.
    log_packing
        ln P, nats.
    """

    name: str
    verdict: Bound
    value: float
    low: float
    high: float | None
    log_packing: float


def cell_limit(log_packing: float, mean: MeanLogShare) -> CellLimit:
    """Return the refined limit on the slope; the interval is that of the mean, ln P taken as known.

    Raises
    ------
    InputError
        For ln P not above 0, or a mean log share of 0 (a decoder with one winner).
    """
    packing = positive("ln P", log_packing)
    entropy = positive("cross-entropy", mean.cross_entropy)
    return CellLimit(
        name=mean.name,
        verdict=mean.verdict,
        value=packing / entropy,
        low=packing / -mean.low,
        high=packing / -mean.high if mean.high < 0 else None,
        log_packing=packing,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeRatio:
    """Predicted slope of text over slope of uniformly random tokens: CE(uniform, v) / CE(text, v).

    Attributes
    ----------
    text, uniform
        Names of the two q.
    verdict
        ``at_least`` (``at_most``) where tokens only known to lie below a limit were drawn from the uniform
        distribution (from text) alone, ``unknown`` where from both.
    value, low, high
        Ratio and interval, by the delta method on its logarithm, so both ends are above 0.
    se_log
        Standard error of the logarithm.
    confidence
        Level of the interval.
    """

    text: str
    uniform: str
    verdict: Bound
    value: float
    low: float
    high: float
    se_log: float
    confidence: float


def slope_ratio(text: MeanLogShare, uniform: MeanLogShare) -> SlopeRatio:
    """Return the predicted ratio; the two means may share replicates, not draws.

    The covariance through shared random numbers is taken over replicates, which must correspond.

    Raises
    ------
    InputError
        For a cross-entropy of 0, other numbers of replicates, or other confidences.
    """
    if len(text.replicates) != len(uniform.replicates) or text.confidence != uniform.confidence:
        got = f"{len(text.replicates)} and {len(uniform.replicates)} replicates"
        raise InputError(problem("two means of one run", got, "estimate both with the same settings"))
    top = positive("cross-entropy of uniform tokens", uniform.cross_entropy)
    bottom = positive("cross-entropy of text", text.cross_entropy)
    runs = len(text.replicates)
    joint = float(np.cov(text.replicates, uniform.replicates)[0, 1]) / runs
    # A covariance larger than its two variances allow is noise of few replicates.
    most = text.se_estimates * uniform.se_estimates
    joint = min(max(joint, -most), most)
    draws = (text.se_draws / bottom) ** 2 + (uniform.se_draws / top) ** 2
    estimates = (text.se_estimates / bottom) ** 2 + (uniform.se_estimates / top) ** 2
    estimates = max(estimates - 2 * joint / (top * bottom), 0.0)
    se = math.sqrt(draws + estimates)
    degrees = min(text.draws, uniform.draws) - 1
    reach = _student([(draws, degrees), (estimates, runs - 1)], text.confidence) * se
    ratio = top / bottom
    return SlopeRatio(
        text=text.name,
        uniform=uniform.name,
        verdict=_ratio_verdict(text, uniform),
        value=ratio,
        low=ratio * math.exp(-reach),
        high=ratio * math.exp(reach),
        se_log=se,
        confidence=text.confidence,
    )


def _ratio_verdict(text: MeanLogShare, uniform: MeanLogShare) -> Bound:
    if text.below and uniform.below:
        return "unknown"
    if uniform.below:
        return "at_least"
    return "at_most" if text.below else "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class HitCells:
    """What plain sampling says when cells without a hit are dropped, for comparison.

    Attributes
    ----------
    draws, cells, hit
        Points drawn, all cells, and those with at least one point.
    mean_log_share
        Average of ln(count / draws) over the cells that were hit, nats per token: biased upwards.
    """

    draws: int
    cells: int
    hit: int
    mean_log_share: float

    def bias(self, right: MeanLogShare) -> float:
        """Return how far the average lies above the mean over all cells (q uniform), nats per token."""
        return self.mean_log_share - right.value


def hit_cells(counts: Int[np.ndarray, " V"]) -> HitCells:
    """Return the average log share over the cells that a plain sample hit.

    Raises
    ------
    InputError
        For negative counts or none above 0.
    """
    if (counts < 0).any() or not (counts > 0).any():
        raise InputError(problem("counts of a sample", "no hits or negative counts", "draw points first"))
    draws = int(counts.sum())
    hit = counts[counts > 0]
    return HitCells(
        draws=draws,
        cells=len(counts),
        hit=len(hit),
        mean_log_share=float(np.mean(np.log(hit / draws))),
    )
