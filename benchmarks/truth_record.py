"""What is true of the sequences of one length where all prompts are listed, and what was found of it."""

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float

from lmreach.results.base import Result, Share

__all__ = ["Truth", "chance_of_any", "read_truth"]


class Truth(Result):
    """One model, m and length.

    Attributes
    ----------
    bits
        Of all m vectors: 2^bits prompts.
    limit
        Tokens that the prompts can tell apart at most, ln(prompts) / ln V.
    reachable, sequences
        Sequences of n tokens that some prompt emits, of V^n.
    counted, by_states, by_first_tokens
        Share of the V^n sequences that could be reached: at most, since no prompt emits two; and foreseen
        from the cells' shares (of the norm's Gaussian states, of the first tokens of all prompts) if prompts
        chose every token anew with these chances.
    median_prompts
        Prompts that emit a reachable sequence, the median of these.
    found
        Of the reachable sequences that were asked of the optimiser, those it emitted. None: none was asked.
    """

    model: str
    within: str
    m: int
    bits: int
    n: int
    limit: float
    reachable: int
    sequences: int
    counted: float
    by_states: float
    by_first_tokens: float
    median_prompts: float
    restarts: int
    max_steps: int
    found: Share | None

    @property
    def share(self) -> float:
        """True share of the sequences of this length that some prompt emits."""
        return self.reachable / self.sequences


def chance_of_any(shares: Float[np.ndarray, " V"], prompts: int, n: int) -> float:
    """Return the mean over all sequences of n tokens of the chance that one of so many prompts emits it.

    Parameters
    ----------
    shares
        Chance of each token; every prompt is supposed to draw n of them independently.

    Notes
    -----
    A sequence of chance p is missed by all prompts with chance (1 - p)^prompts. The refined limit,
    ln(prompts) / CE, is the length at which prompts times the geometric mean of p is 1.
    """
    logs = np.log(np.clip(shares, np.finfo(float).tiny, None))
    total = np.zeros(1)
    for _ in range(n):
        total = (total[:, None] + logs).ravel()
    missed = prompts * np.log1p(-np.exp(np.minimum(total, math.log1p(-1e-12))))
    return float(np.mean(-np.expm1(missed)))


def read_truth(path: Path) -> list[Truth]:
    """Return the lines of a file."""
    return [Truth.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
