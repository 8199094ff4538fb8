"""How many bits a vector really needs: round its coordinates to a narrower format and decode again."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.errors import InputError, problem

__all__ = ["FORMATS", "StoredFormat", "quantise"]


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """One way to store a prompt vector: d values of so many bits and one scale.

    Attributes
    ----------
    name
        As in the limits: ``float16``, ``float8_e4m3``, ``int8``, ...
    bits
        Of one value.
    scale_bits
        Of the vector's scale; 0 where values are stored as they are.
    """

    name: str
    bits: int
    scale_bits: int

    def bits_per_coordinate(self, width: int) -> float:
        """Return the bits a coordinate takes, the scale's share included."""
        return self.bits + self.scale_bits / width


_CASTS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}
_INTEGERS = {"int8": 127, "int4": 7, "int3": 3, "int2": 1}
FORMATS: Mapping[str, StoredFormat] = MappingProxyType(
    {
        one.name: one
        for one in (
            StoredFormat("float16", 16, 32),
            StoredFormat("bfloat16", 16, 0),
            StoredFormat("float8_e4m3", 8, 32),
            StoredFormat("float8_e5m2", 8, 32),
            StoredFormat("int8", 8, 32),
            StoredFormat("int4", 4, 32),
            StoredFormat("int3", 3, 32),
            StoredFormat("int2", 2, 32),
        )
    }
)


def quantise(vectors: Float[Tensor, "m d"], name: str) -> Float[Tensor, "m d"]:
    """Return the vectors as they read after being stored in a format, in float32.

    Every vector has one float32 scale that puts its largest coordinate at the format's largest value (float16
    and the 8-bit floats: at a quarter of it, a power of two away, so that nothing overflows); bfloat16, whose
    range is that of float32, has none. Integers are symmetric, rounded to nearest, ties to even.

    Raises
    ------
    InputError
        For a format that is not in `FORMATS`.
    """
    if name not in FORMATS:
        raise InputError(problem(f"a format of {', '.join(FORMATS)}", repr(name), "choose one of these"))
    vectors = vectors.float()
    largest = vectors.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
    if name in _INTEGERS:
        scale = largest / _INTEGERS[name]
        return (vectors / scale).round() * scale
    cast = _CASTS[name]
    if FORMATS[name].scale_bits == 0:
        return vectors.to(cast).float()
    scale = 2.0 ** torch.ceil(torch.log2(largest / (torch.finfo(cast).max / 4)))
    return (vectors / scale).to(cast).float() * scale
