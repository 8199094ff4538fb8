"""Greedy decoding of many prompts at once, with every tie and every near tie counted.

The next token is the lowest id of the largest logit, as in `lmreach.models.decode`. A batch rounds
differently from a single row, so a prompt with two logits closer than rounding can tell apart may be decided
otherwise at batch 1, the only judge: such prompts are named, and a census decodes them again one by one as
far as that is affordable.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.config import Bos
from lmreach.errors import ModelError, problem
from lmreach.models.decode import Steps, greedy, settled
from lmreach.models.frame import frame_of, framed
from lmreach.models.loaded import LoadedModel

__all__ = ["Block", "decode_block", "settle"]

# Rounding steps of the dtype, relative to the largest logit, within which two logits count as close. Measured
# between a batch and single rows, per logit: at most 38 steps in float32 (SmolLM2, batch 128; 35 on tiny
# models, batch 4096), so 76 for a gap; none in bfloat16, where sums are rounded once, at their end.
_CLOSE, _CLOSE_16_BITS = 128, 2


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """What a batch of prompts emits.

    Attributes
    ----------
    ids
        Shape (rows, n).
    tied, close
        Whether some step had two equal largest logits, or two within rounding (ties included), shape (rows,).
    """

    ids: Int[np.ndarray, "rows n"]
    tied: Bool[np.ndarray, " rows"]
    close: Bool[np.ndarray, " rows"]


@torch.no_grad()
def decode_block(
    model: LoadedModel, vectors: Float[Tensor, "rows m d"], n: int, *, bos: Bos = "none"
) -> Block:
    """Decode n tokens after every row's vectors, all rows at once.

    Raises
    ------
    ModelError
        If a logit is not finite.
    """
    prompts = framed(model, vectors, frame_of(model, bos))
    return settled(model, prompts, lambda steps: _decode(steps, n))


def _decode(steps: Steps, n: int) -> Block:
    model = steps.loaded
    format_ = torch.finfo(model.dtype)
    closeness = format_.eps * (_CLOSE if format_.bits >= 32 else _CLOSE_16_BITS)
    columns: list[Tensor] = []
    tied = torch.zeros(len(steps.logits), dtype=torch.bool, device=model.device)
    close = tied.clone()
    for k in range(n):
        if k:
            steps.push(columns[-1])
        picked, gap, size = _top_and_gap(steps.logits)
        if not bool(gap.isfinite().all()):
            got = f"some that are not, at step {k + 1} of {n} in {model.dtype}"
            raise ModelError(problem("finite logits", got, "use a wider dtype"))
        tied |= gap == 0
        close |= gap <= closeness * size
        columns.append(picked)
    return Block(torch.stack(columns, dim=1).cpu().numpy(), tied.cpu().numpy(), close.cpu().numpy())


def settle(
    model: LoadedModel, vectors: Float[Tensor, "rows m d"], block: Block, n: int, most: int, bos: Bos = "none"
) -> int:
    """Decode close rows again at batch 1 and put those ids in their place; at most ``most`` rows.

    Returns
    -------
    int
        Rows decoded again: the first ones.
    """
    rows = np.flatnonzero(block.close)[:most]
    for row in rows.tolist():
        block.ids[row] = greedy(model, vectors[row], n, frame=frame_of(model, bos)).ids
    return len(rows)


def _top_and_gap(
    logits: Float[Tensor, "rows V"],
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Return the lowest id of the largest logit, its lead over the second, and its size."""
    # Two maxima are quicker than torch.topk, and argmax fixes which of equal ones is taken.
    picked = logits.argmax(dim=-1, keepdim=True)
    largest = logits.gather(1, picked)
    rest = logits.scatter(1, picked, -torch.inf).amax(dim=-1)
    return picked[:, 0], largest[:, 0] - rest, logits.abs().amax(dim=-1)
