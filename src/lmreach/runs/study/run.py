"""Run a study: load, measure the support, compute the limits, cram, write results and report."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch

from lmreach.config import ExecutorConfig, StudyConfig
from lmreach.engine.clock import Clock
from lmreach.engine.executors.base import Executor
from lmreach.engine.executors.choose import check_executor, executor_of
from lmreach.engine.provenance import provenance
from lmreach.engine.run import Left, RunEnd, RunKind, Writing, begin, open_run
from lmreach.engine.store import Store
from lmreach.errors import out_of_memory
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.experiments.states.stream import HiddenSupport
from lmreach.maths.bounds import Limit
from lmreach.maths.precision import unit_roundoff
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.memory import bytes_of
from lmreach.models.source import ModelSource
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.progress import Progress, Silent
from lmreach.report.html import render
from lmreach.results.cells import Cells
from lmreach.results.census import Census
from lmreach.results.copying import Copying
from lmreach.results.records import Trial
from lmreach.results.run import Provenance
from lmreach.results.study import StudyResults
from lmreach.results.upgrade import read_search
from lmreach.runs.held_limit import held_limit
from lmreach.runs.model_limits import input_box, model_limits
from lmreach.runs.study.conditions import Condition
from lmreach.runs.study.extent import extents
from lmreach.runs.study.kept import Kept
from lmreach.runs.study.protocol import check_protocol
from lmreach.runs.study.results import Measured, assemble
from lmreach.runs.study.round import Crammer, StudyWorker
from lmreach.runs.study.rounds import (
    check_shard,
    elsewhere_seconds,
    lengths_of,
    picture_seconds,
    planned,
    replay,
    restored,
    rounds_of,
    serve,
)
from lmreach.runs.study.schedule import AbstractSchedule
from lmreach.runs.study.search import SEARCH_SHARE, Search, prepare
from lmreach.runs.study.sections import Sections
from lmreach.runs.study.step_model import StepModel
from lmreach.runs.study.strings import Strings
from lmreach.runs.study.study_schedule import StudySchedule
from lmreach.runs.study.threads import timed_threads
from lmreach.runs.study.timing import time_steps
from lmreach.runs.study.trials import Cramming, Writer

__all__ = ["resume_study", "run_study"]

Part = TypeVar("Part")

# Looks are written while they take no more than this share of the time.
_WRITING = 0.05


def run_study(
    config: StudyConfig,
    out: Path | None = None,
    *,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    fresh: bool = False,
    model: LoadedModel | None = None,
    begun: float | None = None,
    executor: ExecutorConfig = ExecutorConfig(),  # noqa: B008  (frozen)
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
    begun
        When the budget began, on `time.monotonic`; None: now.
    executor
        Where rounds are run.

    Raises
    ------
    LmreachError
        The model, the targets or the folder cannot be used; no folder is left behind then.
    """
    check_executor(executor)
    clock = Clock(config.budget_s, stop, begun=begun)
    progress = progress or Silent()
    stem = "study" if config.budget_s is not None else "cram"
    with begin(RunKind.STUDY, config, out, name=config.model, stem=stem, fresh=fresh) as run:
        progress.stage(f"loading {config.model}")
        name = "" if model is not None else config.model
        model = model or load(config.model, config.load, progress=progress.note)
        job = _Job(model, name, config, executor, progress, clock)
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
    begun: float | None = None,
    executor: ExecutorConfig = ExecutorConfig(),  # noqa: B008  (frozen)
) -> RunEnd:
    """Go on with a run: finished strings are kept, missing ones are run, results are written anew.

    Parameters
    ----------
    run
        Folder of the run.
    budget_s
        Seconds for this continuation; None: as long as its plan needs.
    begun, executor
        As in `run_study`.

    Raises
    ------
    OutputError
        Not a run folder, or the model is no longer the one that was measured.
    """
    there = open_run(run)
    there.require(RunKind.STUDY, what="go on with as a study")
    config = there.envelope.config.model_copy(update={"budget_s": budget_s})
    assert isinstance(config, StudyConfig)
    return run_study(config, run, progress=progress, stop=stop, begun=begun, executor=executor)


class _Job:
    """One run on one loaded model."""

    def __init__(
        self,
        model: LoadedModel,
        name: str,
        config: StudyConfig,
        on: ExecutorConfig,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.model = model
        self.name = name
        self.on = on
        self.config = config
        self.progress = progress
        self.clock = clock
        self.strings = Strings(model, config, progress.stage)
        self._measured = 0.0

    def check(self) -> None:
        """Refuse what cannot be run before anything is written: every m, every target file, the format."""
        unit_roundoff(self.config.limit_dtype)
        check_protocol(self.config.cram)
        check_shard(self.config, self.on)
        if self.config.cram.within:
            held_to(self.config.cram.optimiser(self.config.cram.start_scale or 1.0), self.model)
        self.strings.check()

    def run(self, run: Writing) -> RunEnd:
        """Measure a first picture, then what else there is time for; cram on; write after every round."""
        store = run.store
        self.progress.stage("timing steps and finding the length of the first vectors")
        with timed_threads(self.model, self.clock.over):
            search = self._search(store)
            rounds, steps = self._plan(search, store)
            sections = Sections(
                self.model, self.config, store, self.clock, self.progress.stage, self._for_sections, steps
            )
            page = _Page(self, run, search, rounds, sections)
            with self._executor(search, store, steps, page) as executor:
                facts = self.model.facts
                cramming = Cramming(facts, search, self.strings, store, self.clock, executor)
                if run.goes_on is not None:
                    with suppress(PassStopped), stoppable(self.clock.late):
                        replay(rounds, cramming)
                self._serve(rounds, cramming, page, until=lambda: rounds.pictured)
                if self.clock.budget_s is not None:
                    page.look()  # the parts beside cramming take a while
                page.measure()
                self._serve(rounds, cramming, page)
            rounds.give_up("the run was stopped" if self.clock.stopped() else "the budget was spent")
            self.progress.stage("writing the report")
            return page.end()

    def _search(self, store: Store) -> Search:
        """Choose what the optimiser works on; a resumed run keeps what it had chosen."""
        asked, over = self.config.cram, self.clock.over
        kept = read_search(store.meta("search"))
        if over():
            # Nothing will be run: what was asked for, or found before, stands for itself.
            return Search(self.model, asked, kept)
        if kept is not None and kept.doubt and not store.keys():
            kept = None  # no string was started from a length that nobody chose
        left = self.clock.remaining()
        seconds = None if left is None else SEARCH_SHARE * left
        found = prepare(
            self.model,
            asked,
            m=min(self.config.m),
            kept=kept,
            seconds=seconds,
            stop=self.clock.within(seconds),
        )
        if found.record is not None and not over():
            store.put_meta("search", found.record.model_dump(mode="json", exclude_unset=True))
        return found

    def _plan(self, search: Search, store: Store) -> tuple[AbstractSchedule, StepModel | None]:
        """Choose the schedule; within a budget, from timed steps."""
        if self.config.cram.protocol != "frontier":
            return lengths_of(self.config, self.strings.limit), None
        budget, kept = self.clock.budget_s, store.meta("plan")
        steps = None if budget is None else self._time_steps(search)
        if kept is not None:
            return restored(self.config, Kept.model_validate(kept), steps), steps
        if budget is None or steps is None:
            # Without a budget all of it is run; where its time is up already, all of it is left.
            return rounds_of(self.config, self.on), None
        return planned(self.config, steps, picture_seconds(budget, self.clock.spent())), steps

    def _time_steps(self, search: Search) -> StepModel | None:
        """Time steps as long as there is time for it."""
        if self.clock.late():
            return None
        try:
            with stoppable(self.clock.late):
                return time_steps(self.model, search, now=self.clock.now)
        except PassStopped:
            return None

    def _serve(
        self,
        rounds: AbstractSchedule,
        cramming: Cramming,
        page: "_Page",
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        if self.clock.over():
            return
        self.progress.stage("cramming")
        begun = self.clock.now()
        serve(rounds, cramming, self.clock, self.progress, until=until, before=page.look)
        self._measured += self.clock.now() - begun

    def _executor(self, search: Search, store: Store, steps: StepModel | None, page: "_Page") -> Executor:
        """Return the workers that rounds are handed to."""
        token_seconds = 0.0 if steps is None else steps.per_token
        tell = Writer(store, self.progress, page.notice)

        def here() -> Crammer:
            return Crammer(self.model, search, token_seconds, self.clock)

        def there(*, files: bool) -> StudyWorker:
            source = ModelSource.of(self.model, self.name, self.config.load, files=files)
            return StudyWorker(source, self.config.cram, search.record, token_seconds)

        return executor_of(self.on, here, there, tell, self.clock.stopped, memory=bytes_of(self.model.model))

    def _for_sections(self) -> float | None:
        """Return the seconds that may go into anything but the measurement, and have not yet."""
        budget = self.clock.budget_s
        if budget is None:
            return None
        elsewhere = self.clock.spent() - self._measured
        return min(elsewhere_seconds(budget) - elsewhere - self.clock.closing, self.clock.remaining() or 0.0)

    def provenance(self, search: Search, interrupted: bool, command: str) -> Provenance:
        facts = self.model.facts
        record = search.record
        return provenance(
            threads=torch.get_num_threads(),
            device=str(self.model.device),
            started=self.clock.started,
            dtype=facts.dtype,
            vector_dtype="float32",
            fingerprint=facts.fingerprint,
            command=command,
            seed=self.config.cram.seed,
            seconds=round(self.clock.spent(), 1),
            interrupted=interrupted,
            attention=str(getattr(self.model.model.config, "_attn_implementation", "unknown")),
            search_dtype=None if record is None else record.dtype,
            search_attention=None if record is None else record.attention,
            start_scale=None if record is None else record.start_scale,
            target_files=self.strings.files(),
        )


class _Page:
    """The results and the report as they stand: written now and then, and at the end."""

    def __init__(
        self, job: _Job, run: Writing, search: Search, rounds: AbstractSchedule, sections: Sections
    ) -> None:
        self._job, self._run, self._store, self._search = job, run, run.store, search
        self._rounds, self._sections = rounds, sections
        self._support: HiddenSupport | None = None
        published = job.config.cram.protocol == "published"
        self._held = None if published else held_to(search.optimiser, job.model)
        self._limits = self._model_limits()
        self._cells: Cells | None = None
        self._census: Census | None = None
        self._copying: Copying | None = None
        self._took, self._last = 1.0, job.clock.now()
        self.has_news = False  # since it was last written

    def notice(self) -> None:
        """Take note that there is something new."""
        self.has_news = True

    def measure(self) -> None:
        """Measure what a study has beside cramming."""
        if self._job.clock.stopped():
            return
        self._support = self._part("support of hidden states", self._sections.support)
        self._limits = self._model_limits()
        self._cells = self._part("decoder cells", self._sections.decoder_cells)
        self._census = self._part("census of outputs", self._sections.census)
        self._copying = self._part("copying in context", self._sections.copying)
        self.has_news = True

    def _part(self, what: str, measure: Callable[[], Part | None]) -> Part | None:
        """Measure one of these; where memory ran out, it is left out and the rest stands."""
        try:
            return measure()
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            self._sections.notes.append((what, "out of memory"))
            return None

    def look(self) -> None:
        """Write what stands, if anything is new and writing takes little of the time."""
        self._keep_plan()
        if self.has_news and self._took <= _WRITING * (self._job.clock.now() - self._last):
            self._write()

    def end(self) -> RunEnd:
        """Write what stands for the last time."""
        self._keep_plan()
        results, interrupted = self._results(), self._job.clock.stopped()
        render(results, self._store.folder / "report.html")
        return self._run.end(
            results,
            interrupted=interrupted,
            left=_left(self._rounds),
            failed=self._rounds.failed,
        )

    def _keep_plan(self) -> None:
        if isinstance(self._rounds, StudySchedule):
            self._store.put_meta("plan", Kept.of(self._rounds).model_dump())

    def _write(self) -> None:
        """Write results and report, each whole or not at all."""
        begun = self._job.clock.now()
        results = self._results()
        self._run.write(results)
        render(results, self._run.folder / "report.html")
        self._last = self._job.clock.now()
        self.has_news = False
        self._took = self._last - begun
        if self._job.clock.budget_s is not None:
            # The last page has more on it, and the machine may be busier.
            self._job.clock.keep_back(1.0 + 1.5 * self._took)

    def _model_limits(self) -> tuple[Limit, ...]:
        job = self._job
        found = model_limits(job.model, support=self._support, dtype=job.config.limit_dtype)
        if self._held is None or not job.config.cram.within:
            return found
        return (*found, held_limit(self._held, vocab=job.model.facts.usable))

    def _results(self) -> StudyResults:
        job, rounds, trials = self._job, self._rounds, self._store.trials(Trial)
        model = job.model
        measured = Measured(
            limits=self._limits,
            bits_per_vector=32 * model.facts.width if self._held is None else round(self._held.bits),
            support=self._support,
            conditions=rounds.conditions,
            lines=rounds.lines(),
            trials=_by_condition(trials, rounds.conditions),
            extents=extents(self._store, trials, input_rms=model.input_rms, box=input_box(model)),
            skipped=rounds.skipped,
            settled=rounds.settled,
            cells=self._cells,
            census=self._census,
            copying=self._copying,
            search=self._search.record,
            notes=[*self._sections.notes, *_start_note(self._search)],
        )
        provenance = job.provenance(self._search, job.clock.stopped(), self._run.envelope.command)
        return assemble(job.config, model.current_facts, measured, provenance)


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


def _by_condition(trials: list[Trial], conditions: list[Condition]) -> dict[Condition, list[Trial]]:
    """Sort records by condition; those of steps that a run chose are told apart by them."""
    named = {(condition.name, condition.steps): condition for condition in conditions}
    found: dict[Condition, list[Trial]] = defaultdict(list)
    for trial in trials:
        condition = named.get((trial.cell, trial.max_steps or 0)) or named.get((trial.cell, 0))
        if condition is not None:
            found[condition].append(trial)
    return dict(found)
