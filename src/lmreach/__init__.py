"""lmreach: which outputs a causal language model can be made to produce, how many, and how long.

Importing this package imports neither torch nor transformers: public names load on first use. It sets
``GOMP_SPINCOUNT`` in the environment where nobody has set how idle OpenMP threads wait. Every command
of the command line is one of these functions::

    study = lmreach.study("builtin:verse", budget="2m")
    study.n50["random", 4], study.slope["random"], study.limits.tightest("format")
    study.plot(), study.to_pandas()
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"


def _let_idle_threads_sleep() -> None:
    """Bound how long an OpenMP thread spins while it waits for the others.

    GNU's OpenMP spins for milliseconds; where other programs run, the thread that is waited for has no core
    meanwhile, and a step took up to 40 times as long (docs/benchmarks.md). It is read as torch is loaded.
    """
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "3000"


_let_idle_threads_sleep()

if TYPE_CHECKING:
    from lmreach.config import BoundsConfig as BoundsConfig
    from lmreach.config import CellsConfig as CellsConfig
    from lmreach.config import CensusConfig as CensusConfig
    from lmreach.config import CopyConfig as CopyConfig
    from lmreach.config import CopyTrainConfig as CopyTrainConfig
    from lmreach.config import CramPlan as CramPlan
    from lmreach.config import CramRunConfig as CramRunConfig
    from lmreach.config import JudgeConfig as JudgeConfig
    from lmreach.config import LoadConfig as LoadConfig
    from lmreach.config import OptimiserConfig as OptimiserConfig
    from lmreach.config import ReachableConfig as ReachableConfig
    from lmreach.config import StudyConfig as StudyConfig
    from lmreach.config import SupportConfig as SupportConfig
    from lmreach.config import VerifyConfig as VerifyConfig
    from lmreach.engine.run import open_run as open_run
    from lmreach.errors import LmreachError as LmreachError
    from lmreach.maths.bounds import limits as limits
    from lmreach.models.facts import ModelFacts as ModelFacts
    from lmreach.models.load import load as load
    from lmreach.models.loaded import LoadedModel as LoadedModel
    from lmreach.results.answers import CellsResults as CellsResults
    from lmreach.results.answers import ReachabilityResults as ReachabilityResults
    from lmreach.results.bounds import BoundsResults as BoundsResults
    from lmreach.results.census import CensusResults as CensusResults
    from lmreach.results.certificates import DecodedCertificate as DecodedCertificate
    from lmreach.results.certificates import Judgement as Judgement
    from lmreach.results.certificates import Verification as Verification
    from lmreach.results.compare import Comparison as Comparison
    from lmreach.results.copying import CopyResults as CopyResults
    from lmreach.results.file import open_results as open_results
    from lmreach.results.plan import PlanResults as PlanResults
    from lmreach.results.status import RunStatus as RunStatus
    from lmreach.results.study import StudyResults as StudyResults
    from lmreach.results.support import SupportResults as SupportResults
    from lmreach.runs.bounds import bounds as bounds
    from lmreach.runs.cells.run import cells as cells
    from lmreach.runs.census.call import census as census
    from lmreach.runs.census.reachability import reachability as reachability
    from lmreach.runs.certificates.call import decode as decode
    from lmreach.runs.certificates.call import judge as judge
    from lmreach.runs.certificates.call import verify as verify
    from lmreach.runs.compare.compare import compare as compare
    from lmreach.runs.copying.call import copy as copy
    from lmreach.runs.status import status as status
    from lmreach.runs.study.call import cram as cram
    from lmreach.runs.study.call import study as study
    from lmreach.runs.study.plan import plan as plan
    from lmreach.runs.support import support as support
    from lmreach.runs.targets import targets as targets

# Where each of them stands, for the first use; a test holds this to the imports above, which checkers read.
_PUBLIC = {
    "BoundsConfig": "lmreach.config",
    "BoundsResults": "lmreach.results.bounds",
    "CellsConfig": "lmreach.config",
    "CellsResults": "lmreach.results.answers",
    "CensusConfig": "lmreach.config",
    "CensusResults": "lmreach.results.census",
    "Comparison": "lmreach.results.compare",
    "CopyConfig": "lmreach.config",
    "CopyResults": "lmreach.results.copying",
    "CopyTrainConfig": "lmreach.config",
    "CramPlan": "lmreach.config",
    "CramRunConfig": "lmreach.config",
    "DecodedCertificate": "lmreach.results.certificates",
    "JudgeConfig": "lmreach.config",
    "Judgement": "lmreach.results.certificates",
    "LmreachError": "lmreach.errors",
    "LoadConfig": "lmreach.config",
    "LoadedModel": "lmreach.models.loaded",
    "ModelFacts": "lmreach.models.facts",
    "OptimiserConfig": "lmreach.config",
    "PlanResults": "lmreach.results.plan",
    "ReachabilityResults": "lmreach.results.answers",
    "ReachableConfig": "lmreach.config",
    "RunStatus": "lmreach.results.status",
    "StudyConfig": "lmreach.config",
    "StudyResults": "lmreach.results.study",
    "SupportConfig": "lmreach.config",
    "SupportResults": "lmreach.results.support",
    "Verification": "lmreach.results.certificates",
    "VerifyConfig": "lmreach.config",
    "bounds": "lmreach.runs.bounds",
    "cells": "lmreach.runs.cells.run",
    "census": "lmreach.runs.census.call",
    "compare": "lmreach.runs.compare.compare",
    "copy": "lmreach.runs.copying.call",
    "cram": "lmreach.runs.study.call",
    "decode": "lmreach.runs.certificates.call",
    "judge": "lmreach.runs.certificates.call",
    "limits": "lmreach.maths.bounds",
    "load": "lmreach.models.load",
    "open_results": "lmreach.results.file",
    "open_run": "lmreach.engine.run",
    "plan": "lmreach.runs.study.plan",
    "reachability": "lmreach.runs.census.reachability",
    "status": "lmreach.runs.status",
    "study": "lmreach.runs.study.call",
    "support": "lmreach.runs.support",
    "targets": "lmreach.runs.targets",
    "verify": "lmreach.runs.certificates.call",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'lmreach' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
