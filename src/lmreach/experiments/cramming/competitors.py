"""Large vocabularies: between full looks a row is scored against its strongest competitors only.

On small models with large vocabularies the head is most of a step. What pulls at a row's vectors are the few
ids that its targets could lose against, and those hardly change from one step to the next. So every few
steps all logits are made, the ids with the largest gradient are kept, and the steps between see only these.
Such a step can propose that a prefix has grown; a pass over all logits decides it.
"""

from dataclasses import fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.experiments.cramming.scoring import Score, gather_rows, position_weights, softmax_gradient
from lmreach.models.loaded import LoadedModel

# Below this many ids the head is too small a part of a step to gain by it. With 2,048 kept Gemma-3-270m
# reached a token less in the same steps (docs/log/cramming.md).
FROM_ROWS = 100_000
KEPT = 8192
EVERY = 4
# Numbers of the head gathered at once: 2^25 in bfloat16 are 64 MiB.
_GATHERED = 1 << 25


class Competitors:
    """Which rows are due for a full look, and the competitors that the others are scored against.

    Everything is kept by string: nothing is taken over from rows that share a batch.
    """

    def __init__(self) -> None:
        self._kept: dict[int, Int[Tensor, " kept"]] = {}
        self._doubted: set[int] = set()

    def needs_full_pass(self, index: Int[Tensor, " r"], steps: Int[Tensor, " r"]) -> Bool[Tensor, " r"]:
        """Return the rows to be scored against all ids."""
        known = [i in self._kept and i not in self._doubted for i in index.tolist()]
        return ~torch.tensor(known, device=index.device) | (steps % EVERY == 0)

    def update(self, index: Int[Tensor, " r"], mass: Float[Tensor, "r rows"]) -> None:
        """Keep each row's ids of largest gradient."""
        top = mass.topk(min(KEPT, mass.shape[1]), dim=1, sorted=False).indices
        self._kept.update(zip(index.tolist(), top, strict=True))
        self._doubted.difference_update(index.tolist())

    def distrust(self, index: Int[Tensor, " r"]) -> None:
        """Note rows whose proposal did not hold: an id that is not kept stands above a target."""
        self._doubted.update(index.tolist())

    def ids_of(self, index: Int[Tensor, " r"]) -> Int[Tensor, "r kept"]:
        """Return the competitors of rows that are not due."""
        return torch.stack([self._kept[i] for i in index.tolist()])


def score_among(
    model: LoadedModel,
    hidden: Float[Tensor, "r f h"],
    ids: Int[Tensor, "r f"],
    scored: Bool[Tensor, "r f"],
    among: Int[Tensor, "r kept"],
    *,
    unsolved: Float[Tensor, " r"],
    slack: float = 0.0,
) -> Score:
    """Score target ids as `cramming.scoring.score` does, as if ``among`` were all other ids.

    Parameters
    ----------
    among
        Ids of each row; where they hold a target id, that one counts once.
    """
    most = max(1, _GATHERED // (among.shape[1] * hidden.shape[2]))
    parts = zip(*(each.split(most) for each in (hidden.detach(), ids, scored, among, unsolved)), strict=True)
    found = [_score_some(model, h, i, s, a, u, slack) for h, i, s, a, u in parts]
    return Score(*(torch.cat([getattr(one, name.name) for one in found]) for name in fields(Score)))


def _score_some(
    model: LoadedModel,
    hidden: Float[Tensor, "r f h"],
    ids: Int[Tensor, "r f"],
    scored: Bool[Tensor, "r f"],
    among: Int[Tensor, "r kept"],
    unsolved: Float[Tensor, " r"],
    slack: float,
) -> Score:
    leaf = hidden.requires_grad_(True)
    with torch.enable_grad():
        own = model.logits_of(leaf[:, :, None], ids[:, :, None])[..., 0]
        others = model.logits_of(leaf, among)
        itself = among[:, None, :] == ids[:, :, None]
        logits = torch.cat([others.masked_fill(itself, float("-inf")), own], dim=2)[scored]
    weight, heavy = position_weights(scored, unsolved)
    last = torch.full_like(ids[scored], among.shape[1])
    loss, hit, near, pull = softmax_gradient(logits.detach(), last, weight, heavy, slack)
    (grad,) = torch.autograd.grad(logits, leaf, pull)
    return gather_rows(scored, loss * weight, hit, near, grad)
