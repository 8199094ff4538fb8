"""What calls of runs share: the model by its name or as it stands in memory, and the results they return."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lmreach.config import LoadConfig
from lmreach.engine.run import RunEnd
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, watching
from lmreach.results.file import open_results
from lmreach.results.run import RunResults

__all__ = ["carried_out", "subject"]

Results = TypeVar("Results", bound=RunResults)


def subject(
    model: ModelLike, config: LoadConfig, tokenizer: Tokenizer | None
) -> tuple[str, LoadedModel | None]:
    """Return the name that a run keeps of a model, and the model where it cannot be loaded by that name.

    Raises
    ------
    LmreachError
        Options of loading for a model that is loaded, or one that cannot be measured.
    """
    if isinstance(model, str | Path) and tokenizer is None:
        return str(model), None
    loaded = load(model, config, tokenizer=tokenizer)
    return loaded.facts.name, loaded


def carried_out(
    kind: type[Results],
    run: Callable[..., RunEnd],
    asked: object,
    out: str | Path | None,
    progress: Progress | None,
    **how: Any,
) -> Results:
    """Carry out what is asked, watched by whoever looks on, and return what the run's folder holds then.

    Parameters
    ----------
    how
        What the run takes beside its settings and its folder.
    """
    with watching(progress) as watched:
        end = run(asked, None if out is None else Path(out), progress=watched, **how)
    results = open_results(end.folder)
    assert isinstance(results, kind)
    return results
