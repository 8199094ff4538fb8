"""The limit of the very set that vectors are held to: what a measurement within it is compared with."""

import math

from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.maths.bounds import Limit

__all__ = ["held_limit"]


def held_limit(held: VectorSet, *, vocab: int) -> Limit:
    """Return the limit that counts the members of a set.

    Parameters
    ----------
    vocab
        Usable ids.
    """
    text = held.within.text
    values = math.exp(held.log_count / held.free) if held.log_count / held.free < 700 else math.inf
    scale = "" if held.scale is None else f", all times {held.scale:g}"
    return Limit(
        name=f"within {text}",
        support=text,
        norm="none",
        premise=held.premise,
        packing=held.packing,
        log_packing=held.log_count,
        width=held.width,
        vocab=vocab,
        source=f"members of the set that vectors are held to: {text}",
        note=f"{values:.6g} values for each of {held.free} free coordinates{scale}; no eps; "
        f"a vector is stored in {held.bits:g} bits",
    )
