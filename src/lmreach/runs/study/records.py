"""What the ledger keeps of one string, and what its certificate claims."""

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
from lmreach.results.records import Trial
from lmreach.runs.study.conditions import Chunk

__all__ = ["at_a_length", "claim", "crammed_record", "published_record"]

_SHOWN_BEYOND = 4  # tokens of the target that are shown after those that came out


def crammed_record(
    model: LoadedModel,
    one: CramResult,
    ids: Int[np.ndarray, " n"],
    *,
    frame: PromptFrame,
    index: int,
    seconds: float,
    max_steps: int,
) -> Trial:
    """Return the record of a string under our protocols.

    Parameters
    ----------
    frame
        What stands around the vectors.
    index
        Its place among those of its kind.
    max_steps
        Steps that it was to take; ``steps`` are those it took, over all restarts.
    """
    shown = min(ids.size, one.reach + _SHOWN_BEYOND)
    record = Trial(
        index=index,
        reach=one.reach,
        limit=int(ids.size),
        outcome=one.outcome,
        proposed=one.proposed,
        smallest_gap=one.smallest_gap,
        steps=one.steps,
        max_steps=max_steps,
        growing=one.growing,
        growth=one.growth,
        seconds=round(seconds, 3),
        ids=ids.tolist(),
        text=model.text(ids[:shown]),
        emitted=model.text(ids[: one.reach]),
    )
    if one.reach == 0:
        return record
    bits = target_bits(model, torch.from_numpy(one.vectors), ids[: one.reach], frame=frame)
    content = {
        "ce_without_bits": bits.without,
        "ce_with_bits": bits.with_vectors,
        "tokens_gained": bits.tokens_gained,
    }
    return record.model_copy(update=content)


def published_record(
    model: LoadedModel, one: PublishedTrial, ids: Int[np.ndarray, " n"], *, index: int, seconds: float
) -> Trial:
    """Return the record of a trial under the published protocol.

    Its reach is 0: nothing was shown to come out of the vectors alone, since the first id is given.
    """
    return Trial(
        index=index,
        reach=0,
        limit=int(ids.size),
        outcome=one.outcome,
        best=one.best,
        decoded=one.decoded,
        smallest_gap=None,
        steps=one.steps,
        seconds=round(seconds, 3),
        ids=ids.tolist(),
        text=model.text(ids),
        emitted="",
    )


def at_a_length(record: Trial, chunk: Chunk, *, solved: bool) -> Trial:
    """Return the record of one length: with success there, and the strings it was run with."""
    outcome = "solved" if solved else record.outcome
    return record.model_copy(
        update={"solved": solved, "outcome": outcome, "chunk": (chunk.first, chunk.last)}
    )


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
