"""Regions of the input space in float32: a box, a ball, a random subspace."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.experiments.cramming.regions.base import Outside, VectorSet, first_of
from lmreach.maths.ball_count import log_ball_count
from lmreach.maths.precision import number_format
from lmreach.maths.supports import FloatGrid, Packing, Premise

__all__ = ["Ball", "Box", "Everywhere", "SignBasis", "Subspace"]

_STORED = "float32"
_FLOAT32_BITS = 32


@dataclass(frozen=True, eq=False)
class Everywhere(VectorSet):
    """Every finite float32 vector: nothing is asked of the vectors."""

    @property
    def premise(self) -> Premise:
        """Nothing but the storage is assumed."""
        return "format"

    @property
    def packing(self) -> Packing:
        """Values are counted."""
        return "exact count"

    @property
    def log_count(self) -> float:
        """Log of the number of finite float32 vectors, in nats."""
        return FloatGrid(self.width, _STORED, premise="format").log_packing()

    @property
    def bits(self) -> float:
        """Bits of one vector."""
        return _FLOAT32_BITS * self.width

    def settle(self, free: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """Every vector is a member."""
        return free

    def first_outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """None is outside."""
        return None


@dataclass(frozen=True, eq=False)
class Box(VectorSet):
    """Every coordinate between the smallest and the largest of real inputs there.

    Attributes
    ----------
    low, high
        Shape (d,), float32.
    """

    low: Float[Tensor, " d"]
    high: Float[Tensor, " d"]

    @property
    def premise(self) -> Premise:
        """It assumes that vectors stay near real inputs."""
        return "input"

    @property
    def packing(self) -> Packing:
        """Float32 values are counted side by side."""
        return "exact count"

    @property
    def log_count(self) -> float:
        """Log of the number of float32 vectors in the box, in nats."""
        low, high = (end.cpu().numpy().astype(np.float64) for end in (self.low, self.high))
        return FloatGrid(self.width, _STORED, low, high, premise="input").log_packing()

    @property
    def bits(self) -> float:
        """Bits of one vector."""
        return _FLOAT32_BITS * self.width

    def settle(self, free: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """Clamp."""
        return torch.minimum(torch.maximum(free, self.low), self.high)

    def first_outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """Return the first coordinate beyond its range; NaN is outside."""
        place = first_of(~((vectors >= self.low) & (vectors <= self.high)))
        if place is None:
            return None
        low, high = float(self.low[place[1]]), float(self.high[place[1]])
        return Outside(*place, f"{float(vectors[place]):g}", f"{low:g} to {high:g} there")


@dataclass(frozen=True, eq=False)
class Ball(VectorSet):
    """L2 norm of each vector up to ``radius``."""

    radius: float

    @property
    def premise(self) -> Premise:
        """It assumes that vectors stay near real inputs."""
        return "input"

    @property
    def packing(self) -> Packing:
        """Bounded, not counted."""
        return "proved"

    @property
    def log_count(self) -> float:
        """Upper bound on the log of the number of float32 vectors in the ball, in nats."""
        return log_ball_count(_STORED, self.radius, self.width)

    @property
    def bits(self) -> float:
        """Bits of one vector."""
        return _FLOAT32_BITS * self.width

    def settle(self, free: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """Shorten vectors that are too long, to a hair within the sphere: float32 may not round outward."""
        exact = free.double()
        norm = exact.norm(dim=-1, keepdim=True)
        shorter = exact * (self.radius * (1 - 1e-15) / norm.clamp(min=torch.finfo(torch.float64).tiny))
        rounded = shorter.float()
        inward = torch.where(rounded.abs() > shorter.abs(), rounded.nextafter(torch.zeros(())), rounded)
        return torch.where(norm > self.radius, inward, free)

    def first_outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """Return the first vector that is too long."""
        norms = vectors.double().norm(dim=-1)
        wrong = (~(norms <= self.radius)).nonzero()
        if len(wrong) == 0:
            return None
        vector = int(wrong[0, 0])
        return Outside(vector, None, f"norm {float(norms[vector]):g}", f"norm up to {self.radius:g}")


@dataclass(frozen=True, eq=False)
class SignBasis:
    """K random vectors of signs that span a subspace.

    Signs, not an orthonormal basis: sums of grid values along them are exact in float64, so a stored vector
    is the same on every machine.

    Attributes
    ----------
    signs
        Shape (K, d), float64, entries 1 and -1, drawn from the raw bits of PCG64(seed).
    """

    signs: Float[Tensor, "k d"] = field(repr=False)

    @classmethod
    def draw(cls, free: int, width: int, seed: int, device: torch.device | str = "cpu") -> "SignBasis":
        """Draw a basis; the same numbers with every release of numpy."""
        words = np.random.PCG64(seed).random_raw(-(-free * width // 64))
        bits = np.unpackbits(np.asarray(words, dtype="<u8").view(np.uint8))[: free * width]
        signs = 2.0 * bits.reshape(free, width).astype(np.float64) - 1
        return cls(torch.from_numpy(signs).to(device))

    def point(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows d"]:
        """Return the float32 vectors; summed in float64."""
        vectors: Tensor = (free.double() @ self.signs).float()
        return vectors

    def free_of(self, vectors: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows k"]:
        """Return the free coordinates of the nearest vectors of the subspace (least squares)."""
        flat = vectors.double().reshape(-1, vectors.shape[-1])
        found: Tensor = torch.linalg.lstsq(self.signs.T, flat.T).solution.T
        return found.reshape(*vectors.shape[:-1], self.signs.shape[0]).float()

    def free_rms(self, rms: float) -> float:
        """Return the RMS coefficient of vectors of RMS coordinate ``rms``: each is a sum of K of them."""
        return rms / math.sqrt(self.signs.shape[0])

    def start(self, real: Float[Tensor, "m d"], scale: float) -> Float[Tensor, "m k"]:
        """Return the nearest vectors of the subspace, made ``scale`` times as long as real inputs."""
        free = self.free_of(real)
        kept = self.point(free).square().mean().sqrt().clamp(min=torch.finfo(torch.float32).tiny)
        return free * (scale * real.square().mean().sqrt() / kept)


@dataclass(frozen=True, eq=False)
class Subspace(VectorSet):
    """Combinations of K random sign vectors; what is stored are their float32 coefficients."""

    basis: SignBasis

    @property
    def free(self) -> int:
        """K."""
        return int(self.basis.signs.shape[0])

    @property
    def premise(self) -> Premise:
        """The subspace is drawn before any string is seen, so only the coefficients' storage is assumed."""
        return "format"

    @property
    def packing(self) -> Packing:
        """Coefficients are counted."""
        return "exact count"

    @property
    def log_count(self) -> float:
        """Log of the number of float32 coefficient vectors, in nats."""
        return self.free * float(np.log(number_format(_STORED).finite_values))

    @property
    def bits(self) -> float:
        """Bits of one vector's coefficients."""
        return _FLOAT32_BITS * self.free

    def point(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows d"]:
        """Return the vectors of some coefficients."""
        return self.basis.point(free)

    def free_of(self, vectors: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows k"]:
        """Return the coefficients of the nearest vectors of the subspace."""
        return self.basis.free_of(vectors)

    def free_rms(self, rms: float) -> float:
        """Return the RMS coefficient of vectors whose RMS coordinate is ``rms``."""
        return self.basis.free_rms(rms)

    def start(
        self, real: Float[Tensor, "m d"], scale: float, generator: np.random.Generator
    ) -> Float[Tensor, "m k"]:
        """Return the coefficients of the nearest vectors, made as long as asked."""
        return self.basis.start(real, scale)

    def settle(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
        """Every coefficient is allowed."""
        return free

    def first_outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """Return the first coordinate that is off the subspace by more than float32 rounds."""
        nearest = self.point(self.free_of(vectors))
        # Coefficients and vectors are both rounded to float32, each to one part in 2^24 of what is summed.
        room = 2.0**-22 * self.free * vectors.abs().amax(dim=-1, keepdim=True)
        place = first_of(~((vectors - nearest).abs() <= room))
        if place is None:
            return None
        got, wanted = float(vectors[place]), float(nearest[place])
        return Outside(*place, f"{got:.9g}", f"{wanted:.9g} in the nearest vector of the subspace")

    def encode(self, free: Float[Tensor, "m k"]) -> dict[str, np.ndarray]:
        """Store the coefficients."""
        return {"coefficients": free.detach().cpu().numpy().astype(np.float32)}
