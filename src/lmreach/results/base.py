"""What every part of a result is made of: frozen values that JSON can hold, and one shape for an estimate."""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict

__all__ = ["Columns", "FittedCurve", "Floats", "Interval", "Ints", "Numbers", "Result", "Share", "Words"]


def _listed(value: object) -> object:
    """Return an array as the list it holds; anything else as it is."""
    to_list: Callable[[], object] | None = getattr(value, "tolist", None)
    return value if to_list is None else to_list()


def _said(value: object) -> object:
    """Return what a statistic's ``words()`` says; text as it is."""
    return value() if callable(value) else value


Floats = Annotated[tuple[float, ...], BeforeValidator(_listed)]
Ints = Annotated[tuple[int, ...], BeforeValidator(_listed)]
Numbers = Annotated[tuple[int | float, ...], BeforeValidator(_listed)]
"""Whole numbers stay whole, so that a page shows 12 tokens and not 12.0."""
Words = Annotated[str, BeforeValidator(_said)]


class Result(BaseModel):
    """A part of a result: frozen, without unknown keys, NaN or infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, from_attributes=True)

    @classmethod
    def from_object(cls, source: object, **more: Any) -> Self:
        """Return the part that an object holds in attributes of the same names; ``more``: fields beside."""
        if not more:
            return cls.model_validate(source)
        missing = object()
        held = {name: getattr(source, name, missing) for name in cls.model_fields if name not in more}
        return cls.model_validate({**{k: v for k, v in held.items() if v is not missing}, **more})


class Interval(Result):
    """An estimate with its interval: the one shape of n50, slopes, ratios and whatever else has an error.

    Attributes
    ----------
    value
        The estimate. None: not known, as ``verdict`` says.
    low, high
        Ends of the interval. None: that end is not known.
    verdict
        ``estimated``, or why there is no such number. Of n50: ``above_limit``, ``below_one``,
        ``below_first``, ``separated``, ``rises``, ``one_length``, ``curve_does_not_fit``, ``no_data``; of a
        slope: ``too_few_points``, ``censored``; of a cell's share: ``below``, ``at_most``, ``at_least``,
        ``unknown``.
    confidence
        Level of the interval. None: not stated.
    words
        The result as a person would say it. Empty: not said.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    verdict: str = "estimated"
    confidence: float | None = None
    words: Words = ""

    @property
    def relative_width(self) -> float | None:
        """Interval over value, or over the middle of a bracket; None where an end is open."""
        if self.low is None or self.high is None:
            return None
        middle = (self.low + self.high) / 2 if self.value is None else self.value
        return (self.high - self.low) / middle if middle > 0 else None


class Share(Result):
    """A share of things counted, with its exact (Clopper-Pearson) interval.

    Attributes
    ----------
    count, of
        How many, of how many.
    effective
        Number of independent things that the interval supposes. None: ``of``.
    """

    count: int
    of: int
    share: float
    low: float
    high: float
    effective: float | None = None


class FittedCurve(Result):
    """A curve fitted to shares at single lengths; see `lmreach.stats.posterior.CurveFit`.

    Attributes
    ----------
    n90, n10, width
        Lengths that nine tenths and one tenth of the strings reach, and n10 - n90, in tokens. None: no curve
        was fitted.
    lapse
        Share lost at any length. None: no curve was fitted.
    bracket
        Longest length with all strings and shortest with none. None: the lengths are not separated so.
    """

    shape: str
    n90: Interval | None = None
    n10: Interval | None = None
    width: Interval | None = None
    lapse: Interval | None = None
    bracket: tuple[float, float] | None = None


class Columns(Result):
    """A curve in columns: a share and its pointwise interval at each length.

    Attributes
    ----------
    n
        Lengths in tokens.
    """

    n: Numbers
    share: Floats
    low: Floats
    high: Floats
