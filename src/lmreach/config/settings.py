"""What every config is made of: the frozen base, and the values that several configs take."""

from collections.abc import Iterable
from os import PathLike, fspath
from typing import Annotated, Any, ClassVar, Literal

from cyclopts import Parameter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lmreach.config.written import as_written, seconds, share, spoken_seconds, spoken_share

__all__ = [
    "Asked",
    "Bos",
    "Count",
    "DType",
    "File",
    "Protocol",
    "Seconds",
    "Seed",
    "Settings",
    "Share",
    "several",
]

Protocol = Literal["frontier", "fixed", "published"]
Bos = Literal["none", "before", "after"]
DType = Literal["float32", "float16", "bfloat16"]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]

# On a command line and in a file written in words, such as 5m or 10%; in Python also as numbers.
Seconds = Annotated[
    Annotated[float, Field(gt=0)] | None,
    BeforeValidator(seconds),
    Parameter(converter=as_written, show_default=spoken_seconds, metavar="TIME"),
]
Share = Annotated[
    Annotated[float, Field(gt=0)] | None,
    BeforeValidator(share),
    Parameter(converter=as_written, show_default=spoken_share, metavar="SHARE"),
]


def _path(value: Any) -> Any:
    return fspath(value) if isinstance(value, PathLike) else value


# The name of a file or folder; in Python also a `Path`.
File = Annotated[str, BeforeValidator(_path)]

# What a call is about, such as its model: kept with a run, and no option of its own.
Asked = Annotated[str, Parameter(parse=False)]


class Settings(BaseModel):
    """Base: frozen, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of_a_preset: ClassVar[bool] = False
    """Whether settings that are not given are those of a preset, not the defaults of the class."""


def several(*names: str) -> Parameter:
    """Return how an option that takes several values is written: ``-m 1 2 4``.

    Parameters
    ----------
    names
        Its names on the command line; none: that of the field.
    """
    return Parameter(
        name=names or None, consume_multiple=(1, None), negative_iterable=(), show_default=_side_by_side
    )


def _side_by_side(values: Iterable[Any]) -> str:
    return " ".join(map(str, values)) or "none"
