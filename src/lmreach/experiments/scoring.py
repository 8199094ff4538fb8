"""The loss of target ids and its gradient at the hidden states, without ever holding rows x vocabulary."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.models.loaded import LoadedModel

# Logits held at once: 2^23 float32 are 32 MiB, large enough that products run at full rate.
_LOGITS_AT_ONCE = 1 << 23


@dataclass(frozen=True, slots=True)
class Score:
    """Loss and progress of each row.

    Attributes
    ----------
    loss
        Mean cross-entropy in nats over the row's scored positions, shape (r,).
    prefix
        Number of leading target ids that are the argmax in this teacher-forced pass, shape (r,).
    hits
        Number of scored target ids that are the argmax, wherever they stand, shape (r,).
    hidden_grad
        Gradient of the summed loss at the hidden states, shape (r, f, h).
    """

    loss: Float[Tensor, " r"]
    prefix: Int[Tensor, " r"]
    hits: Int[Tensor, " r"]
    hidden_grad: Float[Tensor, "r f h"]


def score(
    model: LoadedModel,
    hidden: Float[Tensor, "r f h"],
    ids: Int[Tensor, "r f"],
    scored: Bool[Tensor, "r f"],
) -> Score:
    """Score target ids from final hidden states.

    Parameters
    ----------
    hidden
        Final hidden states at the positions that predict ``ids``.
    ids
        Target ids.
    scored
        Which positions count; each row's are a leading run of at least one.

    Notes
    -----
    The head is frozen and most of the work on small models, so logits are made in chunks of positions,
    each giving its own gradient at once, and only for scored positions.
    """
    flat = hidden.detach()[scored]
    wanted = ids[scored]
    weight = (1.0 / scored.sum(dim=1))[:, None].expand_as(scored)[scored]
    losses, hits, grads = [], [], []
    chunk = max(1, _LOGITS_AT_ONCE // model.facts.rows)
    for some, some_ids, some_weight in zip(
        flat.split(chunk), wanted.split(chunk), weight.split(chunk), strict=True
    ):
        leaf = some.requires_grad_(True)
        with torch.enable_grad():
            logits = model.head_logits(leaf)
            loss = torch.nn.functional.cross_entropy(logits, some_ids, reduction="none")
            (grad,) = torch.autograd.grad((loss * some_weight).sum(), leaf)
        losses.append(loss.detach() * some_weight)
        hits.append(logits.detach().argmax(dim=-1) == some_ids)
        grads.append(grad)
    return _gather(hidden, scored, torch.cat(losses), torch.cat(hits), torch.cat(grads))


def _gather(
    hidden: Float[Tensor, "r f h"],
    scored: Bool[Tensor, "r f"],
    losses: Float[Tensor, " p"],
    hits: Bool[Tensor, " p"],
    grads: Float[Tensor, "p h"],
) -> Score:
    """Put the scored positions' values back into rows."""
    hidden_grad = torch.zeros_like(hidden)
    hidden_grad[scored] = grads.to(hidden.dtype)
    row_loss = torch.zeros(scored.shape, device=hidden.device, dtype=losses.dtype)
    row_loss[scored] = losses
    hit = torch.zeros_like(scored)
    hit[scored] = hits
    return Score(row_loss.sum(dim=1), hit.long().cumprod(dim=1).sum(dim=1), hit.sum(dim=1), hidden_grad)
