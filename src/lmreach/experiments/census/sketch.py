"""Distinct sequences estimated in fixed memory, with the error stated: for counts too large to be exact.

Of all hashes only the k smallest are kept (Bar-Yossef et al. 2002; Giroire 2009). If the k-th smallest lies
at the share u of the range, (k - 1) / u estimates the number of distinct keys without bias, with a relative
standard error of 1 / sqrt(k - 2). Fewer than k distinct keys are counted exactly (up to a collision of
64-bit hashes).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt64

from lmreach.experiments.census.count import Packing

__all__ = ["Estimate", "Sketches"]

_DEFAULT_K = 1 << 14


@dataclass(frozen=True, slots=True)
class Estimate:
    """Distinct sequences of one length.

    Attributes
    ----------
    length
        Tokens.
    distinct
        Estimate.
    standard_error
        Of the estimate; 0 where it is a count.
    """

    length: int
    distinct: float
    standard_error: float


class Sketches:
    """One sketch for every length; memory is n times k hashes, whatever comes.

    Parameters
    ----------
    packing
        Of the sequences.
    k
        Hashes kept per length, at least 3.
    """

    def __init__(self, packing: Packing, k: int = _DEFAULT_K) -> None:
        self.packing = packing
        self.k = max(k, 3)
        self._kept = [np.empty(0, dtype=np.uint64) for _ in range(packing.n)]

    def add(self, ids: Int[np.ndarray, "rows n"]) -> None:
        """Take in some sequences."""
        keys = self.packing.pack(ids)
        for length in range(1, self.packing.n + 1):
            hashes = _hashed(self.packing.start(keys, length))
            kept = self._kept[length - 1]
            if len(kept) == self.k:
                hashes = hashes[hashes < kept[-1]]
            if len(hashes):
                self._kept[length - 1] = np.unique(np.concatenate([kept, hashes]))[: self.k]

    def estimates(self) -> tuple[Estimate, ...]:
        """Return the estimate for every length."""
        return tuple(self._estimate(length, kept) for length, kept in enumerate(self._kept, start=1))

    def _estimate(self, length: int, kept: UInt64[np.ndarray, " k"]) -> Estimate:
        if len(kept) < self.k:
            return Estimate(length, float(len(kept)), 0.0)
        share = (float(kept[-1]) + 1.0) / 2.0**64
        found = (self.k - 1) / share
        return Estimate(length, found, found / math.sqrt(self.k - 2))


def _hashed(keys: UInt64[np.ndarray, "rows words"]) -> UInt64[np.ndarray, " rows"]:
    """Mix the words into one (the finaliser of SplitMix64, Steele et al. 2014, after every word)."""
    mixed = np.zeros(len(keys), dtype=np.uint64)
    for word in keys.T:
        mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed
