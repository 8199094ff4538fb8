"""Run a study: load, measure the support, compute the limits, cram, write results and report."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch

from lmreach.config import StudyConfig
from lmreach.engine.clock import Clock
from lmreach.engine.provenance import provenance
from lmreach.engine.run import Left, RunEnd, RunKind, Writing, begin, open_run
from lmreach.engine.store import Store
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.maths.precision import unit_roundoff
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent
from lmreach.report.html import render
from lmreach.results.run import Provenance
from lmreach.results.upgrade import read_search
from lmreach.runs.held_limit import held_limit
from lmreach.runs.model_limits import input_box, model_limits
from lmreach.runs.study.conditions import Condition
from lmreach.runs.study.extent import extents
from lmreach.runs.study.ledger import Trial
from lmreach.runs.study.protocol import check_protocol
from lmreach.runs.study.results import Measured, assemble
from lmreach.runs.study.rounds import choose_rounds, serve
from lmreach.runs.study.schedule import AbstractSchedule
from lmreach.runs.study.search import Search, doubt, prepare
from lmreach.runs.study.sections import Sections
from lmreach.runs.study.strings import Strings
from lmreach.runs.study.trials import Cramming

__all__ = ["resume_study", "run_study"]

# Of what remains of a budget before cramming, for choosing the length of the first vectors.
_SEARCH_SHARE = 0.1


def run_study(
    config: StudyConfig,
    out: Path | None = None,
    *,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    fresh: bool = False,
    model: LoadedModel | None = None,
) -> RunEnd:
    """Run the main job on a model and write a run folder, with ``results.json`` and ``report.html``.

    Parameters
    ----------
    config
        What to do; see `StudyConfig`.
    out
        Run folder: new, empty, or that of a run with the same settings, which is gone on with (finished
        strings are kept); None: a new one under ``lmreach-runs``.
    command
        How the run was asked for, kept in the provenance.
    progress
        Told about stages, finished strings and expected time.
    stop
        Asked often; a yes ends the run early, with valid results of what was finished.
    fresh
        Begin anew where ``out`` holds a run, which is moved aside.
    model
        The model itself, where it stands in memory; None: the one that the config names.

    Raises
    ------
    LmreachError
        The model, the targets or the folder cannot be used; no folder is left behind then.
    """
    clock = Clock(config.budget_s, stop)
    progress = progress or Silent()
    stem = "study" if config.budget_s is not None else "cram"
    with begin(RunKind.STUDY, config, out, name=config.model, stem=stem, fresh=fresh) as run:
        progress.stage(f"loading {config.model}")
        model = model or load(config.model, config.load, progress=progress.note)
        job = _Job(model, config, progress, clock)
        job.check()
        facts = model.facts
        run.bind(facts.name, facts.fingerprint, settings_of(model.model), command=command, note=progress.note)
        return job.run(run)


def resume_study(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> RunEnd:
    """Go on with a run: finished strings are kept, missing ones are run, results are written anew.

    Parameters
    ----------
    run
        Folder of the run.
    budget_s
        Seconds for this continuation; None: as long as its plan needs.

    Raises
    ------
    OutputError
        Not a run folder, or the model is no longer the one that was measured.
    """
    begun = open_run(run)
    begun.require(RunKind.STUDY, what="go on with as a study")
    config = begun.envelope.config.model_copy(update={"budget_s": budget_s})
    assert isinstance(config, StudyConfig)
    return run_study(config, run, progress=progress, stop=stop)


class _Job:
    """One run on one loaded model."""

    def __init__(self, model: LoadedModel, config: StudyConfig, progress: Progress, clock: Clock) -> None:
        self.model = model
        self.config = config
        self.progress = progress
        self.clock = clock
        self.strings = Strings(model, config, progress.stage)

    def check(self) -> None:
        """Refuse what cannot be run before anything is written: every m, every target file, the format."""
        unit_roundoff(self.config.limit_dtype)
        check_protocol(self.config.cram)
        if self.config.cram.within:
            held_to(self.config.cram.optimiser(self.config.cram.start_scale or 1.0), self.model)
        self.strings.check()

    def run(self, run: Writing) -> RunEnd:
        """Measure, compute, cram, write."""
        store = run.store
        sections = Sections(self.model, self.config, store, self.clock, self.progress.stage)
        support = sections.support()
        found = model_limits(self.model, support=support, dtype=self.config.limit_dtype)
        decoder_cells = sections.decoder_cells()
        census = sections.census()
        copying = sections.copying()
        search = self._search(store)
        rounds = self._cram(search, store)
        interrupted = self.clock.stopped()
        trials = store.trials()
        held = None if self.config.cram.protocol == "published" else held_to(search.optimiser, self.model)
        if held is not None and self.config.cram.within:
            found = (*found, held_limit(held, vocab=self.model.facts.usable))
        measured = Measured(
            limits=found,
            bits_per_vector=32 * self.model.facts.width if held is None else round(held.bits),
            support=support,
            conditions=rounds.conditions,
            trials=_by_condition(trials, rounds.conditions),
            extents=extents(store, trials, input_rms=self.model.input_rms, box=input_box(self.model)),
            skipped=rounds.skipped,
            settled=rounds.settled,
            cells=decoder_cells,
            census=census,
            copying=copying,
            search=read_search(search.record),
            notes=[*sections.notes, *_start_note(search)],
        )
        results = assemble(
            self.config,
            self.model.facts,
            measured,
            self._provenance(search, interrupted, run.envelope.command),
        )
        self.progress.stage("writing the report")
        render(results, store.folder / "report.html")
        return run.end(results.model_dump(mode="json"), interrupted=interrupted, left=_left(rounds))

    def _search(self, store: Store) -> Search:
        """Choose what the optimiser works on; a resumed run keeps what it had chosen."""
        asked, over = self.config.cram, self.clock.over
        if over():
            # Nothing will be run: what was asked for stands for itself.
            return Search(self.model, asked, {})
        kept: dict[str, Any] | None = store.meta("search")
        if kept is not None and doubt(kept) and not store.keys():
            kept = None  # no string was started from a length that nobody chose
        self.progress.stage("timing steps and finding the length of the first vectors")
        left = self.clock.remaining()
        found = prepare(
            self.model,
            asked,
            m=min(self.config.m),
            kept=kept,
            seconds=None if left is None else _SEARCH_SHARE * left,
            stop=over,
        )
        if not over():
            store.put_meta("search", found.record)
        return found

    def _cram(self, search: Search, store: Store) -> AbstractSchedule:
        """Cram as many strings as the plan and the time ask for."""
        rounds = choose_rounds(
            self.model,
            self.config,
            search,
            self.strings.limit,
            remaining=self.clock.remaining(),
            say=self.progress.stage,
        )
        self.progress.stage("cramming")
        cramming = Cramming(self.model, search, self.strings, store, self.clock, self.progress)
        serve(rounds, cramming.run, self.clock, self.progress)
        return rounds

    def _provenance(self, search: Search, interrupted: bool, command: str) -> Provenance:
        facts = self.model.facts
        threads, device = torch.get_num_threads(), str(self.model.device)
        return Provenance(
            **provenance(threads=threads, device=device, started=self.clock.started),
            dtype=facts.dtype,
            vector_dtype="float32",
            fingerprint=facts.fingerprint,
            command=command,
            seed=self.config.cram.seed,
            seconds=round(self.clock.spent(), 1),
            interrupted=interrupted,
            attention=str(getattr(self.model.model.config, "_attn_implementation", "unknown")),
            search_dtype=search.record.get("dtype"),
            search_attention=search.record.get("attention"),
            start_scale=search.record.get("start_scale"),
            target_files=self.strings.files(),
        )


def _left(rounds: AbstractSchedule) -> list[Left]:
    """Return the strings that were not run: going on runs those that time was missing for."""
    return [
        Left(f"{one.strings} of {one.condition.name}", one.why, again)
        for kept, again in ((rounds.skipped, True), (rounds.settled, False))
        for one in kept
    ]


def _start_note(search: Search) -> list[tuple[str, str]]:
    """Say where the length of the first vectors, which decides more than any setting, rests on nothing."""
    if not search.doubt:
        return []
    started = f"they start {search.start_scale or 1.0:g} times as long as real inputs"
    return [("the probe for the length of the first vectors", f"{search.doubt}; {started}")]


def _by_condition(trials: list[dict[str, Any]], conditions: list[Condition]) -> dict[Condition, list[Trial]]:
    named = {condition.name: condition for condition in conditions}
    found: dict[Condition, list[Trial]] = defaultdict(list)
    for trial in trials:
        found[named[trial["cell"]]].append(cast("Trial", trial))
    return dict(found)
