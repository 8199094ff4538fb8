"""Whether a model can be made to produce one given output: asked, answered, and the proof saved."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from lmreach.config import CramConfig, ReachableConfig
from lmreach.config.given import configure
from lmreach.config.written import ids_of
from lmreach.engine.folder import choose
from lmreach.models.load import ModelLike, load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent
from lmreach.results.answers import ReachabilityResults
from lmreach.runs.census.answer import is_reachable, save_answer

__all__ = ["reachability"]


def reachability(
    model: ModelLike,
    text: str,
    config: ReachableConfig | None = None,
    *,
    out: str | Path | None = None,
    save: bool = False,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> ReachabilityResults:
    """Say whether greedy decoding can be made to emit a text: yes or no with a proof, else not found.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    text
        The output asked about, or its ids as ``ids:1,2,3``.
    config, settings
        See `ReachableConfig`; settings by name replace those of the config.
    out
        New folder for the certificate of a "yes".
    save
        Without ``out``: keep the certificate of a search that succeeded, in a new folder under
        ``lmreach-runs``.
    progress
        Told how far the search is.
    stop
        Asked often; a yes ends the search.

    Raises
    ------
    LmreachError
        No text, ids the model cannot use, a run folder that is none, or one that cannot be written.
    """
    asked = configure(ReachableConfig, config, settings)
    seconds = asked.seconds
    name = model if isinstance(model, str) else "model"
    place = None if out is None else choose(Path(out), name, "reachable")
    loaded = load(model, asked.load)
    answer = is_reachable(
        loaded,
        _ids(loaded, text),
        ms=asked.m,
        runs=tuple(map(Path, asked.runs)),
        config=CramConfig(bos=asked.bos, seed=asked.seed),
        budget_s=seconds,
        progress=progress or Silent(),
        stop=stop,
    )
    certificate = None
    # A proof that is a certificate already needs no second one, unless a folder is named.
    if answer.vectors is not None and (place is not None or (save and answer.tried)):
        certificate = save_answer(answer, loaded, place or choose(None, name, "reachable"))
    return ReachabilityResults(
        model=loaded.facts.name,
        **answer.as_dict(),
        certificate=None if certificate is None else str(certificate),
    )


def _ids(model: LoadedModel, text: str) -> Int[np.ndarray, " n"]:
    if not text.startswith("ids:"):
        return model.encode(text)
    return np.asarray(ids_of(text.removeprefix("ids:"), repr(text)), dtype=np.int64)
