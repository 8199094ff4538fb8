"""What prompt vectors are held to, as it is asked for: ``box``, ``ball:10``, ``subspace:64+int4``."""

import difflib
import math
import re
from dataclasses import dataclass
from typing import Any

from lmreach.errors import InputError, problem

__all__ = ["FORMATS", "Within", "canonical", "parse_within"]

FORMATS = ("float16", "bfloat16", "e4m3", "e5m2", "int8", "int4", "int3", "int2", "sign")
"""Number formats that coordinates can be held to."""

_BETWEEN = re.compile(r"(?<!\de)\+")  # of two parts; not that of 1e+6
_WHOLE_SCALE = ("float16", "bfloat16")  # stored as they are: these have the range, so no scale
_WORDS = ("box", "ball", "subspace", *FORMATS)
_EXAMPLES = "box, ball:10, subspace:64, int4, int4:vector, subspace:64+sign"


@dataclass(frozen=True, slots=True)
class Within:
    """One premise.

    Attributes
    ----------
    region
        ``box`` (coordinate ranges of real inputs), ``ball`` (norm up to ``radius`` times the longest real
        input's) or None.
    radius
        Of the ball, in units of the longest real input.
    free
        Coordinates of a random subspace; None: all of the space.
    seed
        Of the subspace.
    format
        A name in `FORMATS`, or None: float32.
    vector_scale
        Whether each vector brings its own scale, whose bits count; else one power of two serves the run.
    """

    region: str | None = None
    radius: float | None = None
    free: int | None = None
    seed: int = 0
    format: str | None = None
    vector_scale: bool = False

    @property
    def text(self) -> str:
        """The premise as it is written: every spelling of it gives this one."""
        parts = []
        if self.region is not None:
            parts.append(self.region if self.radius is None else f"{self.region}:{_plain(self.radius)}")
        if self.free is not None:
            parts.append(f"subspace:{self.free}" + (f":{self.seed}" if self.seed else ""))
        if self.format is not None:
            parts.append(self.format + (":vector" if self.vector_scale else ""))
        return "+".join(parts)


def parse_within(text: str) -> Within:
    """Read a premise.

    Raises
    ------
    InputError
        An unknown word, a number that is missing or out of range, or parts that do not go together.
    """
    found = Within()
    for part in _BETWEEN.split(text.strip().lower()):
        found = _joined(found, _read_part(part.strip()), text)
    return found


def canonical(written: Any) -> Any:
    """Return a premise in its one spelling; empty (or none) stays empty, what is no text is left as it is.

    Raises
    ------
    InputError
        As `parse_within`.
    """
    if not isinstance(written, str):
        return written
    return "" if written.strip().lower() in ("", "none") else parse_within(written).text


def _joined(left: Within, right: Within, text: str) -> Within:
    if left == Within():
        return right
    if left.free is None or left.format is not None or right.format is None:
        raise InputError(
            problem("one premise, or a subspace and a format", repr(text), f"write e.g. {_EXAMPLES}")
        )
    return Within(free=left.free, seed=left.seed, format=right.format, vector_scale=right.vector_scale)


def _read_part(part: str) -> Within:
    word, *rest = part.split(":")
    word = {"float8_e4m3": "e4m3", "float8_e5m2": "e5m2"}.get(word, word)
    if word == "box" and not rest:
        return Within("box")
    if word == "ball" and len(rest) == 1:
        return Within("ball", radius=_radius(rest[0]))
    if word == "subspace" and len(rest) in (1, 2):
        free = _whole("coordinates of the subspace", rest[0], least=1)
        return Within(free=free, seed=_whole("a seed", rest[1], least=0) if len(rest) == 2 else 0)
    if word in FORMATS and rest in ([], ["vector"]):
        if rest and word in _WHOLE_SCALE:
            got = f"a scale per vector for {word}"
            raise InputError(problem("a format that needs a scale", got, f"use {word} as it is"))
        return Within(format=word, vector_scale=bool(rest))
    near = difflib.get_close_matches(word, _WORDS, n=1)
    remedy = f"did you mean {near[0]}?" if near and near[0] != word else f"write e.g. {_EXAMPLES}"
    raise InputError(problem("--within box, ball:R, subspace:K or a format", repr(part), remedy))


def _plain(radius: float) -> str:
    """Write a radius so that it is read back as it is; a plus sign would part it."""
    return f"{radius:.12g}".replace("e+", "e")


def _radius(text: str) -> float:
    try:
        radius = float(text)
    except ValueError:
        radius = math.nan
    if not (math.isfinite(radius) and radius > 0):
        raise InputError(problem("a radius above 0, in longest real inputs", repr(text), "use e.g. ball:10"))
    return radius


def _whole(what: str, text: str, *, least: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise InputError(
            problem(f"{what}, a whole number from {least}", repr(text), f"write e.g. {_EXAMPLES}")
        )
    return int(text)
