"""The calculator of the page: constants of each number format, so that the browser only has to multiply.

With c nats per coordinate a vector of width d tells exp(c d) apart, so C = c d / ln V tokens (Corollary 4.6
of the paper). Two c are offered: the exact count of a format's finite values, which assumes nothing, and the
paper's ball, ln(1 + 2 / u).
"""

import math
from dataclasses import asdict, dataclass

from markupsafe import Markup

from lmreach.maths.precision import FORMAT_NAMES, number_format
from lmreach.report.kit.embed import script_text
from lmreach.results.run import Model

__all__ = ["Calculator", "FormatConstants", "calculator", "format_constants"]


@dataclass(frozen=True, slots=True)
class FormatConstants:
    """Nats per coordinate of one number format: of its finite values, and of the paper's ball."""

    name: str
    count: float
    ball: float


@dataclass(frozen=True, slots=True)
class Calculator:
    """What the calculator starts with, and its constants as JSON."""

    width: int
    vocab: int
    formats: tuple[FormatConstants, ...]
    constants: Markup


def format_constants() -> tuple[FormatConstants, ...]:
    """Return the constants of every number format."""
    return tuple(
        FormatConstants(one.name, math.log(one.finite_values), math.log1p(2 / one.unit_roundoff))
        for one in map(number_format, FORMAT_NAMES)
    )


def calculator(model: Model) -> Calculator:
    """Return the calculator of a model's page."""
    formats = format_constants()
    return Calculator(model.width, model.usable, formats, script_text([asdict(one) for one in formats]))
