"""lmreach: which outputs a causal language model can be made to produce, how many, and how long.

Importing this package imports neither torch nor transformers: public names load on first use. It sets
``GOMP_SPINCOUNT`` in the environment where nobody has set how idle OpenMP threads wait.
"""

import os
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def _let_idle_threads_sleep() -> None:
    """Bound how long an OpenMP thread spins while it waits for the others.

    GNU's OpenMP spins for milliseconds; where other programs run, the thread that is waited for has no core
    meanwhile, and a step took up to 40 times as long (docs/benchmarks.md). It is read as torch is loaded.
    """
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "3000"


_let_idle_threads_sleep()

_PUBLIC = {
    "CramPlan": "lmreach.config",
    "LoadConfig": "lmreach.config",
    "LoadedModel": "lmreach.models.loaded",
    "ModelFacts": "lmreach.models.facts",
    "StudyConfig": "lmreach.config",
    "cram": "lmreach.experiments.cramming.cram",
    "limits": "lmreach.maths.bounds",
    "load": "lmreach.models.load",
    "run_study": "lmreach.runs.study.run",
    "verify_run": "lmreach.runs.certificates.verify",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'lmreach' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
