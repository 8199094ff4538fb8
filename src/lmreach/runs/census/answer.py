"""Whether one given output can be produced: asked of a model and of what runs have proved."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from lmreach.config import CramPlan
from lmreach.engine.run import open_run
from lmreach.errors import InputError, problem
from lmreach.experiments.census.reachable import (
    Answer,
    Candidate,
    check_search,
    confirm,
    search,
    unreachable_token,
)
from lmreach.identity import same_model
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent
from lmreach.runs.certificates.stored import read_certificate
from lmreach.runs.study.search import prepare

__all__ = ["is_reachable"]

# Of the budget, for the length of the first vectors where that is not known yet.
_PROBE_SHARE = 0.2


def is_reachable(
    model: LoadedModel,
    ids: Int[np.ndarray, " n"],
    *,
    ms: tuple[int, ...] = (1, 2, 4, 8),
    runs: tuple[Path, ...] = (),
    config: CramPlan = CramPlan(),  # noqa: B008  (frozen)
    budget_s: float = 300.0,
    part: int = 0,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Answer:
    """Say whether greedy decoding can be made to emit ``ids``: yes or no with proof, else not found.

    Proofs first: an unreachable token, then the certificates in ``runs``, then a search (`search`) on the
    quicker copy and from the length of first vectors that a study would use.

    Parameters
    ----------
    part
        How many searches went before: each draws starts of its own.

    Raises
    ------
    InputError
        No ids, ids the model cannot use, or m that do not fit.
    OutputError
        A run folder that is none.
    """
    watched, ids = progress or Silent(), model.check_ids(ids)
    if not len(ids):
        raise InputError(problem("at least one token", "none", "give some text"))
    watched.stage("looking for a token that can never be emitted")
    answer = unreachable_token(model, ids) or confirm(model, ids, _certificates(model, ids, runs))
    if answer is not None:
        return answer
    begun = time.monotonic()
    watched.stage("timing steps and finding the length of the first vectors")
    least = check_search(model, ids, ms, config)[0]
    ready = prepare(model, config, m=least, seconds=_PROBE_SHARE * budget_s, stop=stop)
    watched.stage(f"searching for vectors that emit {len(ids)} tokens")

    best: dict[int, int] = {}

    def tried(m: int, reach: int) -> None:
        noun = "token" if len(ids) == 1 else "tokens"
        if reach > best.get(m, -1):
            best[m] = reach
            watched.stage(f"m = {m}: {reach} of {len(ids)} {noun} so far")

    return search(
        model,
        ids,
        ms,
        ready.optimiser,
        budget_s=budget_s - (time.monotonic() - begun),
        copy=ready.model,
        part=part,
        why=ready.doubt,
        stop=stop,
        on_try=tried,
    )


def _certificates(
    model: LoadedModel, ids: Int[np.ndarray, " n"], runs: tuple[Path, ...]
) -> Iterator[Candidate]:
    """Give the certificates of this model that claim to emit the ids, or more after them."""
    for folder in runs:
        with open_run(folder).ledger() as store:
            paths = store.certificates()
        for path in paths:
            vectors, claimed, claim = read_certificate(path)
            ours = same_model(claim.get("fingerprint", ""), model.facts.fingerprint)
            if ours and np.array_equal(claimed[: len(ids)], ids):
                bos: Any = claim.get("bos", "none")
                yield Candidate(f"certificate {path.stem} of {folder.name}", vectors, bos)
