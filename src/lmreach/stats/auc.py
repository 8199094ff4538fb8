"""How well a score tells two classes apart, by ranks alone, with an interval that respects shared tokens."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import norm, rankdata

from lmreach.stats.accessibility import check_confidence

__all__ = ["Auc", "auc", "auc_over_tokens"]


@dataclass(frozen=True, slots=True)
class Auc:
    """Area under the ROC curve.

    The chance that a random positive scores above a random negative, ties counting half.

    Attributes
    ----------
    value
        In [0, 1]; 1/2 when the score says nothing.
    low, high
        Interval; equal to the whole range where no token could be left out.
    positives, negatives
        Sizes of the classes.
    """

    value: float
    low: float
    high: float
    positives: int
    negatives: int


def auc(scores: Float[np.ndarray, " k"], positive: Bool[np.ndarray, " k"]) -> float | None:
    """Return the area under the ROC curve, U / (positives negatives); None without both classes."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return None
    ranks = float(rankdata(scores)[positive].sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


def auc_over_tokens(
    scores: Float[np.ndarray, " k"],
    positive: Bool[np.ndarray, " k"],
    ids: Int[np.ndarray, "k length"],
    confidence: float = 0.95,
) -> Auc | None:
    """Return the area with an interval from leaving out one token at a time; None without both classes.

    Sequences made of the same tokens are no independent trials, so an interval that counts them as such
    would be far too narrow. The tokens are the units here: delete-one jackknife over them (Efron and Stein,
    Ann. Statist. 9, 1981), normal interval cut to [0, 1].
    """
    check_confidence(confidence)
    value = auc(scores, positive)
    if value is None:
        return None
    without = []
    for token in np.unique(ids).tolist():
        kept = ~(ids == token).any(axis=1)
        left_out = auc(scores[kept], positive[kept]) if kept.any() else None
        if left_out is not None:
            without.append(left_out)
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if len(without) < 3:
        return Auc(value, 0.0, 1.0, positives, negatives)
    spread = np.asarray(without) - np.mean(without)
    error = math.sqrt((len(without) - 1) / len(without) * float((spread**2).sum()))
    half = float(norm.ppf((1 + confidence) / 2)) * error
    return Auc(value, max(value - half, 0.0), min(value + half, 1.0), positives, negatives)
