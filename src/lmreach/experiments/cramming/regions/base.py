"""What every set of prompt vectors answers: nearest member, membership, exact count, storage.

Letters of shapes: d width, k free coordinates of a vector (d, or K in a subspace), m prompt vectors.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.config.within import Within
from lmreach.errors import InputError, problem
from lmreach.maths.supports import Packing, Premise

__all__ = ["Outside", "VectorSet"]


@dataclass(frozen=True, slots=True)
class Outside:
    """The first coordinate that is not in a set.

    Attributes
    ----------
    vector, coordinate
        Where it stands, from 0; no coordinate where the vector as a whole is outside.
    got, allowed
        What is there, and what may be.
    """

    vector: int
    coordinate: int | None
    got: str
    allowed: str

    @property
    def text(self) -> str:
        """Say it in a few words."""
        where = f"vector {self.vector}"
        return where if self.coordinate is None else f"{where}, coordinate {self.coordinate}"


@dataclass(frozen=True, eq=False)
class VectorSet(ABC):
    """A set S: each of the m prompt vectors lies in it, so a prompt lies in S^m.

    The optimiser moves k free coordinates of a vector; `point` makes the vector of them.

    Attributes
    ----------
    within
        The premise as it was asked for.
    width
        d.
    """

    within: Within
    width: int

    @property
    def free(self) -> int:
        """Free coordinates of one vector, k."""
        return self.width

    @property
    def discrete(self) -> bool:
        """Whether free coordinates can only take the values of a small table."""
        return False

    @property
    @abstractmethod
    def premise(self) -> Premise:
        """``format`` where nothing but the storage is assumed, ``input`` for a region of the input space."""

    @property
    @abstractmethod
    def packing(self) -> Packing:
        """Whether `log_count` is exact or a proved upper bound."""

    @property
    @abstractmethod
    def log_count(self) -> float:
        """Log of the number of vectors in the set, in nats; prompts of m vectors have m times that."""

    @property
    @abstractmethod
    def bits(self) -> float:
        """Bits that one vector is stored in."""

    @property
    def scale(self) -> float | None:
        """What stored values are multiplied by, the same for all vectors of a run; None: nothing."""
        return None

    def point(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows d"]:
        """Return the vectors of some free coordinates; gradients flow."""
        return free

    def free_of(self, vectors: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows k"]:
        """Return free coordinates of the vectors, or of the nearest vectors that have any."""
        return vectors

    @abstractmethod
    def settle(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
        """Return the free coordinates of the nearest member; those of a member stay as they are."""

    def keep(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
        """Return what an optimiser goes on from after a step; for a region, that is its nearest member."""
        return self.settle(free)

    def free_rms(self, rms: float) -> float:
        """Return the RMS free coordinate of vectors whose RMS coordinate is ``rms``."""
        return rms

    def start(
        self, real: Float[Tensor, "m d"], scale: float, generator: np.random.Generator
    ) -> Float[Tensor, "m k"]:
        """Return where a search begins: real input vectors made ``scale`` times as long, brought inside."""
        return self.keep(scale * self.free_of(real))

    def outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """Return the first coordinate that is not in the set, or None: all vectors are members, exactly."""
        place = first_of(~torch.isfinite(vectors))
        if place is not None:
            return Outside(*place, f"{float(vectors[place]):g}", "finite values")
        return self.first_outside(vectors)

    @abstractmethod
    def first_outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """Do the work of `outside` for finite vectors."""

    def check(self, vectors: Float[Tensor, "m d"]) -> None:
        """Refuse vectors that are not all members.

        Raises
        ------
        InputError
            With the place of the first that is not, its value, and what is allowed there.
        """
        first = self.outside(vectors)
        if first is not None:
            expected = f"vectors within {self.within.text} ({first.allowed})"
            got = f"{first.got} at {first.text}"
            raise InputError(problem(expected, got, "bring them inside, or name another set"))

    def encode(self, free: Float[Tensor, "m k"]) -> dict[str, np.ndarray]:
        """Return the tensors that a member is stored as, from its free coordinates."""
        return {"vectors": free.detach().cpu().numpy().astype(np.float32)}


def first_of(wrong: Tensor) -> tuple[int, int] | None:
    """Return the first true entry of a mask of shape (m, d), or None."""
    places = wrong.nonzero()
    return None if len(places) == 0 else (int(places[0, 0]), int(places[0, 1]))
