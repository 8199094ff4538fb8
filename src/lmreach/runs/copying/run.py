"""Copying as a run: train or take a model as it is, find the fall, compare layouts, set the limit beside it.

Every measured length is one trial of the ledger, every m of the cramming another, and training keeps a
checkpoint of its own, so the same command with the same ``--out`` goes on where it stopped.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import torch

from lmreach.config import ExecutorConfig
from lmreach.config.copying import CopyConfig, Decoding
from lmreach.engine.clock import Clock
from lmreach.engine.executors.base import Executor
from lmreach.engine.executors.choose import check_executor, executor_of
from lmreach.engine.keys import digest
from lmreach.engine.provenance import provenance, public, without_path
from lmreach.engine.run import Envelope, Left, RunEnd, RunKind, begin, open_run
from lmreach.engine.store import Store
from lmreach.errors import InputError, problem
from lmreach.experiments.copying.attention import source_attention
from lmreach.experiments.copying.measure import recheck
from lmreach.experiments.copying.prompts import Laid
from lmreach.experiments.copying.train import Trained, train
from lmreach.experiments.copying.walk import Counts, next_length, skipped
from lmreach.identity import weights_of
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.memory import bytes_of
from lmreach.models.source import ModelSource
from lmreach.models.stopping import PassStopped
from lmreach.progress import Progress, Silent
from lmreach.report.html import render
from lmreach.results import CopyResults
from lmreach.results.copying import Attention, Checked, Copying, Crammed
from lmreach.results.records import CopyRecord, CrammedRecord
from lmreach.results.run import Model, NotDone
from lmreach.runs.copying.results import (
    counting,
    counts,
    fall_lengths,
    fit_of,
    layout_parts,
    length_parts,
    mistake_parts,
)
from lmreach.runs.copying.subject import Subject, as_it_is, check, copier_subject, in_layout, no_room, planned
from lmreach.runs.copying.work import Copier, CopyWorker, Length, Part, length_record
from lmreach.runs.copying.work import Crammed as CramAsked
from lmreach.runs.handing_out import answers
from lmreach.runs.intervals import fitted_curve, half_of
from lmreach.runs.model_limits import limit_records, model_limits

__all__ = ["CopyConfig", "copy_section", "resume_copying", "run_copying"]

ByLayout = dict[str, list[CopyRecord]]
_CHECKED = 2  # strings decoded again at batch 1
_LIMIT_DTYPE = "float16"


def run_copying(
    config: CopyConfig,
    out: Path | None,
    *,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    fresh: bool = False,
    model: LoadedModel | None = None,
    begun: float | None = None,
    executor: ExecutorConfig = ExecutorConfig(),  # noqa: B008  (frozen)
) -> RunEnd:
    """Find the length at which a model stops copying; write a run folder with results.json and report.html.

    Parameters
    ----------
    out
        A new or empty folder, or that of an unfinished run with the same settings, which is gone on with;
        None: a new one under ``lmreach-runs``.
    stop
        Asked between training steps and between lengths.
    fresh
        Begin anew where ``out`` holds a run, which is moved aside.
    model
        The model itself, where it stands in memory; None: the one that the config names, or trains.
    begun
        When the budget began, on `time.monotonic`; None: now.
    executor
        Where lengths are measured, once a model is trained.

    Raises
    ------
    InputError
        Settings that cannot be run: a string that does not fit a context, letters without an id.
    ModelError
        A loss that is not finite, or a model that cannot be loaded.
    OutputError
        The folder holds something else, or cannot be written.
    """
    check_executor(executor)
    if executor.shard is not None:
        got = "a copying run, in which results decide what comes next"
        raise InputError(problem("a plan that is known beforehand for --shard", got, "leave it out"))
    check(config)
    watched, clock = progress or Silent(), Clock(config.budget_s, stop, begun=begun)
    name = config.model or (config.train and (config.train.fine_tune or f"copier-{config.train.kind}")) or ""
    with begin(RunKind.COPY, config, out, name=name, fresh=fresh) as written:
        loaded, fingerprint, settings = None, None, None
        if config.model is not None:
            watched.stage(f"loading {config.model}")
            loaded = model or load(config.model, config.load, progress=watched.note)
            in_layout(as_it_is(loaded, config.alphabet).layouts, config.layout)
            name, fingerprint = loaded.facts.name, loaded.facts.fingerprint
            settings = settings_of(loaded.model)
        store = written.bind(without_path(name), fingerprint, settings, command=command, note=watched.note)
        run = _Copying(config, store, written.envelope, watched, clock.over)
        results = run.whole(loaded, "" if model is not None else config.model or "", executor)
        render(results, written.folder / "report.html")
        left = [Left(what, why, run.stopped) for what, why in run.left]
        return written.end(results, interrupted=run.stopped, left=left, failed=run.failed.values())


def resume_copying(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    begun: float | None = None,
    executor: ExecutorConfig = ExecutorConfig(),  # noqa: B008  (frozen)
) -> RunEnd:
    """Go on with a copying run from its folder alone.

    Parameters
    ----------
    budget_s
        Seconds for this part of it; None: no limit.

    Raises
    ------
    OutputError
        The folder is that of no copying run.
    """
    there = open_run(run)
    there.require(RunKind.COPY, what="go on with as a copying run")
    config = there.envelope.config.model_copy(update={"budget_s": budget_s})
    assert isinstance(config, CopyConfig)
    return run_copying(config, run, progress=progress, stop=stop, begun=begun, executor=executor)


def copy_section(
    model: LoadedModel,
    *,
    budget_s: float | None,
    strings: int = 16,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> Copying:
    """Return what a study says of copying: in-context copying of random letters, as far as time allows.

    Raises
    ------
    InputError
        The model cannot be asked to copy letters: no tokenizer, no letters of one token.
    PassStopped
        If no length was through.
    """
    begun, finished = time.monotonic(), True
    subject = as_it_is(model, "")
    usual, records, seconds = subject.layouts[0], dict[int, CopyRecord](), dict[int, float]()
    lengths = planned(CopyConfig(model=model.facts.name), subject, usual)[0]

    def chosen() -> int | None:
        return next_length(counts(list(records.values()), subject.counted), lengths, trained_to=None)

    while (n := chosen()) is not None:
        spent = time.monotonic() - begun
        need = max((took * n / length for length, took in seconds.items()), default=0.0)
        if stop() or (budget_s is not None and records and spent + need > budget_s):
            finished = False
            break
        say(f"copying strings of {n}")
        try:
            records[n] = length_record(model, Length(usual, n, strings, seed, "free_running"))
        except PassStopped:
            if not records:
                raise
            finished = False
            break
        seconds[n] = time.monotonic() - begun - spent
    by_layout = {usual.name: list(records.values())}
    return _section(subject, by_layout, "free_running", finished=finished)


@dataclass(slots=True)
class _Copying:
    """One run: what it works with, and what it leaves out."""

    config: CopyConfig
    store: Store
    envelope: Envelope
    progress: Progress
    stop: Callable[[], bool]
    stopped: bool = False
    left: list[tuple[str, str]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def whole(self, loaded: LoadedModel | None, name: str, on: ExecutorConfig) -> CopyResults:
        """Train if asked, measure everything that is not in the ledger yet, and return the results."""
        begun = time.monotonic()
        trained = None if self.config.train is None else self._train()
        subject = self._subject(loaded, trained)
        by_layout: ByLayout = {}
        crammed: tuple[Crammed, ...] = ()
        if not self._over("everything after training" if trained else "all lengths"):
            with self._executor(subject, name, on) as executor:
                by_layout[subject.layouts[0].name] = self._walk(subject, executor)
                self._other_layouts(subject, by_layout, executor)
                crammed = self._cramming(subject, executor)
        beside = {
            "attention": self._attention(subject, by_layout),
            "checked": self._checked(subject, by_layout),
            "cramming": crammed,
        }
        section = _section(subject, by_layout, self.config.decoding).model_copy(update=beside)
        return self._results(subject, section, time.monotonic() - begun)

    def _train(self) -> Trained:
        assert self.config.train is not None
        self.progress.stage("training")
        trained = train(
            self.config.train, self.store.folder / "training", progress=self.progress, stop=self.stop
        )
        if trained.stopped:
            self._stop_here("the rest of training, and what comes after it")
        return trained

    def _subject(self, loaded: LoadedModel | None, trained: Trained | None) -> Subject:
        if trained is not None:
            subject = copier_subject(self.config, trained)
        else:
            assert loaded is not None
            subject = as_it_is(loaded, self.config.alphabet)
        return replace(subject, layouts=in_layout(subject.layouts, self.config.layout))

    def _executor(self, subject: Subject, name: str, on: ExecutorConfig) -> Executor:
        model, load_config = subject.model, self.config.load

        def there(*, files: bool) -> CopyWorker:
            return CopyWorker(ModelSource.of(model, name, load_config, files=files))

        memory = bytes_of(model.model)
        return executor_of(on, lambda: Copier(model), there, lambda _: None, self.stop, memory=memory)

    def _walk(self, subject: Subject, executor: Executor) -> list[CopyRecord]:
        """Measure the usual layout: the lengths asked for, or those that find the fall.

        Several workers measure the lengths ahead that come next if all goes well; what is counted in the end
        is what one worker would have measured.
        """
        usual = subject.layouts[0]
        lengths, too_long = planned(self.config, subject, usual)
        self.left += too_long
        found: dict[int, CopyRecord] = {}
        while (n := self._next(counts(list(found.values()), subject.counted), lengths)) is not None:
            if self._over(f"strings of {n} and longer"):
                break
            ahead = self._ahead(counts(list(found.values()), subject.counted), lengths, executor.size)
            self._do([self._length(subject, usual, one) for one in ahead], executor)
            record = self._record(subject, usual, n)
            if record is None:
                self._leave(self._length(subject, usual, n), f"strings of {n} and longer")
                return list(found.values())
            found[n] = record
        for n in skipped(counts(list(found.values()), subject.counted), lengths):
            if not self.stopped:
                self.left.append(
                    (f"strings of {n}", "nothing came out right at two shorter lengths in a row")
                )
        return list(found.values())

    def _next(self, done: Counts, lengths: list[int]) -> int | None:
        if self.config.lengths:
            return next((n for n in lengths if n not in done), None)
        return next_length(done, lengths, trained_to=self.config.trained_to)

    def _ahead(self, done: Counts, lengths: list[int], most: int) -> list[int]:
        """Return the next lengths, at most so many, that are measured if all strings of these come out."""
        ahead: list[int] = []
        guessed, right = dict(done), (self.config.strings, self.config.strings)
        while len(ahead) < most and (n := self._next(guessed, lengths)) is not None:
            guessed[n] = right
            ahead.append(n)
        return ahead

    def _other_layouts(self, subject: Subject, by_layout: ByLayout, executor: Executor) -> None:
        if not self.config.layouts or self.stopped or self.failed:
            return
        usual = by_layout[subject.layouts[0].name]
        lengths = fall_lengths(usual, subject.counted)
        reasons = {
            (laid.name, n): no_room(subject.model, laid, n) for laid in subject.layouts[1:] for n in lengths
        }
        fitting = [
            (laid, n) for laid in subject.layouts[1:] for n in lengths if reasons[laid.name, n] is None
        ]
        self._do([self._length(subject, laid, n) for laid, n in fitting], executor)
        for laid in subject.layouts[1:]:
            found = []
            for n in lengths:
                what = f"layout {laid.name!r}, strings of {n}"
                if (reason := reasons[laid.name, n]) is not None:
                    self.left.append((what, reason))
                elif (record := self._record(subject, laid, n)) is not None:
                    found.append(record)
                else:
                    self._leave(self._length(subject, laid, n), what)
            if found:
                by_layout[laid.name] = found

    def _do(self, parts: list[Part], executor: Executor) -> None:
        """Have done what is not in the ledger, and write each part as it comes."""

        def failed(part: Part, why: str) -> None:
            self.failed[part.key] = f"{part.cell} failed: {why}"

        written = self.store.written([part.key for part in parts])
        missing = [part for part in parts if part.key not in written]
        for part, record in answers(executor, missing, self.stop, failed):
            self.store.add(part.key, part.cell, record)

    def _leave(self, part: Part, what: str) -> None:
        """Say why a part is missing: it failed, or the run was stopped before it."""
        if part.key in self.failed:
            self.left.append((what, self.failed[part.key]))
        else:
            self._stop_here(what)

    def _record(self, subject: Subject, laid: Laid, n: int) -> CopyRecord | None:
        """Return the record of a length, if there is one."""
        part = self._length(subject, laid, n)
        record = self.store.find(CopyRecord, part.key)
        if record is not None:
            right = counting(record, subject.counted)
            self.progress.stage(f"{part.cell}: {right.count} of {right.of} right")
        return record

    def _length(self, subject: Subject, laid: Laid, n: int) -> Part:
        facts, config = subject.model.facts, self.config
        key = digest(
            {
                "record": 1,
                "kind": "copy",
                "fingerprint": weights_of(facts.fingerprint),
                "dtype": facts.dtype,
                "layout": laid.name,
                "length": n,
                "strings": config.strings,
                "seed": config.seed,
                "decoding": config.decoding,
                "symbols": [int(i) for i in laid.symbols],
            }
        )
        asked = Length(laid, n, config.strings, config.seed, config.decoding)
        return Part(key, f"{laid.name}, strings of {n}", asked)

    def _attention(self, subject: Subject, by_layout: ByLayout) -> tuple[Attention, ...]:
        """Look at attention at two lengths: the longest that comes out, and the first that does not."""
        usual = subject.layouts[0]
        records = {record.length: record for record in by_layout.get(usual.name, [])}
        done = counts(list(records.values()), subject.counted)
        good = [n for n in sorted(done) if 2 * done[n][0] >= done[n][1]]
        bad = [n for n in sorted(done) if 2 * done[n][0] < done[n][1] and n > max(good, default=0)]
        found = []
        for n in [*good[-1:], *bad[:1]]:
            if self.stopped or self.config.teacher_forced:
                break
            looked = source_attention(subject.model, usual, n, records[n].first_wrong, seed=self.config.seed)
            if looked is not None:
                found.append(Attention.from_object(looked))
        return tuple(found)

    def _checked(self, subject: Subject, by_layout: ByLayout) -> Checked | None:
        """Decode a few strings of the length nearest the fall again, one by one."""
        usual = subject.layouts[0]
        records = by_layout.get(usual.name, [])
        if self.stopped or self.config.teacher_forced or not records:
            return None
        near = fall_lengths(records, subject.counted) or [records[0].length]
        n, strings = near[len(near) // 2], min(_CHECKED, self.config.strings)
        same = recheck(subject.model, usual, n, strings, seed=self.config.seed)
        return Checked(length=n, strings=strings, same=same)

    def _cramming(self, subject: Subject, executor: Executor) -> tuple[Crammed, ...]:
        config, found = self.config, list[Crammed]()
        if config.train is None or not config.cram_strings or self.stopped:
            return ()
        self.progress.stage(f"cramming {config.cram_strings} strings at each m")
        parts = [self._crammed(subject, m) for m in config.cram]
        self._do(parts, executor)
        for part in parts:
            kept = self.store.find(CrammedRecord, part.key)
            if kept is None:
                self._leave(part, part.cell.replace(",", " at"))
            else:
                found.append(kept.crammed)
        return tuple(found)

    def _crammed(self, subject: Subject, m: int) -> Part:
        config = self.config
        asked = [m, config.cram_strings, config.cram_steps, config.seed]
        of = weights_of(subject.model.facts.fingerprint)
        key = digest({"kind": "copy cramming", "of": of, "asked": asked})
        strings = CramAsked(subject.layouts[0], m, config.cram_strings, config.cram_steps, config.seed)
        return Part(key, f"cramming, m = {m}", strings)

    def _over(self, what: str) -> bool:
        if self.stopped or self.stop():
            self._stop_here(what)
        return self.stopped

    def _stop_here(self, what: str) -> None:
        self.stopped = True
        self.left.append((what, "stopped before it; the same command with the same --out goes on"))

    def _results(self, subject: Subject, section: Copying, seconds: float) -> CopyResults:
        facts, started = subject.model.facts, datetime.fromisoformat(self.envelope.started)
        spent = float(self.store.meta("seconds") or 0.0) + seconds
        self.store.put_meta("seconds", spent)
        return CopyResults(
            model=Model.from_object(subject.model.current_facts),
            config=public(self.config, facts.name),
            copying=section,
            limits=limit_records(model_limits(subject.model, dtype=_LIMIT_DTYPE)),
            not_done=tuple(NotDone(what=what, why=why) for what, why in self.left),
            provenance=provenance(
                threads=torch.get_num_threads(),
                device=str(subject.model.device),
                started=started,
                dtype=facts.dtype,
                fingerprint=facts.fingerprint,
                command=self.envelope.command,
                seed=self.config.seed,
                seconds=round(spent, 3),
                interrupted=self.stopped,
            ),
        )


def _section(subject: Subject, by_layout: ByLayout, decoding: Decoding, *, finished: bool = True) -> Copying:
    """Return what the records say, without what is looked at beside them."""
    usual = by_layout.get(subject.layouts[0].name, [])
    training = subject.training
    trained_to = None if training is None else training.longest
    if training is None:
        label = "in-context copying"
    else:
        label = "unseen symbols" if subject.alphabet.unseen else "length generalisation"
    fit = fit_of(usual, subject.counted)
    several = len(by_layout) > 1
    return Copying(
        label=label,
        decoding=decoding,
        counted=subject.counted,
        layout=subject.layouts[0].name,
        trained_to=trained_to,
        training=training,
        alphabet=subject.alphabet,
        lengths=length_parts(usual),
        n50=half_of(fit),
        fit=fitted_curve(fit),
        mistakes=None if decoding == "teacher_forced" else mistake_parts(usual, trained_to),
        layouts=layout_parts(by_layout, subject.layouts[0].name, subject.counted) if several else (),
        attention=(),
        checked=None,
        cramming=(),
        seconds=round(sum(record.seconds for own in by_layout.values() for record in own), 3),
        finished=finished,
    )
