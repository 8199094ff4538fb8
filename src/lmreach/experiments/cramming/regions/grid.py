"""Vectors, or the coefficients of a subspace, that are held to the values of a small number format."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.regions.areas import SignBasis
from lmreach.experiments.cramming.regions.base import Outside, VectorSet, first_of
from lmreach.maths.levels import Levels, levels, pack
from lmreach.maths.supports import Packing, Premise

__all__ = ["Grid", "positive_scales"]

_FLOATING = ("float16", "bfloat16", "e4m3", "e5m2")
_SCALE_BITS = 16  # of a vector's own scale, a positive bfloat16


def positive_scales() -> Levels:
    """Return the bfloat16 numbers above 0: what a vector's own scale can be."""
    every = levels("bfloat16")
    above = every.values > 0
    return Levels("bfloat16 above 0", _SCALE_BITS, every.values[above], every.codes[above])


@dataclass(frozen=True, eq=False)
class Grid(VectorSet):
    """Every free coordinate is a value of ``levels`` times a scale.

    Attributes
    ----------
    levels
        The format's values.
    run_scale
        The power of two that serves all vectors of a run; None: each vector brings its own scale.
    basis
        Of a subspace whose coefficients are stored, or None: the coordinates themselves are.
    """

    levels: Levels
    run_scale: float | None
    basis: SignBasis | None = None
    device: torch.device = field(default=torch.device("cpu"), repr=False)

    @property
    def free(self) -> int:
        """K of the subspace, else d."""
        return self.width if self.basis is None else int(self.basis.signs.shape[0])

    @property
    def discrete(self) -> bool:
        """Yes."""
        return True

    @property
    def evenly_spaced(self) -> bool:
        """Whether values are evenly spaced, so that steps from one to the next are alike."""
        return self.levels.name not in _FLOATING

    @property
    def premise(self) -> Premise:
        """Nothing but the storage is assumed."""
        return "format"

    @property
    def packing(self) -> Packing:
        """Exact with one scale for the run; else some vectors are counted under several scales."""
        return "proved" if self.run_scale is None else "exact count"

    @property
    def log_count(self) -> float:
        """Log of the number of vectors that can be stored, in nats."""
        own = 0.0 if self.run_scale is not None else math.log(positive_scales().count)
        return self.free * math.log(self.levels.count) + own

    @property
    def bits(self) -> float:
        """Bits of one vector, its own scale included."""
        return self.levels.bits * self.free + (_SCALE_BITS if self.run_scale is None else 0)

    @property
    def scale(self) -> float | None:
        """The run's scale."""
        return self.run_scale

    @cached_property
    def _values(self) -> Float[Tensor, " q"]:
        return torch.from_numpy(self.levels.values).float().to(self.device)

    @cached_property
    def _middles(self) -> Float[Tensor, " q-1"]:
        values = self.levels.values
        # Half a gap takes one more bit than a value, so float32 holds it.
        return torch.from_numpy((values[1:] + values[:-1]) / 2).float().to(self.device)

    def point(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows d"]:
        """Return the vectors of some free coordinates."""
        return free if self.basis is None else self.basis.point(free)

    def free_of(self, vectors: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows k"]:
        """Return the free coordinates of the nearest vectors, not rounded."""
        return vectors if self.basis is None else self.basis.free_of(vectors)

    def free_rms(self, rms: float) -> float:
        """Return the RMS free coordinate of vectors whose RMS coordinate is ``rms``."""
        return rms if self.basis is None else self.basis.free_rms(rms)

    def scales_of(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows 1"]:
        """Return the run's scale, or the bfloat16 one that puts a vector's largest coordinate at the top."""
        if self.run_scale is not None:
            return free.new_tensor(self.run_scale).expand(*free.shape[:-1], 1)
        own = free.abs().amax(dim=-1, keepdim=True) / self.levels.largest
        most = torch.finfo(torch.bfloat16).max / self.levels.largest
        return own.clamp(torch.finfo(torch.bfloat16).tiny, most).bfloat16().float()

    def places(self, free: Float[Tensor, "*rows k"]) -> Tensor:
        """Return the position of the nearest value for each free coordinate; beyond the ends, the end."""
        return torch.bucketize(free / self.scales_of(free), self._middles)

    def at(self, places: Tensor, scales: Float[Tensor, "*rows 1"]) -> Float[Tensor, "*rows k"]:
        """Return the free coordinates of positions in the table."""
        return self._values[places] * scales

    def settle(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
        """Round to the nearest value; what is beyond the largest becomes the largest, NaN stays NaN."""
        return torch.where(free.isnan(), free, self.at(self.places(free), self.scales_of(free)))

    def keep(self, free: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
        """Keep what is to be rounded within the largest values, so that it can come back."""
        if self.run_scale is None:
            return free
        end = self.levels.largest * self.run_scale
        return free.clamp(-end, end)

    def start(
        self, real: Float[Tensor, "m d"], scale: float, generator: np.random.Generator
    ) -> Float[Tensor, "m k"]:
        """Return a random vector of an evenly spaced format, all values alike; else as for any set."""
        if not self.evenly_spaced or self.run_scale is None:
            free = scale * real if self.basis is None else self.basis.start(real, scale)
            return self.keep(free)
        end = self.levels.largest * self.run_scale
        drawn = generator.uniform(-end, end, size=(len(real), self.free)).astype(np.float32)
        return torch.from_numpy(drawn).to(self.device)

    def first_outside(self, vectors: Float[Tensor, "m d"]) -> Outside | None:
        """Return the first coordinate that is not exactly what the nearest stored vector has."""
        nearest = self.point(self.settle(self.free_of(vectors)))
        place = first_of(~(vectors == nearest))
        if place is None:
            return None
        got, wanted = float(vectors[place]), float(nearest[place])
        end = self.levels.largest * float(self.scales_of(self.free_of(vectors))[place[0], 0])
        if self.basis is None and not abs(got) <= end:
            return Outside(*place, f"{got:.9g}", f"up to {end:g}")
        return Outside(*place, f"{got:.9g}", f"the nearest stored value is {wanted:.9g}")

    def encode(self, free: Float[Tensor, "m k"]) -> dict[str, np.ndarray]:
        """Store bit patterns, packed, and each vector's own scale where it has one.

        Raises
        ------
        InputError
            Coordinates that are not values of the format: nothing is rounded here.
        """
        scales = self.scales_of(free)
        values = (free / scales).double().cpu().numpy()
        stored = {"codes": pack(self.levels.encode(values), self.levels.bits)}
        if self.run_scale is None:
            own = scales[..., 0].double().cpu().numpy()
            stored["scales"] = pack(positive_scales().encode(own), _SCALE_BITS)
        return stored

    def check_dtype(self, dtype: torch.dtype) -> None:
        """Refuse a grid that vectors in ``dtype``, the model's, cannot hold.

        Raises
        ------
        InputError
            With the first value that would be rounded or would overflow.
        """
        if self.basis is None:
            # A scale of its own has 8 significant bits: one with all of them set stands for all.
            scale = self.run_scale if self.run_scale is not None else 2 - 2.0**-7
            values = (self._values * scale).cpu()
        else:
            most = self.free * self.levels.largest * (self.run_scale or 1.0)
            values = torch.tensor([most])
            if most <= torch.finfo(dtype).max:
                return
        wrong = (values.to(dtype).float() != values).nonzero()
        if len(wrong):
            name = str(dtype).removeprefix("torch.")
            got = f"{float(values[wrong[0, 0]]):.9g}, which {name} cannot hold"
            expected = f"a grid that the model's {name} holds exactly"
            raise InputError(problem(expected, got, "load the model with --dtype float32"))
