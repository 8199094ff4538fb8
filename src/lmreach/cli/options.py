"""Options that several commands share, and how their words are read."""

from typing import Annotated

from cyclopts import Parameter

from lmreach.config import CramConfig, LoadConfig
from lmreach.config.written import seconds, share

__all__ = ["Cram", "Json", "Load", "NoProgress", "Out", "Quiet", "TargetKinds", "Vectors", "seconds", "share"]

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
    str | None,
    Parameter(
        name=["--out", "-o"],
        help="Run folder; default: a new one in lmreach-runs/. A run of the same command there goes on.",
    ),
]
Fresh = Annotated[
    bool,
    Parameter(
        name="--fresh",
        negative="",
        help="Begin anew although --out holds a run, which is moved to NAME.before-1 beside it.",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON.")]
NoProgress = Annotated[bool, Parameter(name="--no-progress", negative="", help="Say nothing while running.")]
Quiet = Annotated[bool, Parameter(name=["-q", "--quiet"], negative="", help="Print the report's path only.")]
