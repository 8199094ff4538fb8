"""Whether a model can be made to produce one given output: asked, answered, kept with its proof as a run."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from lmreach.config import CramPlan, ReachableConfig
from lmreach.config.given import configure
from lmreach.config.written import ids_of
from lmreach.engine.keys import digest
from lmreach.engine.provenance import provenance, public
from lmreach.engine.run import Left, RunConfig, RunKind, Writing, begin, open_run
from lmreach.engine.store import Proof
from lmreach.experiments.census.reachable import Answer
from lmreach.identity import weights_of
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, watching
from lmreach.report.html import render
from lmreach.results.answers import ReachabilityResults
from lmreach.results.records import AnswerRecord
from lmreach.results.run import Model, NotDone
from lmreach.runs.census.answer import is_reachable

__all__ = ["reachability", "resume_reachability"]

_SEARCHES = "searches"


def reachability(
    model: ModelLike,
    text: str,
    config: ReachableConfig | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: Tokenizer | None = None,
    save: bool = False,
    fresh: bool = False,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> ReachabilityResults:
    """Say whether greedy decoding can be made to emit a text: yes or no with a proof, else not found.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    text
        The output asked about, or its ids as ``ids:1,2,3``.
    config, settings
        See `ReachableConfig`; settings by name replace those of the config.
    out
        Run folder for the answer and its proof: new, empty, or that of the same question, whose search is
        gone on with.
    tokenizer
        Goes with a model of transformers.
    save
        Without ``out``: keep the certificate of a search that succeeded, in a new folder under
        ``lmreach-runs``.
    fresh
        Begin anew where ``out`` holds a run, which is moved aside.
    command
        How it was asked for, kept in the provenance.
    progress
        Told how far the search is.
    stop
        Asked often; a yes ends the search.

    Raises
    ------
    LmreachError
        No text, ids the model cannot use, a run folder that is none, or one that cannot be written.
    """
    name = model.facts.name if isinstance(model, LoadedModel) else "model"
    name = str(model) if isinstance(model, str | Path) else name
    asked = configure(ReachableConfig, config, settings).model_copy(update={"model": name, "text": text})
    with watching(progress) as watched:
        job = _Question(model, tokenizer, asked, command, watched, stop)
        return _ask(job, asked, None if out is None else Path(out), save=save, fresh=fresh)


def _ask(
    job: "_Question", asked: ReachableConfig, place: Path | None, *, save: bool, fresh: bool
) -> ReachabilityResults:
    if place is None and not fresh:
        loaded = job.load()
        answer = job.answer(loaded)
        # A proof that is a certificate already needs no second one.
        if not (save and answer.vectors is not None and answer.tried):
            return job.results(loaded, answer, asked, datetime.now(UTC))
        with begin(RunKind.REACHABLE, asked, None, name=asked.model) as run:
            return job.keep(run, loaded, answer, searches=1)
    with begin(RunKind.REACHABLE, asked, place, name=asked.model, fresh=fresh) as run:
        loaded, searches = job.load(), 0
        own = () if run.goes_on is None else (run.folder,)
        if own:
            with open_run(run.folder).ledger() as store:
                searches = int(store.meta(_SEARCHES) or 0)
        answer = job.answer(loaded, own, searches)
        return job.keep(run, loaded, answer, searches + 1)


def resume_reachability(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> ReachabilityResults:
    """Go on with the search of a text from its folder alone; an answer that is there is confirmed.

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
    return reachability(config.model, config.text, config, out=run, progress=progress, stop=stop)


class _Question:
    """One question to one model."""

    def __init__(
        self,
        model: ModelLike,
        tokenizer: Tokenizer | None,
        config: ReachableConfig,
        command: str,
        progress: Progress,
        stop: Callable[[], bool],
    ) -> None:
        self._model, self._tokenizer, self._config, self._command = model, tokenizer, config, command
        self._progress, self._stop = progress, stop

    def load(self) -> LoadedModel:
        self._progress.stage(f"loading {self._config.model}")
        return load(self._model, self._config.load, tokenizer=self._tokenizer, progress=self._progress.note)

    def answer(self, model: LoadedModel, own: tuple[Path, ...] = (), part: int = 0) -> Answer:
        """Ask: proofs of the run itself first."""
        config = self._config
        return is_reachable(
            model,
            _ids(model, config.text),
            ms=config.m,
            runs=(*own, *map(Path, config.runs)),
            config=CramPlan(bos=config.bos, seed=config.seed),
            budget_s=config.seconds,
            part=part,
            progress=self._progress,
            stop=self._stop,
        )

    def keep(self, run: Writing, model: LoadedModel, answer: Answer, searches: int) -> ReachabilityResults:
        """Write the answer and its proof; what was not found is no answer, and may be searched again."""
        facts, found = model.facts, answer.verdict != "not found"
        store = run.bind(
            facts.name,
            facts.fingerprint,
            settings_of(model.model),
            command=self._command,
            note=self._progress.note,
        )
        store.put_meta(_SEARCHES, searches)
        asked = {
            "ids": answer.ids.tolist(),
            "weights": weights_of(facts.fingerprint),
            "dtype": facts.dtype,
            "bos": answer.bos,
        }
        key = digest({"record": 1, "kind": "reachable", **asked})
        if found:
            proof = None if answer.vectors is None else _proof(answer, model)
            cell = "reachable" if answer.m is None else f"reachable m={answer.m}"
            reach = 0 if proof is None else len(answer.ids)
            store.add(key, cell, AnswerRecord.from_object(answer.written(), reach=reach), proof)
        interrupted = not found and self._stop()
        path = store.certificate_path(key)
        results = self.results(
            model,
            answer,
            run.envelope.config,
            datetime.fromisoformat(run.envelope.started),
            command=run.envelope.command,
            interrupted=interrupted,
            certificate=path.relative_to(run.folder).as_posix() if path.is_file() else None,
        )
        render(results, run.folder / "report.html")
        left = [] if found else [Left("the search", answer.reason)]
        run.end(results, interrupted=interrupted, left=left)
        return results.read_from(run.folder)

    def results(
        self,
        model: LoadedModel,
        answer: Answer,
        config: RunConfig,
        started: datetime,
        *,
        command: str = "",
        interrupted: bool = False,
        certificate: str | None = None,
    ) -> ReachabilityResults:
        """Return the answer with what it was asked of."""
        facts, left = model.facts, answer.verdict == "not found"
        return ReachabilityResults.from_object(
            answer.written(),
            model=Model.from_object(model.current_facts),
            config=public(config, facts.name),
            certificate=certificate,
            not_done=(NotDone(what="the search", why=answer.reason),) if left else (),
            provenance=provenance(
                threads=torch.get_num_threads(),
                device=str(model.device),
                started=started,
                fingerprint=facts.fingerprint,
                command=command or self._command,
                seconds=round(answer.seconds, 3),
                interrupted=interrupted,
            ),
        )


def _ids(model: LoadedModel, text: str) -> Int[np.ndarray, " n"]:
    if not text.startswith("ids:"):
        return model.encode(text)
    return np.asarray(ids_of(text.removeprefix("ids:"), repr(text)), dtype=np.int64)


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
