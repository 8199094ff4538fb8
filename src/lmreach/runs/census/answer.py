"""Whether one given output can be produced: asked of a model and of what runs have proved, kept as a run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from lmreach.config import CramConfig
from lmreach.config.census import ReachableConfig
from lmreach.config.written import ids_of
from lmreach.engine.keys import digest
from lmreach.engine.provenance import provenance, public
from lmreach.engine.run import Envelope, Left, RunEnd, RunKind, Writing, begin, open_run
from lmreach.engine.store import Proof, read_certificate
from lmreach.errors import InputError, problem
from lmreach.experiments.census.reachable import Answer, Candidate, confirm, search, unreachable_token
from lmreach.identity import same_model, weights_of
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent

__all__ = ["Asked", "is_reachable", "resume_reachable", "run_reachable"]

SCHEMA = 1
_SEARCHES = "searches"


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a question.

    Attributes
    ----------
    model
        The model's name.
    answer
        The answer and its ground.
    certificate
        Where the vectors of a "yes" are; None: no, not found, or a proof of another run.
    end
        The run that was written; None: there was nothing to keep.
    """

    model: str
    answer: Answer
    certificate: Path | None
    end: RunEnd | None


def is_reachable(
    model: LoadedModel,
    ids: Int[np.ndarray, " n"],
    *,
    ms: tuple[int, ...] = (1, 2, 4, 8),
    runs: tuple[Path, ...] = (),
    config: CramConfig = CramConfig(),  # noqa: B008  (frozen)
    budget_s: float = 300.0,
    part: int = 0,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Answer:
    """Say whether greedy decoding can be made to emit ``ids``: yes or no with proof, else not found.

    Proofs first: an unreachable token, then the certificates in ``runs``, then a search (`search`).

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
    watched.stage(f"searching for vectors that emit {len(ids)} tokens")

    best: dict[int, int] = {}

    def tried(m: int, reach: int) -> None:
        if reach > best.get(m, -1):
            best[m] = reach
            watched.stage(f"m = {m}: {reach} of {len(ids)} tokens so far")

    return search(model, ids, ms, config, budget_s=budget_s, part=part, stop=stop, on_try=tried)


def run_reachable(
    config: ReachableConfig,
    out: Path | None = None,
    *,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    fresh: bool = False,
) -> Asked:
    """Ask whether a model can be made to say something, and keep the answer with its proof as a run.

    Parameters
    ----------
    out
        A new or empty folder, or that of the same question, whose search is gone on with; None: a new one
        under ``lmreach-runs``, made only for vectors that a search has found.
    fresh
        Begin anew where ``out`` holds a run, which is moved aside.

    Raises
    ------
    InputError
        A text that the model cannot be asked for, or m that do not fit.
    OutputError
        The folder holds something else, or cannot be written.
    """
    watched = progress or Silent()
    if out is None and not fresh:
        model, ids = _brought_in(config, watched)
        answer = _asked(model, ids, config, (), 0, watched, stop)
        if answer.vectors is None or not answer.tried:  # a proof that is a certificate needs no second one
            return Asked(model.facts.name, answer, None, None)
        with begin(RunKind.REACHABLE, config, None, name=config.model) as run:
            return _kept(run, model, answer, command, 0, stop, watched)
    with begin(RunKind.REACHABLE, config, out, name=config.model, fresh=fresh) as run:
        model, ids = _brought_in(config, watched)
        part, own = 0, (run.folder,) if run.goes_on is not None else ()
        if own:
            with open_run(run.folder).ledger() as store:
                part = int(store.meta(_SEARCHES) or 0)
        answer = _asked(model, ids, config, own, part, watched, stop)
        return _kept(run, model, answer, command, part + 1, stop, watched)


def resume_reachable(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Asked:
    """Go on with the search of a question from its folder alone; an answer that is there is confirmed.

    Parameters
    ----------
    budget_s
        Seconds for this part of the search; None: as many as it was begun with.

    Raises
    ------
    OutputError
        The folder is that of no question.
    """
    begun = open_run(run)
    begun.require(RunKind.REACHABLE, what="go on with as a question")
    config = begun.envelope.config
    assert isinstance(config, ReachableConfig)
    if budget_s is not None:
        config = config.model_copy(update={"budget_s": budget_s})
    return run_reachable(config, run, progress=progress, stop=stop)


def _brought_in(config: ReachableConfig, watched: Progress) -> tuple[LoadedModel, Int[np.ndarray, " n"]]:
    watched.stage(f"loading {config.model}")
    model = load(config.model, config.load, progress=watched.note)
    return model, model.check_ids(_ids(model, config.text))


def _ids(model: LoadedModel, text: str) -> Sequence[int] | Int[np.ndarray, " n"]:
    if not text.startswith("ids:"):
        return model.encode(text)
    return ids_of(text.removeprefix("ids:"), repr(text))


def _asked(
    model: LoadedModel,
    ids: Int[np.ndarray, " n"],
    config: ReachableConfig,
    own: tuple[Path, ...],
    part: int,
    watched: Progress,
    stop: Callable[[], bool],
) -> Answer:
    assert config.budget_s is not None, "refused by the config"
    return is_reachable(
        model,
        ids,
        ms=config.m,
        runs=(*own, *map(Path, config.runs)),
        config=CramConfig(bos=config.bos, seed=config.seed),
        budget_s=config.budget_s,
        part=part,
        progress=watched,
        stop=stop,
    )


def _kept(
    run: Writing,
    model: LoadedModel,
    answer: Answer,
    command: str,
    searches: int,
    stop: Callable[[], bool],
    watched: Progress,
) -> Asked:
    """Write the answer and its proof."""
    facts = model.facts
    store = run.bind(
        facts.name, facts.fingerprint, settings_of(model.model), command=command, note=watched.note
    )
    store.put_meta(_SEARCHES, searches)
    weights = weights_of(facts.fingerprint)
    asked = {"ids": answer.ids.tolist(), "weights": weights, "dtype": facts.dtype, "bos": answer.bos}
    key = digest({"record": 1, "kind": "reachable", **asked})
    if answer.verdict != "not found":
        proof = None if answer.vectors is None else _proof(answer, model)
        cell = "reachable" if answer.m is None else f"reachable m={answer.m}"
        store.add(key, cell, {**answer.as_dict(), "reach": 0 if proof is None else len(answer.ids)}, proof)
    interrupted = stop() and answer.verdict == "not found"
    left = [Left("the search", answer.reason)] if answer.verdict == "not found" else []
    results = _results(model, answer, run.envelope, interrupted)
    end = run.end(results, interrupted=interrupted, left=left)
    certificate = store.certificate_path(key)
    return Asked(facts.name, answer, certificate if certificate.is_file() else None, end)


def _proof(answer: Answer, model: LoadedModel) -> Proof:
    assert answer.vectors is not None
    claim = {
        "claim": "greedy decoding from these vectors emits these ids",
        "model": model.facts.name,
        "fingerprint": model.facts.fingerprint,
        "dtype": model.facts.dtype,
        "m": str(answer.m),
        "bos": answer.bos,
        "smallest_gap": repr(answer.smallest_gap),
    }
    return Proof(answer.vectors, answer.ids, claim)


def _results(model: LoadedModel, answer: Answer, envelope: Envelope, interrupted: bool) -> dict[str, Any]:
    started = datetime.fromisoformat(envelope.started)
    where = provenance(threads=torch.get_num_threads(), device=str(model.device), started=started)
    return {
        "schema": SCHEMA,
        "kind": RunKind.REACHABLE.value,
        "model_name": model.facts.name,
        "model": model.facts.as_dict(),
        "config": public(envelope.config, model.facts.name),
        "results": {"answer": answer.as_dict()},
        "not_done": [],
        "provenance": {
            **where,
            "fingerprint": model.facts.fingerprint,
            "command": envelope.command,
            "seconds": round(answer.seconds, 3),
            "interrupted": interrupted,
        },
    }


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
