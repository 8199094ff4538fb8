"""What a call is about: a model by its name, or one that stands in memory."""

from pathlib import Path

from lmreach.config import LoadConfig
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel

__all__ = ["subject"]


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
