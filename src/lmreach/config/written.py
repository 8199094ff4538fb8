"""How values are written in words, on the command line and in files: 5m, 10 %, none, q=4."""

import re
from collections.abc import Sequence
from typing import Any, Protocol

from lmreach.errors import InputError, problem

__all__ = ["as_written", "levels", "seconds", "share", "spoken_seconds"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class _Word(Protocol):
    value: str


def as_written(_type: Any, words: Sequence[_Word]) -> str:
    """Hand a word from the command line on as it stands: the config reads it."""
    return words[0].value


def seconds(written: Any) -> Any:
    """Read a budget such as 300, 90s, 5m, 1.5h or none; what is no text is left as it is.

    Raises
    ------
    InputError
        It is not of that form, or not above 0.
    """
    if not isinstance(written, str):
        return written
    if written.strip().lower() == "none":
        return None
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|m|min|h|)\s*", written.lower())
    if match is None or float(match[1]) == 0:
        raise InputError(
            problem("a budget such as 90s, 5m, 1.5h or none", repr(written), "write a number and a unit")
        )
    return float(match[1]) * _UNITS[match[2]]


def spoken_seconds(value: float | None) -> str:
    """Write seconds so that `seconds` reads them back: 90s, 5m, 1h or none."""
    if value is None:
        return "none"
    for unit in ("h", "m"):
        if value % _UNITS[unit] == 0:
            return f"{value / _UNITS[unit]:g}{unit}"
    return f"{value!r}s".replace(".0s", "s")


def share(written: Any) -> Any:
    """Read a relative width such as 0.1, 10% or none; what is no text is left as it is.

    Raises
    ------
    InputError
        It is not of that form, or not above 0.
    """
    if not isinstance(written, str):
        return written
    if written.strip().lower() == "none":
        return None
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", written)
    if match is None or float(match[1]) == 0:
        raise InputError(problem("a width such as 0.1, 10% or none", repr(written), "write a number above 0"))
    return float(match[1]) / (100 if match[2] else 1)


def levels(written: Any) -> Any:
    """Read the values per coordinate of a grid, ``q=4`` or ``4``; what is no text is left as it is.

    Raises
    ------
    InputError
        It is not of that form.
    """
    if not isinstance(written, str):
        return written
    try:
        return int(written.removeprefix("q="))
    except ValueError:
        expected = "values per coordinate such as --grid q=4"
        raise InputError(problem(expected, repr(written), "write a whole number")) from None
