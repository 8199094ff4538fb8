"""The loss of target ids and its gradient at the hidden states, without ever holding rows x vocabulary."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.models.decode import lead, leads
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
        Number of target ids before the first that does not lead in this teacher-forced pass, shape (r,).
    near
        The same, counting a target id as leading when its logit is within the slack of the largest.
    hits
        Number of scored target ids that lead, wherever they stand, shape (r,).
    hidden_grad
        Gradient of the summed loss at the hidden states, shape (r, f, h).
    """

    loss: Float[Tensor, " r"]
    prefix: Int[Tensor, " r"]
    near: Int[Tensor, " r"]
    hits: Int[Tensor, " r"]
    hidden_grad: Float[Tensor, "r f h"]


def score(
    model: LoadedModel,
    hidden: Float[Tensor, "r f h"],
    ids: Int[Tensor, "r f"],
    scored: Bool[Tensor, "r f"],
    *,
    unsolved: Float[Tensor, " r"] | float = 1.0,
    slack: float = 0.0,
    mass: Float[Tensor, "r rows"] | None = None,
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
    unsolved
        Weight, in the gradient, of a position whose target id does not lead, beside 1 for one whose does;
        for all rows or for each.
    slack
        Share of the largest logit by which a target's may fall short and still count in ``near``: about the
        rounding of the format the logits were made in.
    mass
        Where given, the gradient at the logits, summed over each row's positions, is added to it.

    Notes
    -----
    The head is frozen and most of the work on small models, so logits are made in chunks of positions,
    each giving its own gradient at once, and only for scored positions.
    """
    flat = hidden.detach()[scored]
    wanted = ids[scored]
    weight, heavy = position_weights(scored, unsolved)
    losses, hits, near, grads = [], [], [], []
    row = torch.nonzero(scored)[:, 0]
    chunk = max(1, _LOGITS_AT_ONCE // model.facts.rows)
    for some, some_ids, some_weight, some_heavy, some_rows in zip(
        *(each.split(chunk) for each in (flat, wanted, weight, heavy, row)), strict=True
    ):
        leaf = some.requires_grad_(True)
        with torch.enable_grad():
            logits = model.head_logits(leaf)
        loss, hit, close, pull = softmax_gradient(logits.detach(), some_ids, some_weight, some_heavy, slack)
        grads.append(torch.autograd.grad(logits, leaf, pull)[0])
        if mass is not None:
            mass.index_add_(0, some_rows, pull)
        losses.append(loss * some_weight)
        hits.append(hit)
        near.append(close)
    hidden_grad = torch.zeros_like(hidden)
    hidden_grad[scored] = torch.cat(grads).to(hidden.dtype)
    return gather_rows(scored, torch.cat(losses), torch.cat(hits), torch.cat(near), hidden_grad)


def position_weights(
    scored: Bool[Tensor, "r f"], unsolved: Float[Tensor, " r"] | float
) -> tuple[Float[Tensor, " p"], Float[Tensor, " p"]]:
    """Return the weight of each of the p scored positions, if its target comes out and if it does not.

    Rows weigh the same, however many positions of theirs are scored.
    """
    share = 1.0 / scored.sum(dim=1)
    factor = torch.as_tensor(unsolved, device=share.device, dtype=share.dtype)
    light, heavy = (each[:, None].expand_as(scored)[scored] for each in (share, share * factor))
    return light, heavy


def softmax_gradient(
    logits: Float[Tensor, "p rows"],
    ids: Int[Tensor, " p"],
    weight: Float[Tensor, " p"],
    heavy: Float[Tensor, " p"],
    slack: float,
) -> tuple[Float[Tensor, " p"], Bool[Tensor, " p"], Bool[Tensor, " p"], Float[Tensor, "p rows"]]:
    """Return cross-entropies, hits, near hits, and the gradient of the weighted sum at the logits.

    Written out because passes over the logits took a third of the time of head and loss: one softmax
    serves loss, gradient and, with the target's own entry taken out, the hits. Shares are ordered as logits
    are; where two round to the same number, the logits say which one `leads`.
    """
    at = ids[:, None]
    own, largest = logits.gather(1, at), logits.amax(dim=1, keepdim=True)
    shares = logits.softmax(dim=1)
    mine = shares.gather(1, at)
    rest = shares.scatter_(1, at, 0.0).amax(dim=1, keepdim=True)
    hit = mine > rest
    level = (mine == rest)[:, 0]
    if bool(level.any()):
        hit[level, 0] = leads(lead(logits[level], ids[level]))
    pull = torch.where(hit, weight[:, None], heavy[:, None])
    loss = largest - own - torch.maximum(mine, rest).log()
    grad = shares.mul_(pull).scatter_(1, at, (mine - 1) * pull)
    near = hit | (own >= largest - slack * largest.abs())
    return loss[:, 0], hit[:, 0], near[:, 0], grad


def gather_rows(
    scored: Bool[Tensor, "r f"],
    losses: Float[Tensor, " p"],
    hits: Bool[Tensor, " p"],
    near: Bool[Tensor, " p"],
    hidden_grad: Float[Tensor, "r f h"],
) -> Score:
    """Put the scored positions' values back into rows."""
    row_loss = torch.zeros(scored.shape, device=losses.device, dtype=losses.dtype)
    row_loss[scored] = losses
    hit, close = torch.zeros_like(scored), torch.zeros_like(scored)
    hit[scored] = hits
    close[scored] = near
    return Score(row_loss.sum(dim=1), leading(hit), leading(close), hit.sum(dim=1), hidden_grad)


def leading(hit: Bool[Tensor, "r f"]) -> Int[Tensor, " r"]:
    """Return how many hits stand before the first miss of each row."""
    return hit.long().cumprod(dim=1).sum(dim=1)


@torch.no_grad()
def emitted(model: LoadedModel, hidden: Float[Tensor, "r f h"], ids: Int[Tensor, "r f"]) -> Int[Tensor, " r"]:
    """Return how many ids come out before the first that does not, from final hidden states; no gradient."""
    chunk = max(1, _LOGITS_AT_ONCE // model.facts.rows)
    parts = zip(hidden.flatten(0, 1).split(chunk), ids.flatten().split(chunk), strict=True)
    hit = torch.cat([leads(lead(model.head_logits(some), own)) for some, own in parts])
    return leading(hit.reshape(ids.shape))
