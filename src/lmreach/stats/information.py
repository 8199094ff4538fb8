"""Tokens per vector beside the bits behind them, so that neither is taken for the other.

A token id out of V carries at most log2 V bits; a stored vector occupies width times bits per value. Many
tokens per vector are no compression: the vector usually holds more bits than the ids it replaces.
"""

import math
from dataclasses import dataclass
from typing import Any

from lmreach.errors import InputError, problem


@dataclass(frozen=True, slots=True)
class Information:
    """Both readings of "n tokens from m vectors".

    Attributes
    ----------
    tokens
        n, may be a fraction such as n50.
    vectors, width, vocab
        m, d and V.
    bits_per_value
        Storage of one coordinate: 32 for float32, 16 for float16.
    """

    tokens: float
    vectors: int
    width: int
    vocab: int
    bits_per_value: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tokens) and self.tokens >= 0):
            raise InputError(problem("tokens of at least 0", f"{self.tokens}", "pass a length or an n50"))
        sizes = {"vectors": self.vectors, "width": self.width, "bits per value": self.bits_per_value}
        for name, value in sizes.items():
            if value < 1:
                raise InputError(problem(f"{name} of at least 1", f"{value}", f"pass the {name} really used"))
        if self.vocab < 2:
            raise InputError(problem("a vocabulary of at least 2", f"{self.vocab}", "pass the usable ids"))

    @property
    def tokens_per_vector(self) -> float:
        """Tokens n divided by vectors m."""
        return self.tokens / self.vectors

    @property
    def bits_ids(self) -> float:
        """Bits that name n ids out of V, all alike: n log2 V."""
        return self.tokens * math.log2(self.vocab)

    @property
    def bits_vectors(self) -> int:
        """Bits that store the m vectors."""
        return self.vectors * self.width * self.bits_per_value

    @property
    def bits_per_coordinate(self) -> float:
        """Bits of ids per coordinate of the vectors."""
        return self.bits_ids / (self.vectors * self.width)

    @property
    def bits_ratio(self) -> float:
        """Bits of ids per stored bit; below 1 the vectors are larger than what they stand for."""
        return self.bits_ids / self.bits_vectors

    def words(self) -> str:
        """Return both readings in one sentence."""
        stored = "vector" if self.vectors == 1 else "vectors"
        return (
            f"{self.tokens_per_vector:.4g} tokens per vector: {self.bits_ids:.0f} bits of ids "
            f"against {self.bits_vectors} bits of {stored} = {self.bits_ratio:.3g}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all readings, JSON-ready."""
        return {
            "tokens_per_vector": self.tokens_per_vector,
            "bits_per_coordinate": self.bits_per_coordinate,
            "bits_ids": self.bits_ids,
            "bits_vectors": self.bits_vectors,
            "bits_ratio": self.bits_ratio,
            "words": self.words(),
        }
