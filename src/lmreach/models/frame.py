"""What stands around the prompt vectors: ids that are fixed, before and after them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.config import Bos
from lmreach.errors import InputError, problem
from lmreach.models.loaded import LoadedModel

__all__ = ["NO_FRAME", "PromptFrame", "frame_of", "framed"]


@dataclass(frozen=True, slots=True)
class PromptFrame:
    """Fixed ids before and after the vectors; the output follows the last of them.

    Attributes
    ----------
    before, after
        Token ids.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Positions that the frame takes."""
        return len(self.before) + len(self.after)


NO_FRAME = PromptFrame()


def frame_of(loaded: LoadedModel, bos: Bos = "none", prefix: str = "", suffix: str = "") -> PromptFrame:
    """Return the frame of a start token and two texts: [bos] prefix, vectors, [bos] suffix.

    Parameters
    ----------
    bos
        Where the start token stands: nowhere, first of all, or right after the vectors.
    prefix, suffix
        Texts, read without special tokens; empty: none.

    Raises
    ------
    InputError
        A start token is asked for and the model has none, or a text and no tokenizer.
    """
    start: tuple[int, ...] = ()
    if bos != "none":
        if loaded.facts.bos_id is None:
            raise InputError(
                problem(
                    f"a start token for bos={bos}", f"{loaded.facts.name}, which has none", "use bos=none"
                )
            )
        start = (loaded.facts.bos_id,)
    before = start if bos == "before" else ()
    after = start if bos == "after" else ()
    return PromptFrame((*before, *_ids(loaded, prefix)), (*after, *_ids(loaded, suffix)))


def framed(
    loaded: LoadedModel, vectors: Float[Tensor, "batch m d"], frame: PromptFrame
) -> Float[Tensor, "batch length d"]:
    """Return the vectors with the frame's own before and after them."""
    parts = [_vectors(loaded, frame.before, vectors), vectors, _vectors(loaded, frame.after, vectors)]
    return vectors if frame.length == 0 else torch.cat(parts, dim=1)


def _ids(loaded: LoadedModel, text: str) -> tuple[int, ...]:
    return tuple(int(i) for i in loaded.encode(text)) if text else ()


def _vectors(
    loaded: LoadedModel, ids: tuple[int, ...], like: Float[Tensor, "batch m d"]
) -> Float[Tensor, "batch k d"]:
    if not ids:
        return like[:, :0]
    return loaded.input_vectors(torch.tensor(ids)).to(like).expand(len(like), -1, -1)
