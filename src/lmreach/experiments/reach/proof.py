"""What a convex combination of tokens proves about another token, checked apart from the solver."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.experiments.reach.rows import BoundedRows
from lmreach.experiments.reach.whitening import Lead
from lmreach.maths.cells import highest, largest_score, largest_scores, share_of
from lmreach.maths.supports import Box, Ellipsoid

__all__ = ["UnreachableProof", "unreachable_proof"]


@dataclass(frozen=True, eq=False)
class UnreachableProof:
    """A convex combination of tokens that no hidden state lets the token lead.

    Attributes
    ----------
    ids, weights
        Other tokens and their weights, at least 0.
    uniform
        Weight spread evenly over all distinct rows of ordinary size (`lmreach.maths.cells.ordinary`). For
        ``unreachable`` it is above 0: where the token ties with all of ``ids`` it then ties with all of
        these. 0 for ``tie-only``. All weights sum to 1.
    bound
        What they prove, checked in float64: no lead exceeds this share of the scores compared, the larger of
        the token's largest |score| and that of the combination, token by token. (On all of space with a head
        bias, ``unreachable``: the same, unless the bias is below 2^-10 of the scores.)
    """

    ids: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, " r"]
    uniform: float
    bound: float


def unreachable_proof(
    head: BoundedRows,
    ids: Int[np.ndarray, " U"],
    lead: Lead,
    weights: Float[np.ndarray, " r"],
    *,
    mean: float,
    region: Box | Ellipsoid,
) -> UnreachableProof | None:
    """Return the convex combination with what it proves, in float64 (None for no weight at all).

    Parameters
    ----------
    ids
        Token id of each row.
    weights
        Of the lead's rivals, on any scale.
    mean
        Weight of the mean of ordinary rows, on the same scale.
    region
        Over which the combination is to be at least as large.
    """
    used = np.flatnonzero(weights > 0)
    total = float(weights[used].sum()) + mean
    if not total > 0:
        return None
    share, uniform, rivals = weights[used] / total, mean / total, lead.rivals[used]
    chosen = torch.from_numpy(np.append(rivals, lead.token)).to(head.rows.device)
    rows = head.rows[chosen].double().cpu().numpy()
    bias = head.bias[chosen].double().cpu().numpy()
    normal = rows[-1] - share @ rows[:-1] - uniform * head.mean_row
    offset = bias[-1] - share @ bias[:-1] - uniform * head.mean_bias
    largest = largest_scores(rows, bias, region)
    even = largest_score(head.mean_row[None], np.array([head.mean_bias]), region)
    size = max(float(largest[-1]), float(share @ largest[:-1]) + uniform * even)
    bound = share_of(float(highest(normal[None], region)[0]) + float(offset), size)
    return UnreachableProof(ids[rivals], share, uniform, bound)
