"""The cheap proof: a token that leads at its whitened direction is reachable."""

import numpy as np
import torch
from jaxtyping import Int

from lmreach.experiments.reach.setting import BLOCK, Setting
from lmreach.experiments.reach.whitening import Lead

__all__ = ["settle_by_direction"]


def settle_by_direction(setting: Setting, rows: Int[np.ndarray, " n"]) -> list[Lead]:
    """Settle every token that leads at its direction; return the problems of the others."""
    losers: list[Lead] = []
    for start in range(0, len(rows), BLOCK):
        if setting.over():
            setting.verdicts.give_up(rows[start:].tolist(), "the run ended first")
            break
        block = rows[start : start + BLOCK]
        losers += _settle_block(setting, block)
        setting.on_progress("directions", start + len(block), len(rows))
    return losers


def _settle_block(setting: Setting, block: Int[np.ndarray, " n"]) -> list[Lead]:
    scores, verdicts = setting.scores, setting.verdicts
    states = setting.direction_states(torch.from_numpy(block))
    lead, sure, padded = scores.judged(block, states)
    won = sure > 0
    for row, value in zip(block[won].tolist(), lead[won].tolist(), strict=True):
        verdicts.settle(row, "reachable", "direction", value)
    verdicts.padded += int(padded[won].sum())
    if won.all():
        return []
    near = scores.nearest(block[~won], states[torch.from_numpy(~won)])
    planes = setting.frame.fixed_planes()
    return [
        Lead(row, False, rivals, planes)
        for row, rivals in zip(block[~won].tolist(), near.rivals, strict=True)
    ]
