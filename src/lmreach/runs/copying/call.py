"""Copying as a call: a model, or how one is trained, in; where it stops copying out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmreach.config import CopyConfig, CopyTrainConfig, ExecutorConfig
from lmreach.config.given import configure
from lmreach.models.load import ModelLike, Tokenizer
from lmreach.progress import Progress
from lmreach.results.copying import CopyResults
from lmreach.runs.copying.run import run_copying
from lmreach.runs.subject import carried_out, subject

__all__ = ["copy"]


def copy(
    model: ModelLike | None = None,
    config: CopyConfig | None = None,
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
) -> CopyResults:
    """Find the length at which a model stops copying strings, and set the limit from theory beside it.

    Parameters
    ----------
    model
        A model that is asked to copy as it is, in context; None: one is trained as ``train`` says, from
        scratch where it says nothing (`CopyTrainConfig.preset` ``quick``).
    config, settings
        See `CopyConfig`; settings by name replace those of the config.
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
        Settings that cannot be run, a loss that is not finite, or a folder that cannot be used.
    """
    given, loaded = dict(settings), None
    if model is not None:
        load = configure(CopyConfig, config, {**given, "model": "", "train": None}).load
        given["model"], loaded = subject(model, load, tokenizer)
    elif config is None and given.get("train") is None and given.get("model") is None:
        given["train"] = CopyTrainConfig.preset("quick")
    asked = configure(CopyConfig, config, given)
    return carried_out(
        CopyResults,
        run_copying,
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
