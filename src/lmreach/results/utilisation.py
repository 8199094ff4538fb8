"""How much of what is stored in prompt vectors can be read out: bits of the ids over bits of the vectors."""

import math

from lmreach.results.base import Interval

__all__ = ["utilisation"]


def utilisation(n50: Interval, *, vocab: int, bits: float) -> Interval:
    """Return n50 log2 V over the bits that the vectors are stored in, with the ends of n50.

    Parameters
    ----------
    vocab
        V, usable ids.
    bits
        Of all m vectors.
    """
    value, low, high = (
        None if end is None else end * math.log2(vocab) / bits for end in (n50.value, n50.low, n50.high)
    )
    return Interval(value=value, low=low, high=high, verdict=n50.verdict, confidence=n50.confidence)
