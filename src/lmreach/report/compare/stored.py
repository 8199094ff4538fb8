"""What is stored in a prompt's vectors, and what came back of it: the points of the figure of three axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmreach.config.within import Within, parse_within
from lmreach.results.base import Interval
from lmreach.results.compare import Comparison, ComparisonEntry
from lmreach.results.study import Accessibility

__all__ = ["Stored", "stored_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """n50 of one kind of target at one m, held to one set.

    Attributes
    ----------
    group
        Model and target kind, and whatever else must be the same for points to be joined.
    within
        The set.
    width, vocab
        d and V.
    bits
        Of one free coordinate, b.
    steps
        Optimiser steps per string. None: not known.
    strings, limit
        Strings behind n50, and the longest length tried.
    """

    group: str
    within: Within
    m: int
    width: int
    vocab: int
    bits: float
    n50: Interval
    strings: int
    limit: int
    steps: int | None

    @property
    def free(self) -> int:
        """Free coordinates of a vector: K of a subspace, else d."""
        return self.within.free or self.width

    @property
    def format(self) -> str:
        """Number format of a free coordinate."""
        name = self.within.format or "float32"
        return f"{name}:vector" if self.within.vector_scale else name

    @property
    def counted(self) -> float:
        """What counting allows: b K m / log2 V tokens."""
        return self.bits * self.free * self.m / math.log2(self.vocab)


def stored_of(compared: Comparison) -> list[Stored]:
    """Return the measured conditions of formats and subspaces; none where the studies hold vectors alike."""
    found = [_stored(entry, one) for entry in compared.measured for one in entry.conditions]
    held = [one for one in found if one is not None]
    return held if len({one.within for one in held}) > 1 else []


def _stored(entry: ComparisonEntry, one: Accessibility) -> Stored | None:
    within = parse_within(one.within) if one.within else Within()
    # A region bounds vectors; it is no number of bits a coordinate.
    if entry.width is None or entry.vocab is None or within.region is not None:
        return None
    free = within.free or entry.width
    return Stored(
        group=f"{entry.model}, {entry.target}",
        within=within,
        m=one.m,
        width=entry.width,
        vocab=entry.vocab,
        bits=one.bits_vectors / (one.m * free),
        n50=one.n50,
        strings=one.finished,
        limit=one.limit,
        steps=one.max_steps,
    )


def alike(found: Sequence[Stored]) -> bool:
    """Say whether a token is the same number of bits in all of them."""
    return len({one.vocab for one in found}) == 1
