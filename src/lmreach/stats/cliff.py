"""How sharply accessibility falls: from nine in ten strings to one in ten, against what counting predicts.

Beyond its threshold the share of sequences that m vectors can reach falls by a factor V per token (Theorem
4.5 of Meyer et al. 2026: ln share <= m ln P - n ln V), from 0.9 to 0.1 within ln 9 / ln V tokens. A measured
cliff is wider where strings differ in how hard they are, or the optimiser is what gives out.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lmreach.errors import InputError, problem
from lmreach.stats.survival import Censored, Reach, check_reaches, crossings, last_length, shares


@dataclass(frozen=True, slots=True)
class Cliff:
    """Width of the fall.

    Attributes
    ----------
    n90, n50, n10
        Lengths that nine tenths, half and a tenth of the strings reach, in tokens; None beyond those tried.
    width, low, high
        n10 - n90 in tokens and its bootstrap interval; None where an end lies beyond the lengths tried.
    predicted
        ln 9 / ln V tokens.
    factor_per_token
        What the share is divided by per token between n50 and n10; theory's bound alone has V.
    """

    n90: float | None
    n50: float | None
    n10: float | None
    width: float | None
    low: float | None
    high: float | None
    predicted: float
    factor_per_token: float | None
    confidence: float

    @property
    def relative(self) -> float | None:
        """Width over n50."""
        return self.width / self.n50 if self.width is not None and self.n50 else None

    def words(self) -> str:
        """Return the result as a person would say it."""
        if self.width is None or self.relative is None:
            return "the width of the fall is not known: it lies partly beyond the lengths tried"
        ends = ""
        if self.low is not None and self.high is not None:
            ends = f" ({self.confidence * 100:g} % interval {self.low:.1f} to {self.high:.1f})"
        return (
            f"falls from 90 % to 10 % within {self.width:.1f} tokens{ends}, {self.relative:.2g} times n50; "
            f"counting alone allows {self.predicted:.2f} tokens"
        )


def cliff(
    reach: Reach,
    censored: Censored,
    *,
    vocab: int,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 1000,
) -> Cliff:
    """Return how sharply the share of strings reached falls.

    Parameters
    ----------
    reach, censored
        Shape (k,), k at least 1.
    vocab
        Usable ids V, at least 2.
    rng
        Draws the resamples.

    Raises
    ------
    InputError
        For no reaches, or a vocabulary below 2.
    """
    reach, censored = check_reaches(reach, censored)
    if reach.size == 0 or vocab < 2:
        got = f"{reach.size} reaches, {vocab} ids"
        raise InputError(problem("a reach and a vocabulary of at least 2", got, "measure first"))
    n90, n50, n10 = (float(at[0]) for at in _lengths(np.ones((1, reach.size)), reach, censored))
    weights = rng.multinomial(reach.size, np.full(reach.size, 1 / reach.size), size=resamples)
    drawn90, _, drawn10 = _lengths(weights.astype(np.float64), reach, censored)
    # Where nine in ten reach all lengths tried, so does one in ten, and the width has no upper end.
    low, high = _middle(drawn10 - np.where(np.isfinite(drawn90), drawn90, 0.0), confidence)
    known = [at if math.isfinite(at) else None for at in (n90, n50, n10)]
    fall = n10 - n50
    return Cliff(
        n90=known[0],
        n50=known[1],
        n10=known[2],
        width=n10 - n90 if math.isfinite(n10) else None,
        low=low if math.isfinite(n10) else None,
        high=high if math.isfinite(n10) else None,
        predicted=math.log(9) / math.log(vocab),
        factor_per_token=math.exp(math.log(5) / fall) if math.isfinite(fall) and fall > 0.01 else None,
        confidence=confidence,
    )


def _lengths(
    weights: Float[np.ndarray, "b k"], reach: Reach, censored: Censored
) -> list[Float[np.ndarray, " b"]]:
    """Return n90, n50 and n10 of every weighting: 0 below one token, infinite beyond the lengths tried."""
    share = shares(weights, reach, censored, max(1, last_length(reach, censored)))
    found = []
    for level in (0.9, 0.5, 0.1):
        length, side = crossings(share, level)
        found.append(np.where(side == 0, length, np.where(side > 0, np.inf, 0.0)))
    return found


def _middle(drawn: Float[np.ndarray, " b"], confidence: float) -> tuple[float | None, float | None]:
    tail = (1 - confidence) / 2
    ends = [float(np.quantile(drawn, q, method="nearest")) for q in (tail, 1 - tail)]
    low, high = (end if math.isfinite(end) else None for end in ends)
    return low, high
