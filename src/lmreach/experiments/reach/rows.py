"""The rows of a head as verdicts are sought on them: equal ones once, and on a bounded region."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.maths.cells import Region, WholeSpace, bounding_box, largest_scores, ordinary
from lmreach.maths.supports import Box, Ellipsoid

__all__ = ["BoundedRows", "DistinctRows", "bounded_rows", "distinct_rows"]

_CHUNK = 1 << 14  # rows converted to float64 at once


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Tokens grouped by row and bias.

    Attributes
    ----------
    first
        First token of each group, shape (U,).
    group
        Group of each token, shape (V,).
    members
        Tokens per group, shape (U,).
    """

    first: Int[np.ndarray, " U"]
    group: Int[np.ndarray, " V"]
    members: Int[np.ndarray, " U"]


def distinct_rows(rows: Float[Tensor, "V d"], bias: Float[Tensor, " V"]) -> DistinctRows:
    """Group tokens with the same row and bias.

    0 and -0 are equal. Equal hashes are compared number by number.
    """
    odd = torch.from_numpy(np.random.default_rng(0).integers(-(2**62), 2**62, rows.shape[1] + 1) | 1)
    keys = torch.cat([_key(part.cpu(), odd[:-1]) for part in rows.split(_CHUNK)])
    hashes = (keys + _key(bias.cpu()[:, None], odd[-1:])).numpy()
    order = np.argsort(hashes, kind="stable")
    leader = np.arange(len(hashes))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(hashes[order])) + 1, [len(order)]])
    for group in np.flatnonzero(np.diff(starts) > 1):
        members = order[starts[group] : starts[group + 1]]
        for k, token in enumerate(members[1:].tolist(), start=1):
            for earlier in members[:k].tolist():
                if torch.equal(rows[earlier], rows[token]) and bool(bias[earlier] == bias[token]):
                    leader[token] = leader[earlier]
                    break
    return DistinctRows(*np.unique(leader, return_inverse=True, return_counts=True))


def _key(part: Float[Tensor, "n d"], odd: Int[Tensor, " d"]) -> Int[Tensor, " n"]:
    return ((part + 0.0).contiguous().view(torch.int32).long() * odd).sum(dim=1)


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """A head on a bounded region, as `lmreach.maths.cells.BoundedHead`, on tensors.

    Attributes
    ----------
    rows, bias
        Shapes (U, e) and (U,). Where ``lifted``, the bias is the last column of the rows and 0 as a bias.
    region
        Where hidden states, or lifted ones, may lie.
    lifted
        Whether all of space was brought into a box by a factor of the bias.
    ordinary
        Which rows are of ordinary size, see `lmreach.maths.cells.ordinary`; shape (U,).
    size
        Largest |score| over the region, of ordinary rows.
    mean_row, mean_bias
        Over ordinary rows, float64.
    """

    rows: Float[Tensor, "U e"]
    bias: Float[Tensor, " U"]
    region: Box | Ellipsoid
    lifted: bool
    ordinary: Bool[np.ndarray, " U"]
    size: float
    mean_row: Float[np.ndarray, " e"]
    mean_bias: float


def bounded_rows(rows: Float[Tensor, "U d"], bias: Float[Tensor, " U"], region: Region) -> BoundedRows:
    """Return a head on its region, or on a box that stands for all of space."""
    if not isinstance(region, WholeSpace):
        return _measured(rows, bias, region, lifted=False)
    lifted = bool((bias != bias[0]).any())
    both = torch.cat([rows, bias[:, None]], dim=1) if lifted else rows
    square = sum(
        (part.double().square().sum(0).cpu() for part in both.split(_CHUNK)),
        torch.zeros(both.shape[1], dtype=torch.float64),
    )
    box = bounding_box((square / len(rows)).sqrt().numpy(), lifted=lifted)
    return _measured(both, torch.zeros_like(bias), box, lifted=lifted)


def _measured(
    rows: Float[Tensor, "U e"], bias: Float[Tensor, " U"], region: Box | Ellipsoid, *, lifted: bool
) -> BoundedRows:
    """Add the largest |score|, and the mean row and bias, of ordinary rows in float64."""
    pairs = list(zip(rows.split(_CHUNK), bias.split(_CHUNK), strict=True))
    largest = np.concatenate([largest_scores(*_float64(*pair), region) for pair in pairs])
    usual = ordinary(largest)
    kept = usual.astype(np.float64)
    total, total_bias, start = np.zeros(rows.shape[1]), 0.0, 0
    for pair in pairs:
        some, own = _float64(*pair)
        part = kept[start : start + len(some)]
        total, total_bias, start = total + part @ some, total_bias + float(part @ own), start + len(some)
    count = kept.sum()
    return BoundedRows(
        rows, bias, region, lifted, usual, float(largest[usual].max()), total / count, total_bias / count
    )


def _float64(
    rows: Float[Tensor, "n e"], bias: Float[Tensor, " n"]
) -> tuple[Float[np.ndarray, "n e"], Float[np.ndarray, " n"]]:
    return rows.double().cpu().numpy(), bias.double().cpu().numpy()
