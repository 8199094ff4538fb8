"""What a number format can tell apart: unit roundoff and exact counts of representable values."""

import difflib
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from lmreach.errors import InputError, problem


@dataclass(frozen=True, slots=True)
class Format:
    """A number format of at most 32 bits.

    Attributes
    ----------
    name
        As in the paper and in PyTorch, without the ``torch.`` prefix.
    bits
        Storage of one value (tf32 occupies 32 bits, of which 19 are used).
    unit_roundoff
        u, half the gap between neighbours relative to the largest magnitude of a binade. For the integer
        formats: half a step relative to 2^(bits - 1), so that eps = u r is half a step as well.
    fraction_bits, lowest_exponent
        Stored fraction bits and exponent of the smallest normal number; None for integers.
    largest
        Largest finite value.
    smallest
        Most negative value.
    """

    name: str
    bits: int
    unit_roundoff: float
    fraction_bits: int | None
    lowest_exponent: int | None
    largest: float
    smallest: float

    @property
    def finite_values(self) -> int:
        """Number of distinct finite values; +0 and -0 are one."""
        return int(self.count(self.smallest, self.largest))

    def count(self, lo: ArrayLike, hi: ArrayLike) -> Int[np.ndarray, "..."]:
        """Return how many distinct values of this format lie in [lo, hi], both ends included.

        Exact: the number of positive values up to x equals the bit pattern of x rounded down, which is
        worked out in integers from the exponent and the leading digits of x.

        Parameters
        ----------
        lo, hi
            Finite, broadcastable; an empty interval (lo > hi) counts 0.

        Returns
        -------
        array of int64
        """
        low, high = np.broadcast_arrays(np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise InputError(
                problem("finite ends of an interval", "NaN or infinity", "pass the measured range")
            )
        flat_low, flat_high = low.ravel(), high.ravel()
        inside = self._signed_rank(flat_high) - self._signed_rank_below(flat_low)
        return np.where(flat_low <= flat_high, inside, 0).reshape(low.shape)

    def _signed_rank(self, x: Float[np.ndarray, " lanes"]) -> Int[np.ndarray, " lanes"]:
        """Return the number of values in (0, x], or minus the number of values in (x, 0]."""
        if self.fraction_bits is None:
            return np.asarray(np.floor(np.clip(x, self.smallest - 1, self.largest)), dtype=np.int64)
        up_to = self._positive_up_to(np.abs(x))
        # Of the values in (x, 0], the one at x itself does not count, zero does.
        at_x = self._holds(x)
        return np.asarray(np.where(x >= 0, up_to, -(up_to + 1 - at_x)))

    def _signed_rank_below(self, x: Float[np.ndarray, " lanes"]) -> Int[np.ndarray, " lanes"]:
        """Return the signed rank of the largest value below x."""
        if self.fraction_bits is None:
            return np.asarray(np.ceil(np.clip(x, self.smallest, self.largest + 1)) - 1, dtype=np.int64)
        return np.asarray(self._signed_rank(x) - self._holds(x))

    def _positive_up_to(self, x: Float[np.ndarray, " lanes"]) -> Int[np.ndarray, " lanes"]:
        """Return the number of values in (0, x] for x >= 0."""
        exponent, leading = self._exponent_and_leading(np.minimum(x, self.largest))
        binades = exponent - self._lowest()
        return np.asarray((binades << (self.fraction_bits or 0)) + np.floor(leading).astype(np.int64))

    def _holds(self, x: Float[np.ndarray, " lanes"]) -> Int[np.ndarray, " lanes"]:
        """Return 1 where x is a value of this format, else 0."""
        size = np.abs(x)
        _, leading = self._exponent_and_leading(np.minimum(size, self.largest))
        return np.asarray((leading == np.floor(leading)) & (size <= self.largest), dtype=np.int64)

    def _exponent_and_leading(
        self, x: Float[np.ndarray, " lanes"]
    ) -> tuple[Int[np.ndarray, " lanes"], Float[np.ndarray, " lanes"]]:
        """Return the binade's exponent and x in units of the binade's gap, which is exact."""
        exponent = np.frexp(x)[1].astype(np.int64) - 1
        # Zero and the subnormal numbers share the gap of the lowest binade.
        exponent = np.where(x > 0, np.maximum(exponent, self._lowest()), self._lowest())
        return exponent, np.ldexp(x, (self.fraction_bits or 0) - exponent)

    def _lowest(self) -> int:
        return self.lowest_exponent or 0


def _float(name: str, bits: int, exponent_bits: int, fraction_bits: int, largest: float) -> Format:
    lowest = 2 - 2 ** (exponent_bits - 1)
    return Format(name, bits, 2.0 ** -(fraction_bits + 1), fraction_bits, lowest, largest, -largest)


def _integer(name: str, bits: int) -> Format:
    half = float(2 ** (bits - 1))
    return Format(name, bits, 2.0**-bits, None, None, half - 1, -half)


_FORMATS = {
    item.name: item
    for item in (
        _float("float32", 32, 8, 23, (2 - 2.0**-23) * 2.0**127),
        _float("tf32", 32, 8, 10, (2 - 2.0**-10) * 2.0**127),
        _float("float16", 16, 5, 10, 65504.0),
        _float("bfloat16", 16, 8, 7, (2 - 2.0**-7) * 2.0**127),
        # The "fn" form in use everywhere: no infinities, one NaN per sign, so the top binade ends at 448.
        _float("float8_e4m3", 8, 4, 3, 448.0),
        _float("float8_e5m2", 8, 5, 2, 57344.0),
        _integer("int8", 8),
        _integer("int4", 4),
    )
}
_OTHER_NAMES = {
    "fp32": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3",
    "fp8_e4m3": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
}
FORMAT_NAMES = tuple(_FORMATS)


def number_format(dtype: str) -> Format:
    """Return the format called ``dtype`` (``torch.`` and common short names are understood).

    Raises
    ------
    InputError
        For an unknown name, with the nearest known one.
    """
    name = dtype.strip().lower().removeprefix("torch.")
    name = _OTHER_NAMES.get(name, name)
    if name in _FORMATS:
        return _FORMATS[name]
    near = difflib.get_close_matches(name, [*_FORMATS, *_OTHER_NAMES], n=1)
    remedy = f"did you mean {near[0]}?" if near else "use one of these"
    raise InputError(problem(f"a dtype out of {', '.join(_FORMATS)}", repr(dtype), remedy))


def unit_roundoff(dtype: str) -> float:
    """Return u(dtype), e.g. 2^-11 for float16.

    Raises
    ------
    InputError
        For an unknown dtype.
    """
    return number_format(dtype).unit_roundoff


def precision_of(dtype: str, radius: float) -> float:
    """Return eps = u(dtype) * radius, the paper's convention (M26).

    Raises
    ------
    InputError
        For an unknown dtype, or a radius that is not above 0.
    """
    if not (math.isfinite(radius) and radius > 0):
        raise InputError(
            problem("a radius that is a finite number above 0", f"{radius}", "pass a positive radius")
        )
    return unit_roundoff(dtype) * radius
