"""Studies, and cramming alone, as calls: a model and settings in, results out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmreach.config import CramRunConfig, ExecutorConfig, StudyConfig
from lmreach.config.given import configure
from lmreach.models.load import ModelLike, Tokenizer
from lmreach.progress import Progress
from lmreach.results.study import StudyResults
from lmreach.runs.study.run import run_study
from lmreach.runs.subject import carried_out, subject

__all__ = ["cram", "study"]


def study(
    model: ModelLike,
    config: StudyConfig | None = None,
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
) -> StudyResults:
    """Measure how many outputs a model can be made to produce, beside the limits from theory.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    config, settings
        See `StudyConfig`; settings by name replace those of the config.
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
        Where rounds are run: processes, a Ray cluster, Slurm jobs; nothing that is found depends on it.

    Returns
    -------
    StudyResults
        With ``folder``, where report, ledger and certificates lie.

    Raises
    ------
    LmreachError
        The model, the settings or the folder cannot be used; no folder is left behind then.
    """
    asked = configure(StudyConfig, config, settings)
    name, loaded = subject(model, asked.load, tokenizer)
    asked = asked.model_copy(update={"model": name})
    return carried_out(
        StudyResults,
        run_study,
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


def cram(
    model: ModelLike,
    config: CramRunConfig | None = None,
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
) -> StudyResults:
    """Optimise prompt vectors until greedy decoding emits the target; runs every string asked for.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    config, settings
        See `CramRunConfig`; settings by name replace those of the config.
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
        Where rounds are run: processes, a Ray cluster, Slurm jobs; nothing that is found depends on it.

    Returns
    -------
    StudyResults
        Those of a study that is nothing but this.

    Raises
    ------
    LmreachError
        The model, the settings or the folder cannot be used; no folder is left behind then.
    """
    asked = configure(CramRunConfig, config, settings)
    return study(
        model,
        asked.study(""),
        out=out,
        tokenizer=tokenizer,
        fresh=fresh,
        command=command,
        progress=progress,
        stop=stop,
        begun=begun,
        executor=executor,
    )
