"""Which sequences no prompt of a census emits, and whether known reasons tell which.

Reasons put to the test: the sequence holds a token that never comes first or cannot be emitted at all; it
repeats one token; its cell is small, that is, the sum of ln v over its tokens is low (v the share of final
hidden states at which a token wins).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Bool, Float, Int

from lmreach.errors import InputError, problem
from lmreach.stats.auc import Auc, auc_over_tokens

__all__ = ["Explained", "Missing", "Present", "explain", "find_missing"]


class Present:
    """Remembers of every sequence of one length whether it came: one byte per sequence.

    Parameters
    ----------
    vocab, length
        V and the length; V^length bytes are held.
    """

    def __init__(self, vocab: int, length: int) -> None:
        self.vocab, self.length = vocab, length
        self.seen: Bool[np.ndarray, " sequences"] = np.zeros(vocab**length, dtype=bool)

    @classmethod
    def longest(cls, vocab: int, n: int, most: int) -> Self | None:
        """Take the longest length up to n with at most ``most`` sequences; None if not even tokens fit."""
        length = min(n, int(math.log(most) / math.log(vocab) + 1e-9))
        return cls(vocab, length) if length else None

    def of(self, length: int) -> Self:
        """Return what came of the starts of some length, at most this one's."""
        starts = type(self)(self.vocab, length)
        starts.seen[:] = self.seen.reshape(len(starts.seen), -1).any(axis=1)
        return starts

    @property
    def share(self) -> float:
        """Share of all sequences that came."""
        return float(self.seen.mean())

    def add(self, ids: Int[np.ndarray, "rows n"]) -> None:
        """Note the first ids of some outputs."""
        self.seen[ids[:, : self.length] @ self._places] = True

    def sequences(self, numbers: Int[np.ndarray, " k"]) -> Int[np.ndarray, "k length"]:
        """Return the ids of numbered sequences."""
        return np.asarray(np.asarray(numbers)[:, None] // self._places % self.vocab)

    @property
    def _places(self) -> Int[np.ndarray, " length"]:
        return self.vocab ** np.arange(self.length - 1, -1, -1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Missing:
    """Sequences of one length that no prompt emits.

    Attributes
    ----------
    length
        Tokens.
    count, of
        How many are missing, exactly, of how many.
    never_first, never
        Tokens that no output begins with, and that no output of this length holds.
    without_never
        Missing sequences all of whose tokens do occur in some output.
    repeats, repeats_missing
        Sequences of one token over and over: how many there are (V), and how many are missing.
    sequences
        The first missing ones in order of ids, shape (k, length).
    present
        What came.
    """

    length: int
    count: int
    of: int
    never_first: tuple[int, ...]
    never: tuple[int, ...]
    without_never: int
    repeats: int
    repeats_missing: int
    sequences: Int[np.ndarray, "k length"]
    present: Present


def find_missing(held: Present, limit: int) -> Missing:
    """List what never came, at most ``limit`` sequences; all counts are exact.

    Of the shortest length at which at least half is missing, where it says most about reasons; of the longest
    length held if more than half comes everywhere.
    """
    shorter = (held.of(length) for length in range(1, held.length + 1))
    present = next((one for one in shorter if one.share <= 0.5), held)
    seen, vocab, length = present.seen, present.vocab, present.length
    absent = np.flatnonzero(~seen)
    came = present.sequences(np.flatnonzero(seen))
    never = np.setdiff1d(np.arange(vocab), came)
    repeats = np.arange(vocab) * ((vocab**length - 1) // (vocab - 1))
    holds_never = (
        np.isin(present.sequences(absent), never).any(axis=1) if len(never) else np.zeros(len(absent), bool)
    )
    return Missing(
        length=length,
        count=len(absent),
        of=len(seen),
        never_first=tuple(np.setdiff1d(np.arange(vocab), came[:, 0]).tolist()),
        never=tuple(never.tolist()),
        without_never=int((~holds_never).sum()),
        repeats=vocab,
        repeats_missing=int((~seen[repeats]).sum()),
        sequences=present.sequences(absent[:limit]),
        present=present,
    )


@dataclass(frozen=True, slots=True)
class Explained:
    """How far known reasons go.

    Attributes
    ----------
    unreachable
        Tokens that were proved unreachable, and the number of missing sequences that hold one.
    shares
        Chance that a random sequence that came has a larger sum of ln v than a random one that is missing
        (1/2: cell shares say nothing); None if all or none came.
    shares_reachable
        The same among sequences of tokens that occur in some output: what shares say beyond those reasons.
    measure
        Of hidden states, whose shares these are.
    """

    unreachable: tuple[int, ...]
    with_unreachable: int
    shares: Auc | None
    shares_reachable: Auc | None
    measure: str = "given"


def explain(
    missing: Missing, shares: Float[np.ndarray, " V"], unreachable: tuple[int, ...] = ()
) -> Explained:
    """Test the reasons on all sequences of the census's length.

    Parameters
    ----------
    shares
        v_t of every token, at least 0; a token that no sample hit has 0 and ranks below all others.
    unreachable
        Tokens proved unreachable.

    Raises
    ------
    InputError
        For shares of another vocabulary.
    """
    present = missing.present
    if shares.shape != (present.vocab,) or (shares < 0).any():
        got = f"shape {shares.shape}"
        raise InputError(problem(f"{present.vocab} shares of at least 0", got, "count cells of this model"))
    ids = present.sequences(np.arange(len(present.seen)))
    # Counted per sequence, so that two tokens without a hit rank below one, and no infinities are subtracted.
    floor = np.log(shares[shares > 0]).min() - 1e6 if (shares > 0).any() else 0.0
    scores = np.log(shares, out=np.full(len(shares), floor), where=shares > 0)[ids].sum(axis=1)
    occurs = ~np.isin(ids, missing.never).any(axis=1)
    held = np.isin(ids, unreachable).any(axis=1)
    return Explained(
        unreachable=unreachable,
        with_unreachable=int((held & ~present.seen).sum()),
        shares=auc_over_tokens(scores, present.seen, ids),
        shares_reachable=auc_over_tokens(scores[occurs], present.seen[occurs], ids[occurs]),
    )
