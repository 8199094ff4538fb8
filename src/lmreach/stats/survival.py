"""Survival curves of reaches on whole lengths: Kaplan-Meier shares, bands, and where they cross a level.

Shares take a stack of weightings of the same strings, so that one call serves the data (all weights 1) and
a thousand bootstrap resamples (weights: how often each string was drawn).

Symbols: k strings, b weightings, n length in tokens, S(n) share of strings of reach at least n; S(0) = 1.
A string of reach R fails at token R + 1; one stopped by the length limit at R is only known to hold R tokens.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from lmreach.errors import InputError, problem

Reach = Int[np.ndarray, " k"]
Censored = Bool[np.ndarray, " k"]


def check_reaches(reach: Reach, censored: Censored) -> tuple[Reach, Censored]:
    """Return the two arrays as int64 and bool.

    Raises
    ------
    InputError
        For unequal shapes, more than one axis, fractions, negative reaches, or flags that are no booleans.
    """
    lengths, flags = np.asarray(reach), np.asarray(censored)
    if lengths.ndim != 1 or lengths.shape != flags.shape:
        got = f"{lengths.shape} and {flags.shape}"
        raise InputError(
            problem("reaches and censoring flags of one shape (k,)", got, "pass one pair per string")
        )
    if lengths.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    if lengths.dtype.kind not in "iu" or flags.dtype != np.bool_:
        got = f"{lengths.dtype} and {flags.dtype}"
        raise InputError(problem("integer reaches and boolean flags", got, "pass whole tokens and bools"))
    if lengths.min() < 0:
        raise InputError(
            problem("reaches of at least 0 tokens", f"{lengths.min()}", "drop nothing: find the cause")
        )
    return lengths.astype(np.int64), flags


def last_length(reach: Reach, censored: Censored) -> int:
    """Return the last length with a known share: the longest reach, or one more if it ended in a failure."""
    longest = int(reach.max())
    return longest if censored[reach == longest].any() else longest + 1


def shares(
    weights: Float[np.ndarray, "b k"], reach: Reach, censored: Censored, length: int
) -> Float[np.ndarray, "b length"]:
    """Return the Kaplan-Meier shares S(1) .. S(length) for every weighting.

    Without censoring below n this is the plain share of reaches of at least n. Where a weighting leaves no
    string under observation the share stays as it was.
    """
    failed, watched = _failed_and_watched(weights, reach, censored, length)
    hazard = np.divide(failed, watched, out=np.zeros_like(failed), where=watched > 0)
    survival = np.cumprod(1.0 - hazard, axis=1)
    # Plain shares, where nothing is censored yet, come out exact instead of as a product of quotients.
    reached = (reach[:, None] >= np.arange(1, length + 1)).astype(np.float64)
    plain = weights @ reached / weights.sum(axis=1, keepdims=True)
    return np.where(_uncensored_below(reach, censored, length), plain, survival)


def _failed_and_watched(
    weights: Float[np.ndarray, "b k"], reach: Reach, censored: Censored, length: int
) -> tuple[Float[np.ndarray, "b length"], Float[np.ndarray, "b length"]]:
    """Return the weight of strings that failed at token n, and of those that were tried at token n."""
    n = np.arange(1, length + 1)
    fails = (reach[:, None] + 1 == n) & ~censored[:, None]
    # A string censored at its reach was never tried at the token after it.
    tried = reach[:, None] + ~censored[:, None] >= n
    return weights @ fails.astype(np.float64), weights @ tried.astype(np.float64)


def band(
    reach: Reach, censored: Censored, share: Float[np.ndarray, " length"], confidence: float
) -> tuple[Float[np.ndarray, " length"], Float[np.ndarray, " length"]]:
    """Return the pointwise confidence band of the shares of one set of strings.

    Clopper-Pearson with the effective number of strings; without censoring below n that is the number of
    strings, and the interval is the exact one.
    """
    strings = effective_strings(reach, censored, share)
    low, high = clopper_pearson(share * strings, strings, confidence)
    # The share never rises with length, so what bounds it at one length bounds it at the next.
    return low, np.minimum.accumulate(high)


def effective_strings(
    reach: Reach, censored: Censored, share: Float[np.ndarray, " length"]
) -> Float[np.ndarray, " length"]:
    """Return S (1 - S) / Var S at every length, Var by Greenwood's formula: the strings a share rests on.

    Without censoring below n this is the number of strings. At a share of 0 or 1, where the quotient is
    undefined, it is the number of strings tried at that length.
    """
    length = share.size
    alike = np.ones((1, reach.size))
    failed, watched = (part[0] for part in _failed_and_watched(alike, reach, censored, length))
    left = watched - failed
    greenwood = np.divide(failed, watched * left, out=np.zeros(length), where=watched * left > 0)
    variance = share**2 * np.cumsum(greenwood)
    inside = (share > 0) & (share < 1) & (variance > 0)
    spread = share * (1 - share)
    strings = np.divide(spread, variance, out=np.maximum(watched, 1.0), where=inside)
    return np.where(_uncensored_below(reach, censored, length), float(reach.size), strings)


def _uncensored_below(reach: Reach, censored: Censored, length: int) -> Bool[np.ndarray, " length"]:
    """Return for which n every string is known to have or to have not reached n."""
    return np.asarray(np.arange(1, length + 1) <= reach[censored].min(initial=length + 1))


def clopper_pearson(
    successes: Float[np.ndarray, "..."], trials: Float[np.ndarray, "..."], confidence: float
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Return the central interval of a proportion from Beta quantiles; counts need not be whole numbers."""
    tail = (1.0 - confidence) / 2.0
    failures = np.maximum(trials - successes, 0.0)
    none, every = successes <= 1e-9, failures <= 1e-9
    low = special.betaincinv(np.where(none, 1.0, successes), failures + 1.0, tail)
    high = special.betainccinv(successes + 1.0, np.where(every, 1.0, failures), tail)
    return np.where(none, 0.0, low), np.where(every, 1.0, high)


def crossings(
    share: Float[np.ndarray, "b length"], level: float = 0.5
) -> tuple[Float[np.ndarray, " b"], Int[np.ndarray, " b"]]:
    """Return where each curve crosses ``level``, and on which side of the observed lengths it does.

    Linear between whole lengths. A curve that rests on exactly the level for a while crosses in the middle of
    that stretch, as the median of an even number of values does.

    Returns
    -------
    length, side
        Shape (b,); side is 0 where the crossing lies among the lengths, +1 where the share never falls below
        the level, and -1 where it is below it at one token already (the length is then 0 and means nothing).
    """
    rows = np.arange(share.shape[0])
    known = np.hstack([np.ones((share.shape[0], 1)), share])
    # Shares are quotients of counts: 9/10 must count as resting on 0.9.
    above = known > level + 1e-12
    below = known < level - 1e-12
    side = np.where(below[:, 1], -1, np.where(below.any(axis=1), 0, 1))
    # First length at or below the level, first strictly below, each with the length just before it.
    touch, leave = (~above).argmax(axis=1), below.argmax(axis=1)
    ends = [_between(known, rows, np.maximum(right, 1), level) for right in (touch, leave)]
    return np.where(side == 0, (ends[0] + ends[1]) / 2, 0.0), side


def _between(
    known: Float[np.ndarray, "b length"],
    rows: Int[np.ndarray, " b"],
    right: Int[np.ndarray, " b"],
    level: float,
) -> Float[np.ndarray, " b"]:
    """Return the point between right - 1 and right where the line passes the level."""
    start, end = known[rows, right - 1], known[rows, right]
    drop = start - end
    part = np.divide(start - level, drop, out=np.zeros_like(drop), where=drop > 0)
    return np.asarray(right - 1 + np.clip(part, 0.0, 1.0))
