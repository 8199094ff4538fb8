"""Options that several commands share."""

from typing import Annotated

from cyclopts import Parameter

from lmreach.config import CensusConfig, CramRunConfig, LoadConfig, StudyConfig, VerifyConfig
from lmreach.config.written import seconds

__all__ = [
    "Census",
    "CramRun",
    "Json",
    "Load",
    "NoProgress",
    "Out",
    "Quiet",
    "Study",
    "Verify",
    "seconds",
]

# Settings are options of their own, under the names, defaults and help that the configs give them.
_FLAT = Parameter(name="*")
Census = Annotated[CensusConfig, _FLAT]
CramRun = Annotated[CramRunConfig, _FLAT]
Load = Annotated[LoadConfig, Parameter(name="*", group="Model options")]
Study = Annotated[StudyConfig, _FLAT]
Verify = Annotated[VerifyConfig, _FLAT]

Out = Annotated[
    str | None, Parameter(name=["--out", "-o"], help="Run folder; default: a new one in lmreach-runs/.")
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON.")]
NoProgress = Annotated[bool, Parameter(name="--no-progress", negative="", help="Say nothing while running.")]
Quiet = Annotated[bool, Parameter(name=["-q", "--quiet"], negative="", help="Print the report's path only.")]
