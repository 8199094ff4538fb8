"""Options that several commands share, and how their words are read."""

import re
from typing import Annotated

from cyclopts import Parameter

from lmreach.config import CramConfig, LoadConfig
from lmreach.errors import InputError, problem

Load = Annotated[LoadConfig, Parameter(name="*", group="Model options")]
Cram = Annotated[CramConfig, Parameter(name="*", group="Cramming options", negative_iterable=())]
Vectors = Annotated[
    list[int] | None,
    Parameter(
        name=["-m", "--vectors"],
        consume_multiple=True,
        negative_iterable=(),
        help="Numbers of prompt vectors, e.g. -m 1 2 4.",
    ),
]
TargetKinds = Annotated[
    list[str] | None,
    Parameter(
        name="--targets",
        consume_multiple=True,
        negative_iterable=(),
        help="Kinds of target strings: random, self, words[:FILE], text:FILE, ids:FILE, dataset:NAME.",
    ),
]
Out = Annotated[
    str | None, Parameter(name=["--out", "-o"], help="Run folder; default: a new one in lmreach-runs/.")
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON.")]
NoProgress = Annotated[bool, Parameter(name="--no-progress", negative="", help="Say nothing while running.")]
Quiet = Annotated[bool, Parameter(name=["-q", "--quiet"], negative="", help="Print the report's path only.")]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float | None:
    """Read a budget such as 300, 90s, 5m, 1.5h or none.

    Raises
    ------
    InputError
        It is not of that form, or not above 0.
    """
    if text.strip().lower() == "none":
        return None
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(s|m|min|h|)\s*", text.lower())
    if match is None or float(match[1]) == 0:
        raise InputError(
            problem("a budget such as 90s, 5m, 1.5h or none", repr(text), "write a number and a unit")
        )
    return float(match[1]) * _UNITS[match[2]]


def share(text: str) -> float | None:
    """Read a relative width such as 0.1, 10% or none.

    Raises
    ------
    InputError
        It is not of that form, or not above 0.
    """
    if text.strip().lower() == "none":
        return None
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", text)
    if match is None or float(match[1]) == 0:
        raise InputError(problem("a width such as 0.1, 10% or none", repr(text), "write a number above 0"))
    return float(match[1]) / (100 if match[2] else 1)
