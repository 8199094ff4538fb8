"""Of tokens that cannot lead, which ones tie with the best somewhere."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.experiments.reach.proof import UnreachableProof
from lmreach.experiments.reach.setting import Setting, Tried
from lmreach.experiments.reach.whitening import Lead, WhiteningFrame, frame_of
from lmreach.maths.cells import RESOLUTION, TIE, tie_region
from lmreach.maths.supports import Box, Ellipsoid

__all__ = ["settle_ties"]

_HAIR = 1 - 1e-12  # ties are judged in float64, and may lie on the boundary only
_NEAR_TIE = "it cannot lead; whether it ties is below the resolution"


def settle_ties(setting: Setting, stuck: dict[int, UnreachableProof]) -> None:
    """Tell tokens that tie somewhere from those that do not.

    Parameters
    ----------
    stuck
        Rows that cannot lead, with the proof.
    """
    head, verdicts = setting.head, setting.verdicts
    region = tie_region(head.region, lifted=head.lifted)
    frame = frame_of(head.rows, head.bias, region, head.ordinary) if head.lifted else setting.frame
    place = {int(token_id): row for row, token_id in enumerate(setting.scores.ids)}
    leads = [
        Lead(row, True, np.array([place[i] for i in proof.ids.tolist()]), frame.fixed_planes())
        for row, proof in stuck.items()
    ]
    verdicts.proof.update(stuck)

    def advance(pool: list[Lead]) -> list[Lead]:
        tried = [(one, x) for one in pool if (x := _solve(setting, one, frame, region)) is not None]
        return _look(setting, tried, frame)

    setting.in_pools("ties", leads, advance, "it cannot lead; ties not looked at")


def _solve(
    setting: Setting, lead: Lead, frame: WhiteningFrame, region: Box | Ellipsoid
) -> Float[np.ndarray, " x"] | None:
    """Return where the token ties with all rivals met so far; None once it is settled or given up."""
    solved = setting.solve(lead, frame)
    if solved is None:
        return None
    x, weights, mean = solved
    if _no_tie(setting, lead, weights, mean, region):
        return None
    if x is None:
        setting.verdicts.give_up([lead.token], _NEAR_TIE)
    return x


def _no_tie(
    setting: Setting, lead: Lead, weights: Float[np.ndarray, " r"], mean: float, region: Box | Ellipsoid
) -> bool:
    """Settle as unreachable if the combination proves that a tie would be one of all tokens."""
    certificate = setting.certificate(lead, weights, mean, region)
    if certificate is None:
        return False
    # Where the token trails no rival by more than TIE * m, with m its lead over the mean,
    # bound >= uniform * m - (1 - uniform) * TIE * m, so m is at most bound / room.
    room = certificate.uniform - TIE * (1 - certificate.uniform)
    if not (room > 0 and certificate.bound <= RESOLUTION * room):
        return False
    setting.verdicts.proof[lead.token] = certificate
    setting.verdicts.settle(lead.token, "unreachable", "certificate")
    return True


def _look(setting: Setting, tried: list[Tried], frame: WhiteningFrame) -> list[Lead]:
    """Score the solutions against all tokens in float64: settle ties, hand new rivals to the others."""
    if not tried:
        return []
    verdicts = setting.verdicts
    rows = np.array([lead.token for lead, _ in tried])
    states = _states(setting, torch.from_numpy(np.array([x for _, x in tried])), frame)
    near, sizes = setting.scores.nearest(rows, states), _sizes(setting, states)
    still = []
    for k, (lead, at) in enumerate(tried):
        behind = near.leads[k] < -TIE * near.over_mean[k]
        outside = frame.planes(at)
        if not behind[0] and near.over_mean[k] > RESOLUTION * sizes[k]:
            verdicts.vectors[lead.token] = states[k].numpy().copy()
            verdicts.settle(lead.token, "tie-only", "certificate")
        elif lead.add(near.rivals[k][behind], outside):
            still.append(lead)
        else:
            verdicts.give_up([lead.token], _NEAR_TIE)
    return still


def _states(setting: Setting, x: Float[Tensor, "n x"], frame: WhiteningFrame) -> Float[Tensor, "n h"]:
    states = frame.states(x, inside=_HAIR)
    return states[:, :-1] / states[:, -1:] if setting.head.lifted else states


def _sizes(setting: Setting, states: Float[Tensor, "n h"]) -> Float[np.ndarray, " n"]:
    """Return the largest |score| in the units of unlifted states."""
    if not setting.head.lifted:
        return np.full(len(states), setting.head.size)
    return np.asarray(setting.scores.largest(states).numpy())
