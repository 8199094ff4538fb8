"""Target strings as a call."""

import numpy as np
from jaxtyping import Int

from lmreach.config import LoadConfig
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import ModelLike, Tokenizer, load

__all__ = ["targets"]


def targets(
    model: ModelLike,
    kind: str = "random",
    *,
    strings: int = 32,
    n: int = 64,
    seed: int = 0,
    load_config: LoadConfig = LoadConfig(),  # noqa: B008  (frozen)
    tokenizer: Tokenizer | None = None,
) -> Int[np.ndarray, "strings n"]:
    """Return the ids of target strings, shape (strings, n), as a study with this seed and limit draws them.

    Parameters
    ----------
    kind
        random, self, words[:FILE], text:FILE, ids:FILE or dataset:NAME.
    n
        Tokens of each.

    Raises
    ------
    InputError
        Another kind, or a file that is missing or too short.
    """
    loaded = load(model, load_config, tokenizer=tokenizer)
    return draw(loaded, kind, strings, n, seed=seed).ids
