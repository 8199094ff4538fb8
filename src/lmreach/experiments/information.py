"""What prompt vectors tell a model about a target: its cross-entropy without and with them."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.models.frame import NO_FRAME, Frame, framed
from lmreach.models.loaded import LoadedModel

__all__ = ["TargetBits", "target_bits", "token_nats"]


@dataclass(frozen=True, slots=True)
class TargetBits:
    """Cross-entropy of a target in bits, summed over its tokens (Kuratov et al. 2025, section 3).

    Attributes
    ----------
    without
        Given the start token alone; for a model without one the first id costs log2 V, as if drawn at random.
    with_vectors
        Given the vectors.
    """

    without: float
    with_vectors: float

    @property
    def gained(self) -> float:
        """Bits that the vectors save; negative where they mislead."""
        return self.without - self.with_vectors


def target_bits(
    model: LoadedModel, vectors: Float[Tensor, "m d"], ids: Int[np.ndarray, " n"], *, frame: Frame = NO_FRAME
) -> TargetBits:
    """Return the cross-entropy of ``ids`` without and with the vectors, teacher-forced."""
    given = token_nats(model, framed(model, vectors[None].to(model.device), frame)[0], ids)
    start = model.facts.bos_id
    if start is not None:
        plain = token_nats(model, model.input_vectors(torch.tensor([start])), ids)
    else:
        first = np.array([math.log(model.facts.usable)])
        later = token_nats(model, model.input_vectors(torch.from_numpy(ids[:1])), ids[1:])
        plain = np.concatenate([first, later])
    return TargetBits(float(plain.sum()) / math.log(2), float(given.sum()) / math.log(2))


@torch.no_grad()
def token_nats(
    model: LoadedModel, context: Float[Tensor, "c d"], ids: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return -ln p of each id given the context vectors and the ids before it, in nats."""
    if len(ids) == 0:
        return np.empty(0)
    wanted = torch.from_numpy(ids).to(model.device)
    inputs = torch.cat([context, model.input_vectors(wanted[:-1])])[None]
    hidden = model.hidden(inputs)[0, len(context) - 1 :]
    nats = [
        torch.nn.functional.cross_entropy(model.head_logits(some), some_ids, reduction="none").double()
        for some, some_ids in zip(hidden.split(_AT_ONCE), wanted.split(_AT_ONCE), strict=True)
    ]
    return np.asarray(torch.cat(nats).cpu().numpy())


_AT_ONCE = 32  # positions whose logits are held at once
