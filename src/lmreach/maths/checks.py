"""Checks of the numbers handed to the theory: each returns the plain value or says what to change."""

import math
import operator
from typing import SupportsFloat, SupportsIndex

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from lmreach.errors import InputError, problem


def whole(name: str, value: SupportsIndex, *, least: int = 1) -> int:
    """Return ``value`` as an int of at least ``least``.

    Raises
    ------
    InputError
        For a value that is no integer, or one that is too small.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(problem(f"{name} to be an integer", repr(value), "pass a whole number")) from None
    if number < least:
        raise InputError(problem(f"{name} of at least {least}", str(number), f"pass a larger {name}"))
    return number


def positive(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a finite float above 0.

    Raises
    ------
    InputError
        For 0, a negative number, NaN or infinity.
    """
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(
            problem(f"{name} to be a finite number above 0", f"{number}", f"pass a positive {name}")
        )
    return number


def fraction(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a float in (0, 1].

    Raises
    ------
    InputError
        For anything else, NaN included.
    """
    number = float(value)
    if not 0 < number <= 1:
        raise InputError(problem(f"{name} in (0, 1]", f"{number}", "pass a share such as 0.5"))
    return number


def vector(name: str, values: ArrayLike, *, width: int | None = None) -> Float[np.ndarray, " d"]:
    """Return ``values`` as a read-only float64 array of shape (width,) with finite entries.

    Raises
    ------
    InputError
        For another number of axes, another length, no entries, or NaN and infinity inside.
    """
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or (width is not None and array.size != width):
        wanted = "(d,) with d >= 1" if width is None else f"({width},)"
        raise InputError(
            problem(f"{name} of shape {wanted}", f"shape {array.shape}", "pass one number per coordinate")
        )
    if not np.isfinite(array).all():
        first = int(np.flatnonzero(~np.isfinite(array))[0])
        got = f"{array[first]} at coordinate {first}"
        raise InputError(
            problem(f"{name} with finite entries", got, "look for overflow where it was measured")
        )
    array.flags.writeable = False
    return array


def interval(
    name: str, lo: ArrayLike, hi: ArrayLike, *, width: int | None = None
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Return the two corners of a box, lo <= hi in every coordinate.

    Raises
    ------
    InputError
        As `vector`, or when a lower corner lies above the upper one.
    """
    low = vector(f"{name} (lower corner)", lo, width=width)
    high = vector(f"{name} (upper corner)", hi, width=low.size)
    if (low > high).any():
        first = int(np.flatnonzero(low > high)[0])
        got = f"{low[first]} above {high[first]} at coordinate {first}"
        raise InputError(problem(f"{name} with lo <= hi everywhere", got, "swap the corners"))
    return low, high
