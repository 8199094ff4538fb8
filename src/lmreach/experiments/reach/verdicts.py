"""What is known so far of every distinct row: verdict, method, and what proves it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from lmreach.experiments.reach.proof import UnreachableProof
from lmreach.maths.cells import Verdict

__all__ = ["Method", "Verdicts"]

Method = Literal["direction", "separation", "same row", "certificate", "none"]


@dataclass(eq=False)
class Verdicts:
    """Verdicts by distinct row, all undetermined at first.

    Attributes
    ----------
    verdict, method, margin
        Of each row.
    reason, proof, vectors
        By row, where there is one: why undetermined; certificate; witness.
    padded
        Witnesses at which a padded row has a larger logit than the token.
    """

    verdict: list[Verdict]
    method: list[Method]
    margin: Float[np.ndarray, " U"]
    reason: dict[int, str]
    proof: dict[int, UnreachableProof]
    vectors: dict[int, Float[np.ndarray, " h"]]
    padded: int = 0

    @classmethod
    def none_yet(cls, count: int) -> "Verdicts":
        """Return the verdicts on so many rows before any is looked at."""
        return cls(["undetermined"] * count, ["none"] * count, np.zeros(count), {}, {}, {})

    def settle(self, row: int, verdict: Verdict, method: Method, margin: float = 0.0) -> None:
        """Give a row its verdict for good."""
        self.verdict[row], self.method[row], self.margin[row] = verdict, method, margin

    def give_up(self, rows: list[int], reason: str) -> None:
        """Leave rows undetermined."""
        for row in rows:
            self.reason[row] = reason
