"""The exact proof: problems with growing rivals until a token leads all others or cannot.

Scores are computed in float32 as a model would, for all tokens at once; a lead counts if it exceeds what
rounding can do, and if the model's own head shows it too. What float32 leaves open is looked at in
float64. Every certificate is checked in float64 apart from the solver that found it.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.experiments.reach.proof import UnreachableProof
from lmreach.experiments.reach.setting import Setting, Tried
from lmreach.experiments.reach.whitening import Lead
from lmreach.maths.cells import RESOLUTION

__all__ = ["separate"]


def separate(setting: Setting, problems: list[Lead]) -> dict[int, UnreachableProof]:
    """Solve until each token leads all others or cannot; return those that cannot, with the proof."""
    stuck: dict[int, UnreachableProof] = {}

    def advance(pool: list[Lead]) -> list[Lead]:
        return _look(setting, [(one, x) for one in pool if (x := _solve(setting, one, stuck)) is not None])

    setting.in_pools("separation", problems, advance, "the run ended first")
    return stuck


def _solve(
    setting: Setting, lead: Lead, stuck: dict[int, UnreachableProof]
) -> Float[np.ndarray, " x"] | None:
    """Return where the token leads all rivals met so far; None once it is settled or stuck."""
    solved = setting.solve(lead, setting.frame)
    if solved is None:
        return None
    x, weights, _ = solved
    certificate = setting.certificate(lead, weights, 0.0, setting.head.region)
    if certificate is not None and certificate.bound <= RESOLUTION:
        stuck[lead.token] = certificate
        return None
    if x is None:
        reason = "no state leads, but the proof does not reach the resolution"
        setting.verdicts.give_up([lead.token], reason)
    return x


def _look(setting: Setting, tried: list[Tried]) -> list[Lead]:
    """Score the solutions against all tokens: settle winners, hand new rivals to the others."""
    if not tried:
        return []
    scores = setting.scores
    rows = np.array([lead.token for lead, _ in tried])
    x = torch.from_numpy(np.array([x for _, x in tried]))
    states = setting.states(x, torch.ones(len(x), dtype=torch.float64)).float()
    near = scores.nearest(rows, states)
    slack = scores.rounding(rows, near.rivals, states)
    won: Bool[np.ndarray, " n"] = np.asarray((near.leads > slack).all(axis=1))
    still = []
    for k in np.flatnonzero(~won).tolist():
        lead, at = tried[k]
        close = near.rivals[k][near.leads[k] <= slack[k]]
        if lead.add(close, setting.frame.planes(at)):
            still.append(lead)
            continue
        # Rounding is all that stands against it in float32.
        exact = scores.nearest(rows[k : k + 1], states[k : k + 1].double())
        if (exact.leads[0] > RESOLUTION * scores.terms(int(rows[k]), exact.rivals[0], states[k])).all():
            won[k] = True
        elif lead.add(exact.rivals[0], np.empty((0, len(at)))):
            still.append(lead)
        else:
            reason = "the best lead found is below the resolution, with no certificate"
            setting.verdicts.give_up([lead.token], reason)
    if won.any():
        _confirm(setting, rows[won], states[torch.from_numpy(won)])
    return still


def _confirm(setting: Setting, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]) -> None:
    """Settle tokens whose states the model's own head agrees with."""
    verdicts = setting.verdicts
    lead, _, padded = setting.scores.judged(rows, states)
    for k, row in enumerate(rows.tolist()):
        if lead[k] > 0:
            verdicts.settle(row, "reachable", "separation", float(lead[k]))
            verdicts.vectors[row] = states[k].numpy().copy()
            verdicts.padded += int(padded[k])
        else:
            verdicts.give_up([row], "the weights let it lead, but not as the model's own head computes")
