"""A census as a call: a model and settings in, counts out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmreach.config import CensusConfig, ExecutorConfig
from lmreach.config.given import configure
from lmreach.models.load import ModelLike, Tokenizer
from lmreach.progress import Progress
from lmreach.results.census import CensusResults
from lmreach.runs.census.run import run_census
from lmreach.runs.subject import carried_out, subject

__all__ = ["census"]


def census(
    model: ModelLike,
    config: CensusConfig | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: Tokenizer | None = None,
    fresh: bool = False,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    begun: float | None = None,
    executor: ExecutorConfig = ExecutorConfig(),  # noqa: B008  (frozen)
    **settings: Any,
) -> CensusResults:
    """Count the different outputs of a model: exactly where every prompt can be tried.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, tiny:FAMILY,..., or a loaded model.
    config, settings
        See `CensusConfig`; settings by name replace those of the config.
    out
        Run folder: new, empty, or that of a run that was asked the same, which is gone on with; None: a new
        one under ``lmreach-runs``.
    tokenizer
        Goes with a model of transformers.
    fresh
        Begin anew where ``out`` holds a run, which is moved aside.
    command
        How it was asked for, kept in the provenance.
    progress
        Told how far it is; None: a bar where somebody looks on, else nobody.
    stop
        Asked often; a yes ends the run early, with valid results of what was finished.
    begun
        When the budget began, on `time.monotonic`; None: now.
    executor
        Where parts are done: processes, a Ray cluster, Slurm jobs; nothing that is found depends on it.

    Raises
    ------
    LmreachError
        Settings the model cannot be run with, a grid of too many prompts, or a folder that cannot be used.
    """
    asked = configure(CensusConfig, config, settings)
    name, loaded = subject(model, asked.load, tokenizer)
    asked = asked.model_copy(update={"model": name})
    return carried_out(
        CensusResults,
        run_census,
        asked,
        out,
        progress,
        command=command,
        stop=stop,
        fresh=fresh,
        model=loaded,
        begun=begun,
        executor=executor,
    )
