"""Options that several commands share."""

from typing import Annotated

from cyclopts import Parameter

from lmreach.config import (
    BoundsConfig,
    CellsConfig,
    CensusConfig,
    CopyPlan,
    CopyTrainConfig,
    CramRunConfig,
    JudgeConfig,
    LoadConfig,
    StudyConfig,
    SupportConfig,
    VerifyConfig,
)
from lmreach.config.executor import On
from lmreach.config.written import seconds

__all__ = [
    "Bounds",
    "Cells",
    "Census",
    "Copy",
    "CopyTrain",
    "CramRun",
    "Fresh",
    "Json",
    "Judge",
    "Load",
    "NoProgress",
    "On",
    "Open",
    "Out",
    "Quiet",
    "Study",
    "Support",
    "Verify",
    "seconds",
]

# Settings are options of their own, under the names, defaults and help that the configs give them.
_FLAT = Parameter(name="*")
Bounds = Annotated[BoundsConfig, _FLAT]
Cells = Annotated[CellsConfig, _FLAT]
Copy = Annotated[CopyPlan, _FLAT]
CopyTrain = Annotated[CopyTrainConfig, Parameter(name="*", group="Training options", show_default=False)]
Census = Annotated[CensusConfig, _FLAT]
CramRun = Annotated[CramRunConfig, _FLAT]
Judge = Annotated[JudgeConfig, _FLAT]
Load = Annotated[LoadConfig, Parameter(name="*", group="Model options")]
Study = Annotated[StudyConfig, _FLAT]
Support = Annotated[SupportConfig, _FLAT]
Verify = Annotated[VerifyConfig, _FLAT]

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
Open = Annotated[
    bool, Parameter(name="--open", negative="", help="Open the page in the web browser at the end.")
]
NoProgress = Annotated[bool, Parameter(name="--no-progress", negative="", help="Say nothing while running.")]
Quiet = Annotated[bool, Parameter(name=["-q", "--quiet"], negative="", help="Print the report's path only.")]
