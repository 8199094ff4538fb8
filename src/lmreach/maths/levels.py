"""The values that a small number format can hold, each with its bit pattern: nothing else is stored.

A format of at most 16 bits is a table. Rounding, membership, counting and storage all read the same table, so
that they cannot disagree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, Int

from lmreach.errors import InputError, problem

__all__ = ["LEVELS", "Levels", "levels", "pack", "unpack"]


@dataclass(frozen=True, eq=False)
class Levels:
    """One number format.

    Attributes
    ----------
    name
        ``float16``, ``bfloat16``, ``e4m3``, ``e5m2``, ``int8``, ``int4``, ``int3``, ``int2`` or ``sign``.
    bits
        Of one stored value.
    values
        The q distinct finite values in growing order, shape (q,), float64. Evenly spaced formats use all
        2^b patterns, symmetric about 0: the odd numbers from -(2^b - 1) to 2^b - 1.
    codes
        Their bit patterns, shape (q,), int64; of +0 and -0 the former.
    """

    name: str
    bits: int
    values: Float[np.ndarray, " q"]
    codes: Int[np.ndarray, " q"]

    @property
    def count(self) -> int:
        """Distinct finite values, q."""
        return len(self.values)

    @property
    def largest(self) -> float:
        """Largest value; the smallest is its negative."""
        return float(self.values[-1])

    @property
    def rms(self) -> float:
        """Root mean square of all values."""
        return float(np.sqrt(np.mean(self.values**2)))

    def encode(self, values: Float[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
        """Return the bit patterns of values that the format holds.

        Raises
        ------
        InputError
            Naming the first value that it does not hold; nothing is rounded here.
        """
        places = np.searchsorted(self.values, values).clip(max=self.count - 1)
        wrong = np.argwhere(~(self.values[places] == values))
        if len(wrong):
            value = float(np.asarray(values)[tuple(wrong[0])])
            raise InputError(problem(f"values of {self.name}", f"{value!r}", "round them to it first"))
        return np.asarray(self.codes[places])

    def decode(self, codes: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Return the values of bit patterns.

        Raises
        ------
        InputError
            A pattern that stands for no finite value (infinity, NaN, -0).
        """
        order = np.argsort(self.codes)
        places = order[np.searchsorted(self.codes[order], codes).clip(max=self.count - 1)]
        wrong = np.argwhere(self.codes[places] != codes)
        if len(wrong):
            pattern = int(np.asarray(codes)[tuple(wrong[0])])
            raise InputError(
                problem(f"bit patterns of {self.name} numbers", f"{pattern:#x}", "store it again")
            )
        return np.asarray(self.values[places])


def pack(codes: Int[np.ndarray, "*shape"], bits: int) -> Int[np.ndarray, " bytes"]:
    """Return codes of ``bits`` bits one after another as bytes, the highest bit first."""
    flat = np.asarray(codes, dtype=np.int64).reshape(-1, 1)
    return np.packbits((flat >> np.arange(bits)[::-1] & 1).astype(np.uint8).ravel())


def unpack(data: Int[np.ndarray, " bytes"], bits: int, count: int) -> Int[np.ndarray, " count"]:
    """Return ``count`` codes of ``bits`` bits, see `pack`.

    Raises
    ------
    InputError
        Fewer or more bytes than that takes.
    """
    need = -(-bits * count // 8)
    if data.ndim != 1 or data.dtype != np.uint8 or len(data) != need:
        got = f"{data.dtype} of shape {data.shape}"
        raise InputError(problem(f"{need} bytes for {count} values of {bits} bits", got, "store it again"))
    digits = np.unpackbits(data)[: bits * count].reshape(count, bits).astype(np.int64)
    return np.asarray(digits @ (1 << np.arange(bits, dtype=np.int64))[::-1])


def _floats(name: str, exponent_bits: int, fraction_bits: int, *, infinite: bool = True) -> Levels:
    """Return an IEEE-like format; not ``infinite``: of the top binade only one pattern is no number."""
    bits = 1 + exponent_bits + fraction_bits
    positive = np.arange(2 ** (bits - 1), dtype=np.int64)
    exponent, fraction = positive >> fraction_bits, positive & (2**fraction_bits - 1)
    top = exponent == 2**exponent_bits - 1
    positive = positive[~(top if infinite else top & (fraction == 2**fraction_bits - 1))]
    exponent, fraction = positive >> fraction_bits, positive & (2**fraction_bits - 1)
    leading = fraction / 2**fraction_bits + (exponent > 0)
    values = np.ldexp(leading, np.maximum(exponent, 1) - (2 ** (exponent_bits - 1) - 1))
    negative = (positive[1:] | 1 << (bits - 1))[::-1]
    return Levels(name, bits, np.concatenate([-values[:0:-1], values]), np.concatenate([negative, positive]))


def _even(name: str, bits: int) -> Levels:
    codes = np.arange(2**bits, dtype=np.int64)
    return Levels(name, bits, 2.0 * codes + 1 - 2**bits, codes)


LEVELS: dict[str, Callable[[], Levels]] = {
    "float16": lambda: _floats("float16", 5, 10),
    "bfloat16": lambda: _floats("bfloat16", 8, 7),
    # The "fn" form in use everywhere: no infinities, one NaN per sign.
    "e4m3": lambda: _floats("e4m3", 4, 3, infinite=False),
    "e5m2": lambda: _floats("e5m2", 5, 2),
    "int8": lambda: _even("int8", 8),
    "int4": lambda: _even("int4", 4),
    "int3": lambda: _even("int3", 3),
    "int2": lambda: _even("int2", 2),
    "sign": lambda: _even("sign", 1),
}


@cache
def levels(name: str) -> Levels:
    """Return the format of that name.

    Raises
    ------
    InputError
        For an unknown name.
    """
    if name not in LEVELS:
        raise InputError(problem(f"a format of {', '.join(LEVELS)}", repr(name), "choose one of these"))
    return LEVELS[name]()
