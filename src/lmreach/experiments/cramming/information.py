"""What prompt vectors tell a model about a target: its cross-entropy without and with them."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.models.frame import NO_FRAME, PromptFrame, framed
from lmreach.models.loaded import LoadedModel

__all__ = ["TargetBits", "target_bits", "token_nats", "token_scores"]


@dataclass(frozen=True, slots=True)
class TargetBits:
    """Cross-entropy of a target in bits, summed over its tokens (Kuratov et al. 2025, section 3).

    Attributes
    ----------
    without
        Given the start token alone; for a model without one the first id costs log2 V, as if drawn at random.
    with_vectors
        Given the vectors.
    right_without, right_with
        Tokens that are the most likely one at their place, teacher-forced; the first id of a model without
        a start token is none without vectors.
    """

    without: float
    with_vectors: float
    right_without: int
    right_with: int

    @property
    def gained(self) -> float:
        """Bits that the vectors save; negative where they mislead."""
        return self.without - self.with_vectors

    @property
    def tokens_gained(self) -> int:
        """Tokens that come out right thanks to the vectors: the token gain of Kuratov et al. 2025."""
        return self.right_with - self.right_without


def target_bits(
    model: LoadedModel,
    vectors: Float[Tensor, "m d"],
    ids: Int[np.ndarray, " n"],
    *,
    frame: PromptFrame = NO_FRAME,
) -> TargetBits:
    """Return the cross-entropy of ``ids`` without and with the vectors, teacher-forced."""
    given = token_scores(model, framed(model, vectors[None].to(model.device), frame)[0], ids)
    start = model.facts.bos_id
    if start is not None:
        plain = token_scores(model, _vectors_of(model, np.array([start])), ids)
    else:
        nats, right = token_scores(model, _vectors_of(model, ids[:1]), ids[1:])
        first = np.array([math.log(model.facts.usable)])
        plain = np.concatenate([first, nats]), np.concatenate([[False], right])
    return TargetBits(
        without=float(plain[0].sum()) / math.log(2),
        with_vectors=float(given[0].sum()) / math.log(2),
        right_without=int(plain[1].sum()),
        right_with=int(given[1].sum()),
    )


def _vectors_of(model: LoadedModel, ids: Int[np.ndarray, " n"]) -> Float[Tensor, "n d"]:
    return model.input_vectors(torch.from_numpy(ids).to(model.device))


def token_nats(
    model: LoadedModel, context: Float[Tensor, "c d"], ids: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return -ln p of each id given the context vectors and the ids before it, in nats."""
    return token_scores(model, context, ids)[0]


@torch.no_grad()
def token_scores(
    model: LoadedModel, context: Float[Tensor, "c d"], ids: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Return -ln p of each id in nats and whether it is the most likely one, given all before it."""
    if len(ids) == 0:
        return np.empty(0), np.empty(0, dtype=bool)
    wanted = torch.from_numpy(ids).to(model.device)
    inputs = torch.cat([context, model.input_vectors(wanted[:-1])])[None]
    hidden = model.hidden(inputs)[0, len(context) - 1 :]
    nats, right = [], []
    for some, some_ids in zip(hidden.split(_AT_ONCE), wanted.split(_AT_ONCE), strict=True):
        logits = model.head_logits(some)
        loss = torch.nn.functional.cross_entropy(logits, some_ids, reduction="none")
        nats.append(loss.double().cpu().numpy())
        right.append((logits.argmax(dim=-1) == some_ids).cpu().numpy())
    return np.concatenate(nats), np.concatenate(right)


_AT_ONCE = 32  # positions whose logits are held at once
