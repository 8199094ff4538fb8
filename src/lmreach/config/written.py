"""How values are written in words, on the command line and in files: 5m, 10 %, none, q=4."""

import re
from collections.abc import Sequence
from typing import Any, Protocol

from lmreach.errors import InputError, problem

__all__ = [
    "LARGEST_ID",
    "as_written",
    "ids_of",
    "levels",
    "seconds",
    "share",
    "shortened",
    "spoken_seconds",
    "spoken_share",
    "whole_number",
]

LARGEST_ID = 2**31 - 1
"""Tokenizers hold ids in 32 bits."""

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHOWN = 40  # characters of a word in a message


class _Word(Protocol):
    value: str


def as_written(_type: Any, words: Sequence[_Word]) -> str:
    """Hand a word from the command line on as it stands: the config reads it."""
    return words[0].value


def seconds(written: Any) -> Any:
    """Read a budget such as 90s, 5m, 1.5h or none; what is no text is left as it is.

    Raises
    ------
    InputError
        It is not of that form, has no unit, or is not above 0.
    """
    if not isinstance(written, str):
        return written
    if written.strip().lower() == "none":
        return None
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|m|min|h|)\s*", written.lower())
    if match is None or float(match[1]) == 0 or not match[2]:
        number = match is not None and not match[2] and float(match[1]) > 0
        remedy = f"write {written.strip()}s or {written.strip()}m" if number else "write a number and a unit"
        raise InputError(problem("a budget such as 90s, 5m, 1.5h or none", repr(written), remedy))
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


def spoken_share(value: float | None) -> str:
    """Write a share so that `share` reads it back."""
    return "none" if value is None else repr(value)


def levels(written: Any) -> Any:
    """Read the values per coordinate of a grid, ``q=4`` or ``4``; what is no text is left as it is.

    Raises
    ------
    InputError
        It is not of that form.
    """
    if not isinstance(written, str):
        return written
    number = whole_number(written.removeprefix("q="))
    if number is None:
        expected = "values per coordinate such as --grid q=4"
        raise InputError(problem(expected, repr(written), "write a whole number"))
    return number


def whole_number(word: str) -> int | None:
    """Return a whole number in decimal digits, or None: neither ``1_0`` nor digits of other scripts."""
    return int(word) if _WHOLE.fullmatch(word) and len(word) <= _SHOWN else None


def ids_of(text: str, where: str) -> list[int]:
    """Read ids separated by spaces or commas.

    Parameters
    ----------
    where
        Where the text stands, for the message, e.g. ``line 3 of 'a.ids'``.

    Raises
    ------
    InputError
        A word that is no whole number, or one that no vocabulary reaches; the message names it.
    """
    found = []
    for word in text.replace(",", " ").split():
        number = whole_number(word)
        if number is None or abs(number) > LARGEST_ID:
            got = f"{shortened(word)!r} in {where}"
            expected = "whole numbers" if number is None else f"ids of at most {LARGEST_ID}"
            raise InputError(problem(expected, got, "write ids separated by spaces or commas"))
        found.append(number)
    return found


def shortened(word: str) -> str:
    """Return a word as messages show it."""
    return word if len(word) <= _SHOWN else word[: _SHOWN - 1] + "…"
