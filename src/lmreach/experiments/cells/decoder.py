"""The decoder as the cells see it: affine scores over usable tokens whose largest one is the next token."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.errors import InputError, ModelError, problem
from lmreach.models.facts import FinalNorm
from lmreach.models.loaded import LoadedModel

__all__ = ["Decoder", "decoder_of"]


@dataclass(frozen=True, eq=False)
class Decoder:
    """Scores z = W h + b over the usable tokens; token t wins at h where z_t is the largest.

    A soft cap and a positive factor between z and the logits change no winner, so neither is applied.

    Attributes
    ----------
    name, fingerprint
        Of the model the decoder was taken from.
    ids
        Sorted usable token ids, shape (V,). Padded rows are left out.
    rows, bias
        W in float32, shape (V, h), and b in float32, shape (V,), zeros where the head adds nothing. Row k
        belongs to ``ids[k]``.
    norm
        The final norm: hidden states are h = gain * u + bias with ||u||_2 <= sqrt(h).
    """

    name: str
    fingerprint: str
    ids: Int[np.ndarray, " V"]
    rows: Float[Tensor, "V h"]
    bias: Float[Tensor, " V"]
    norm: FinalNorm

    @property
    def vocab(self) -> int:
        """V, the number of usable tokens."""
        return len(self.ids)

    @property
    def width(self) -> int:
        """Coordinates of a hidden state."""
        return int(self.rows.shape[1])

    def scores(self, hidden: Float[Tensor, "k h"]) -> Float[Tensor, "k V"]:
        """Return z of some hidden states in the dtype of the states (float32 or float64)."""
        return torch.addmm(self.bias.to(hidden.dtype), hidden, self.rows.to(hidden.dtype).T)


def decoder_of(model: LoadedModel) -> Decoder:
    """Take the decoder out of a loaded model.

    Raises
    ------
    InputError
        For fewer than 2 usable tokens.
    ModelError
        If rows or bias hold a number that is not finite, or if every row is zero.
    """
    ids = model.usable_ids
    if len(ids) < 2:
        raise InputError(
            problem("at least 2 usable tokens", str(len(ids)), "check the tokenizer of the model")
        )
    keep = torch.from_numpy(ids).to(model.device)
    sign = np.sign(model.wiring.shape.scale)
    rows = model.head_weight[keep].float() * sign
    given = model.head_bias
    bias = torch.zeros(len(ids)) if given is None else given[keep].float() * sign
    _check(model.facts.name, ids, rows, bias)
    return Decoder(model.facts.name, model.facts.fingerprint, ids, rows, bias, model.final_norm)


def _check(
    name: str, ids: Int[np.ndarray, " V"], rows: Float[Tensor, "V h"], bias: Float[Tensor, " V"]
) -> None:
    bad = ~(rows.isfinite().all(1) & bias.isfinite()).cpu().numpy()
    if bad.any():
        got = f"{bad.sum()} of {len(ids)}, the first at id {ids[bad][0]}"
        raise ModelError(problem(f"a head of finite numbers in {name}", got, "bring intact weights"))
    if not bool((rows != 0).any()):
        raise ModelError(problem(f"a head in {name}", "rows that are all zero", "bring trained weights"))
