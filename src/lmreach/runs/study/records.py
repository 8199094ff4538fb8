"""What the ledger keeps of one string, and what its certificate claims."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from lmreach.config import CramPlan
from lmreach.experiments.cramming.cram import CramResult
from lmreach.experiments.cramming.information import target_bits
from lmreach.experiments.cramming.published import PublishedTrial
from lmreach.models.facts import ModelFacts
from lmreach.models.frame import PromptFrame
from lmreach.models.loaded import LoadedModel
from lmreach.runs.study.conditions import Chunk

__all__ = ["at_a_length", "bits_record", "claim", "crammed_record", "published_record"]

_SHOWN_BEYOND = 4  # tokens of the target that are shown after those that came out


def crammed_record(
    model: LoadedModel,
    one: CramResult,
    ids: Int[np.ndarray, " n"],
    *,
    index: int,
    seconds: float,
    max_steps: int,
) -> dict[str, Any]:
    """Return the record of a string under our protocols.

    Parameters
    ----------
    index
        Its place among those of its kind.
    max_steps
        Steps that it was to take; ``steps`` are those it took, over all restarts.
    """
    shown = min(ids.size, one.reach + _SHOWN_BEYOND)
    return {
        "index": index,
        "reach": one.reach,
        "limit": int(ids.size),
        "outcome": one.outcome,
        "proposed": one.proposed,
        "smallest_gap": one.smallest_gap,
        "steps": one.steps,
        "max_steps": max_steps,
        "growing": one.growing,
        "growth": [list(pair) for pair in one.growth],
        "seconds": round(seconds, 3),
        "ids": [int(i) for i in ids],
        "text": model.text(ids[:shown]),
        "emitted": model.text(ids[: one.reach]),
    }


def published_record(
    model: LoadedModel, one: PublishedTrial, ids: Int[np.ndarray, " n"], *, index: int, seconds: float
) -> dict[str, Any]:
    """Return the record of a trial under the published protocol.

    Its reach is 0: nothing was shown to come out of the vectors alone, since the first id is given.
    """
    return {
        "index": index,
        "reach": 0,
        "limit": int(ids.size),
        "best": one.best,
        "decoded": one.decoded,
        "smallest_gap": None,
        "steps": one.steps,
        "seconds": round(seconds, 3),
        "ids": [int(i) for i in ids],
        "text": model.text(ids),
        "emitted": "",
    }


def at_a_length(chunk: Chunk, *, solved: bool, outcome: str) -> dict[str, Any]:
    """Return what a record of one length has besides: success there, and the strings it was run with."""
    told = "solved" if solved else outcome
    return {"solved": solved, "outcome": told, "chunk": [chunk.first, chunk.last]}


def bits_record(
    model: LoadedModel, one: CramResult, ids: Int[np.ndarray, " n"], frame: PromptFrame
) -> dict[str, float | int]:
    """Return the cross-entropy of the prefix that came out, without and with the vectors; {} for none."""
    if one.reach == 0:
        return {}
    bits = target_bits(model, torch.from_numpy(one.vectors), ids[: one.reach], frame=frame)
    return {
        "ce_without_bits": bits.without,
        "ce_with_bits": bits.with_vectors,
        "tokens_gained": bits.tokens_gained,
    }


def claim(facts: ModelFacts, one: CramResult, *, m: int, config: CramPlan) -> dict[str, str]:
    """Return what a certificate claims, and of which model and prompt."""
    return {
        "claim": "greedy decoding from these vectors emits these ids",
        "model": facts.name,
        "fingerprint": facts.fingerprint,
        "dtype": facts.dtype,
        "m": str(m),
        "bos": config.bos,
        "prefix": config.prefix,
        "suffix": config.suffix,
        "smallest_gap": repr(one.smallest_gap),
    }
