"""Run a study: load, measure the support, compute the limits, cram cell by cell, write results and report."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size

from lmreach.config import Bos, CramConfig, StudyConfig
from lmreach.engine.keys import cram_key, key_seed, occurrences
from lmreach.engine.provenance import provenance
from lmreach.engine.store import Store
from lmreach.errors import InputError, OutputError, problem
from lmreach.experiments.cram import Crammed, check_lengths, cram
from lmreach.experiments.geometry import HiddenSupport, hidden_support
from lmreach.experiments.information import target_bits
from lmreach.experiments.published import PublishedSettings, PublishedTrial, cram_published
from lmreach.experiments.targets import Targets, draw
from lmreach.maths.precision import unit_roundoff
from lmreach.models.frame import Frame, frame_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent
from lmreach.report.html import render
from lmreach.study import folder as run_folder
from lmreach.study.cells_section import cells_section
from lmreach.study.census import census_section
from lmreach.study.copying import copy_section
from lmreach.study.extent import extents
from lmreach.study.lengths import LengthSchedule, Placing, chosen, given, published_grid
from lmreach.study.model_limits import input_box, model_limits
from lmreach.study.probe import seconds_per_string
from lmreach.study.results import assemble, reach_arrays
from lmreach.study.schedule import Cell, Chunk, Schedule
from lmreach.study.search import Search, prepare

# What is kept back of a budget to write results and draw the report.
_CLOSING_S = 10.0
# Of what remains of a budget before cramming, for the decoder's cells.
_CELLS_SHARE = 0.12
_CENSUS_SHARE = 0.06
_COPY_SHARE = 0.15
_ROUND_SIZES = (8, 6, 4)
_ROUND_WITHOUT_BUDGET = 32
# Tokens a vector that are tried at most unless asked for, and at least so many on the published grid.
_LIMIT_PER_VECTOR = 64
_LIMIT_OF_GRID = 120


@dataclass(frozen=True, slots=True)
class StudyEnd:
    """How a study ended.

    Attributes
    ----------
    folder
        The run folder, with ``results.json`` and ``report.html``.
    interrupted
        Whether it was stopped before its plan or budget was through.
    """

    folder: Path
    interrupted: bool


def run_study(
    config: StudyConfig,
    out: Path | None = None,
    *,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> StudyEnd:
    """Run the main job on a model and write a run folder.

    Parameters
    ----------
    config
        What to do; see `StudyConfig`.
    out
        Run folder; None: a new one under ``lmreach-runs``.
    command
        How the run was asked for, kept in the provenance.
    progress
        Told about stages, finished strings and expected time.
    stop
        Asked often; a yes ends the run early, with valid results of what was finished.

    Raises
    ------
    LmreachError
        The model, the targets or the folder cannot be used; no folder is left behind then.
    """
    begun = time.monotonic()
    progress = progress or Silent()
    where = run_folder.choose(out, config.model, "study" if config.budget_s is not None else "cram")
    progress.stage(f"loading {config.model}")
    model = load(config.model, config.load, progress=progress.note)
    job = _Job(model, config, command, progress, stop, begun)
    job.check()
    with Store(where) as store:
        store.put_meta("config", config.model_dump(mode="json"))
        store.put_meta("fingerprint", model.facts.fingerprint)
        store.put_meta("command", command)
        return job.run(store)


def resume_study(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> StudyEnd:
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
    begun = time.monotonic()
    progress = progress or Silent()
    with Store(run_folder.existing(run)) as store:
        kept = store.meta("config")
        if kept is None:
            raise OutputError(problem("a run with its settings", f"'{run}' without them", "start a new run"))
        config = StudyConfig.model_validate(kept).model_copy(update={"budget_s": budget_s})
        progress.stage(f"loading {config.model}")
        model = load(config.model, config.load, progress=progress.note)
        if model.facts.fingerprint != store.meta("fingerprint"):
            raise OutputError(
                problem(
                    f"the model of the run (weights {store.meta('fingerprint')})",
                    f"weights {model.facts.fingerprint}",
                    "bring the same weights or start a new run",
                )
            )
        return _Job(model, config, store.meta("command") or "", progress, stop, begun).run(store)


class _Job:
    """One run on one loaded model."""

    def __init__(
        self,
        model: LoadedModel,
        config: StudyConfig,
        command: str,
        progress: Progress,
        stop: Callable[[], bool],
        begun: float,
    ) -> None:
        self.model = model
        self.config = config
        self.command = command
        self.progress = progress
        self.begun = begun
        self.started = datetime.now(UTC) - timedelta(seconds=time.monotonic() - begun)
        self.deadline = None if config.budget_s is None else begun + config.budget_s - _CLOSING_S
        self.asked_to_stop = stop
        self.notes: list[tuple[str, str]] = []
        self._targets: dict[str, Targets] = {}
        # Until a search is prepared, what was asked for stands for itself.
        self.search = Search(model, config.cram, {})

    def check(self) -> None:
        """Refuse what cannot be run before anything is written: every m, every target file, the format."""
        unit_roundoff(self.config.limit_dtype)
        check_protocol(self.config.cram)
        for m in self.config.m:
            check_lengths(self.model, m, self._limit(m), self.config.cram)
        for kind in self.config.targets:
            if kind.partition(":")[0] in ("text", "ids", "words", "dataset"):
                self._ids(kind)
            elif kind not in ("random", "self"):
                draw(self.model, kind, 1, 1, seed=0)
        if not self.model.plain_ids.size:
            raise InputError(problem("a model with usable, non-special ids", "none", "check its tokenizer"))

    def run(self, store: Store) -> StudyEnd:
        """Measure, compute, cram, write."""
        support = self._support()
        found = model_limits(self.model, support=support, dtype=self.config.limit_dtype)
        decoder_cells = self._decoder_cells(store)
        census = self._census(store)
        copying = self._copying(store)
        self.search = self._prepare_search(store)
        schedule = self._cram_all(store)
        interrupted = self.asked_to_stop()
        cells = schedule.cells
        trials = store.trials()
        results = assemble(
            self.config,
            self.model.facts,
            limits=found,
            support=support,
            cells=cells,
            trials=_by_cell(trials, cells),
            extents=extents(store, trials, input_rms=self.model.input_rms, box=input_box(self.model)),
            skipped=schedule.skipped,
            settled=schedule.settled,
            decoder_cells=decoder_cells,
            census=census,
            copying=copying,
            search=self.search.record,
            notes=self.notes,
            provenance=self._provenance(interrupted),
        )
        self.progress.stage("writing the report")
        run_folder.write_json(store.folder / "results.json", results)
        render(results, store.folder / "report.html")
        return StudyEnd(store.folder, interrupted)

    def _support(self) -> HiddenSupport | None:
        if self.config.support_positions == 0:
            self.notes.append(("support of hidden states", "not asked for"))
            return None
        self.progress.stage("measuring the support of hidden states")
        support = hidden_support(
            self.model,
            positions=self.config.support_positions,
            seed=self.config.cram.seed,
            stop=self._out_of_time,
        )
        if support is None:
            self.notes.append(("support of hidden states", "stopped before the first prompts were through"))
        return support

    def _decoder_cells(self, store: Store) -> dict[str, Any] | None:
        """Measure the decoder's cells within their share of the budget, or take what the run has of them."""
        if not self.config.decoder_cells:
            self.notes.append(("decoder cells", "not asked for"))
            return None
        kept = store.meta("decoder_cells")
        if kept is None:
            remaining = self._remaining()
            found, notes = cells_section(
                self.model,
                seconds=None if remaining is None else _CELLS_SHARE * remaining,
                seed=self.config.cram.seed,
                limit_dtype=self.config.limit_dtype,
                stop=self._out_of_time,
                say=self.progress.stage,
            )
            kept = {"found": found, "notes": notes}
            if not self.asked_to_stop():
                store.put_meta("decoder_cells", kept)
        self.notes += [(what, why) for what, why in kept["notes"]]
        measured: dict[str, Any] = kept["found"]
        return measured

    def _census(self, store: Store) -> dict[str, Any] | None:
        """Count the outputs of one-token prompts within a share of the budget; kept for a resume."""
        kept = store.meta("census_of_tokens")
        remaining = self._remaining()
        if kept is None and (not self.config.decoder_cells or remaining is None):
            self.notes.append(("census of outputs", "only within a budget; see lmreach census"))
        elif kept is None and self._out_of_time():
            self.notes.append(("census of outputs", "no time was left"))
        elif kept is None and remaining is not None:
            self.progress.stage("counting the outputs of one-token prompts")
            bos: Bos = "none" if self.model.facts.bos_id is None else "before"
            kept = census_section(
                self.model,
                budget_s=_CENSUS_SHARE * remaining,
                bos=bos,
                seed=self.config.cram.seed,
                stop=self._out_of_time,
            )
            store.put_meta("census_of_tokens", kept)
        counted: dict[str, Any] | None = kept
        return counted

    def _copying(self, store: Store) -> dict[str, Any] | None:
        """Ask the model to copy strings within a share of the budget; kept for a resume."""
        if not self.config.copying:
            return None
        kept: dict[str, Any] | None = store.meta("copying")
        if kept is None and self._out_of_time():
            self.notes.append(("copying in context", "no time was left"))
        if kept is not None or self._out_of_time():
            return kept
        remaining = self._remaining()
        self.progress.stage("asking for copies of random strings")
        try:
            kept = copy_section(
                self.model,
                budget_s=None if remaining is None else _COPY_SHARE * remaining,
                seed=self.config.cram.seed,
                stop=self._out_of_time,
                say=self.progress.stage,
            )
        except InputError as error:
            self.notes.append(("copying in context", str(error)))
            return None
        if not kept["finished"]:
            self.notes.append(("copying of longer strings", "its share of the budget was spent"))
        if not self.asked_to_stop():
            store.put_meta("copying", kept)
        return kept

    def _prepare_search(self, store: Store) -> Search:
        """Choose what the optimiser works on; a resumed run keeps what it had chosen."""
        if self._out_of_time():
            return self.search
        kept: dict[str, Any] | None = store.meta("search")
        self.progress.stage("timing steps and finding the length of the first vectors")
        found = prepare(self.model, self.config.cram, m=min(self.config.m), kept=kept, stop=self._out_of_time)
        if not self._out_of_time():
            store.put_meta("search", found.record)
        return found

    def _cram_all(self, store: Store) -> Schedule | LengthSchedule:
        schedule = self._schedule()
        self.progress.stage("cramming")
        while not self._out_of_time():
            self.progress.plan(schedule.planned)
            self.progress.expect(schedule.expected(self._remaining()))
            chunk = schedule.next(self._remaining())
            if chunk is None:
                return schedule
            self._cram_chunk(store, schedule, chunk)
        why = "the run was stopped" if self.asked_to_stop() else "the budget was spent"
        for cell in schedule.cells:
            if not any(one.cell == cell for one in (*schedule.skipped, *schedule.settled)):
                schedule.close(cell, why)
        return schedule

    def _schedule(self) -> Schedule | LengthSchedule:
        """Choose the strings per round: as many as let every cell have two rounds within the budget."""
        cram_config, m = self.config.cram, self.config.m
        if cram_config.protocol != "frontier":
            return self._length_schedule()
        remaining, width = self._remaining(), self.config.relative_width
        if remaining is None:
            return Schedule.of(self.config.targets, m, cram_config.strings, _ROUND_WITHOUT_BUDGET, width)
        self.progress.stage("timing one step")
        each = seconds_per_string(
            self.model, self.search.config, rows=_ROUND_SIZES[0], search=self.search.model
        )
        weight = each * sum(m) * len(self.config.targets)
        size = next((s for s in _ROUND_SIZES if 2 * s * weight <= remaining), _ROUND_SIZES[-1])
        return Schedule.of(self.config.targets, m, cram_config.strings, size, width)

    def _length_schedule(self) -> LengthSchedule:
        """Place lengths as asked for, by what is seen, or on the published grid."""
        asked = self.config.cram
        free = asked.protocol == "fixed" and not asked.length

        def place(cell: Cell) -> Placing:
            if asked.length:
                return given(asked.length, asked.strings)
            by = chosen if free else published_grid
            return by(cell.m, self._limit(cell.m), asked.strings)

        # Strings at lengths that were asked for are all run: only where lengths are chosen is there a choice.
        width = self.config.relative_width if free else None
        most = asked.strings * max(len(set(asked.length)), 1)
        return LengthSchedule.of(self.config.targets, self.config.m, place, self._limit, most, width)

    def _cram_chunk(self, store: Store, schedule: Schedule | LengthSchedule, chunk: Chunk) -> None:
        cell, began = chunk.cell, time.monotonic()
        n = chunk.n or self._limit(cell.m)
        drawn = self._ids(cell.target).ids[: chunk.last, :n]
        ids = drawn[chunk.first :]
        facts, settings = self.model.facts, self.search.config
        keys = [
            cram_key(
                fingerprint=facts.fingerprint,
                dtype=facts.dtype,
                m=cell.m,
                target=row,
                config=settings,
                occurrence=earlier,
            )
            for row, earlier in zip(ids, occurrences(drawn)[chunk.first :], strict=True)
        ]
        written = store.keys()
        missing = [i for i, key in enumerate(keys) if key not in written]
        pace = _Pace()

        def finished(one: Crammed) -> None:
            place = missing[one.index]
            target, string = ids[place], chunk.first + place
            record = _record(self.model, one, target, string, pace.lap()) | self._bits(one, target)
            if chunk.n is not None:
                record |= _at_a_length(chunk, solved=one.reach >= chunk.n, outcome=record["outcome"])
            if one.reach > 0:
                # First the proof, then the claim: a kill in between leaves no claim without its proof.
                store.put_certificate(keys[place], one.vectors, target[: one.reach], self._claim(cell, one))
            store.add(keys[place], cell.name, record)
            self.progress.string(_shown(chunk), one.reach, record["outcome"])

        def published(index: int, one: PublishedTrial) -> None:
            place = missing[index]
            record = _published_record(self.model, one, ids[place], chunk.first + place, pace.lap())
            store.add(keys[place], cell.name, record | _at_a_length(chunk, one.solved, one.outcome))
            self.progress.string(_shown(chunk), n if one.solved else 0, one.outcome)

        left, left_keys = ids[missing], [keys[i] for i in missing]
        if not missing:
            done = 0
        elif settings.protocol == "published":
            done = self._cram_published(left, cell.m, left_keys, published)
        else:
            done = len(self._cram(left, cell.m, left_keys, finished))
        if done == len(missing):
            by_key = {trial["key"]: trial for trial in store.trials()}
            own = [by_key[key] for key in keys]
            # A resumed run reads its costs off the ledger: what was run before decides as it did then.
            spent = time.monotonic() - began if missing else sum(trial["seconds"] for trial in own)
            if isinstance(schedule, LengthSchedule):
                schedule.finish(chunk, spent, [trial["solved"] for trial in own])
            else:
                schedule.finish(chunk, spent, *reach_arrays(own))

    def _cram_published(
        self,
        ids: np.ndarray,
        m: int,
        keys: list[str],
        finished: Callable[[int, PublishedTrial], None],
    ) -> int:
        """Run the published protocol with as many rows at once as fit; returns how many trials ended."""
        asked = self.config.cram
        settings = PublishedSettings(
            lr=asked.lr,
            betas=(asked.beta1, asked.beta2),
            max_steps=asked.max_steps,
            patience=asked.patience,
        )

        def attempt(batch_size: int) -> int:
            ended = 0
            for first in range(0, len(keys), batch_size):
                part = slice(first, first + batch_size)
                found = cram_published(
                    self.model,
                    ids[part],
                    m,
                    settings,
                    generators=[key_seed(key, 0) for key in keys[part]],
                    on_result=partial(_shifted, finished, first),
                    stop=self._out_of_time,
                )
                ended += sum(one.outcome != "stopped" for one in found)
            return ended

        rows = min(asked.batch_size or len(keys), len(keys))
        ended: int = find_executable_batch_size(attempt, starting_batch_size=rows)()
        return ended

    def _cram(
        self,
        ids: np.ndarray,
        m: int,
        keys: list[str],
        finished: Callable[[Crammed], None],
    ) -> list[Crammed]:
        """Cram with as many rows at once as fit into memory; repeated strings change nothing stored."""

        def attempt(batch_size: int) -> list[Crammed]:
            return cram(
                self.model,
                ids,
                m,
                self.search.config,
                generators=[key_seed(key, 0) for key in keys],
                batch_size=batch_size,
                search=self.search.model,
                on_result=finished,
                stop=self._out_of_time,
            )

        rows = min(self.config.cram.batch_size or len(keys), len(keys))
        result: list[Crammed] = find_executable_batch_size(attempt, starting_batch_size=rows)()
        return result

    def _limit(self, m: int) -> int:
        """Return the length limit at m: what was asked, or 64 tokens a vector, within the context."""
        asked = self.config.cram
        if asked.length:
            return max(asked.length)
        if asked.n_max is not None:
            return asked.n_max
        longest = _LIMIT_PER_VECTOR * m
        if asked.protocol == "published":
            longest = max(longest, _LIMIT_OF_GRID)
        context = self.model.facts.context
        room = longest if context is None else context - m - self._frame().length
        return max(1, min(longest, room))

    def _frame(self) -> Frame:
        """Return what stands around the vectors."""
        cram = self.config.cram
        return frame_of(self.model, cram.bos, cram.prefix, cram.suffix)

    def _ids(self, kind: str) -> Targets:
        """Draw the strings of a kind once, at the longest length any m asks for."""
        if kind not in self._targets:
            self.progress.stage(f"drawing {kind} targets")
            n = max(self._limit(m) for m in self.config.m)
            self._targets[kind] = draw(
                self.model, kind, self.config.cram.strings, n, seed=self.config.cram.seed
            )
        return self._targets[kind]

    def _bits(self, one: Crammed, ids: np.ndarray) -> dict[str, float | int]:
        """Return the cross-entropy of the prefix that came out, without and with the vectors."""
        if one.reach == 0:
            return {}
        vectors = torch.from_numpy(one.vectors)
        bits = target_bits(self.model, vectors, ids[: one.reach], frame=self._frame())
        return {
            "ce_without_bits": bits.without,
            "ce_with_bits": bits.with_vectors,
            "tokens_gained": bits.tokens_gained,
        }

    def _claim(self, cell: Cell, one: Crammed) -> dict[str, str]:
        facts = self.model.facts
        return {
            "claim": "greedy decoding from these vectors emits these ids",
            "model": facts.name,
            "fingerprint": facts.fingerprint,
            "dtype": facts.dtype,
            "m": str(cell.m),
            "bos": self.config.cram.bos,
            "prefix": self.config.cram.prefix,
            "suffix": self.config.cram.suffix,
            "smallest_gap": repr(one.smallest_gap),
        }

    def _remaining(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def _out_of_time(self) -> bool:
        return self.asked_to_stop() or (self.deadline is not None and time.monotonic() > self.deadline)

    def _provenance(self, interrupted: bool) -> dict[str, Any]:
        facts = self.model.facts
        return {
            **provenance(
                threads=torch.get_num_threads(), device=str(self.model.device), started=self.started
            ),
            "dtype": facts.dtype,
            "vector_dtype": "float32",
            "fingerprint": facts.fingerprint,
            "command": self.command,
            "seed": self.config.cram.seed,
            "seconds": round(time.monotonic() - self.begun, 1),
            "interrupted": interrupted,
            "attention": str(getattr(self.model.model.config, "_attn_implementation", "unknown")),
            "search_dtype": self.search.record.get("dtype"),
            "search_attention": self.search.record.get("attention"),
            "start_scale": self.search.record.get("start_scale"),
        }


class _Pace:
    """Time between finished strings, so that the seconds of a chunk's records add up to its own."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        return seconds


def _record(model: LoadedModel, one: Crammed, ids: np.ndarray, index: int, seconds: float) -> dict[str, Any]:
    """Return what the ledger keeps of one string."""
    shown = min(ids.size, one.reach + 4)
    return {
        "index": index,
        "reach": one.reach,
        "limit": int(ids.size),
        "outcome": one.outcome,
        "proposed": one.proposed,
        "smallest_gap": one.smallest_gap,
        "steps": one.steps,
        "seconds": round(seconds, 3),
        "ids": [int(i) for i in ids],
        "text": model.text(ids[:shown]),
        "emitted": model.text(ids[: one.reach]),
    }


def _shifted(
    finished: Callable[[int, PublishedTrial], None], first: int, place: int, one: PublishedTrial
) -> None:
    """Tell of a trial by its place among all strings, not in its batch."""
    finished(first + place, one)


def _at_a_length(chunk: Chunk, solved: bool, outcome: str) -> dict[str, Any]:
    """Return what a record of one length has besides: success there, and the strings it was run with."""
    told = "solved" if solved else outcome
    return {"solved": solved, "outcome": told, "chunk": [chunk.first, chunk.last]}


def _published_record(
    model: LoadedModel, one: PublishedTrial, ids: np.ndarray, index: int, seconds: float
) -> dict[str, Any]:
    """Return what the ledger keeps of a trial under the published protocol.

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


def _shown(chunk: Chunk) -> str:
    return chunk.cell.name if chunk.n is None else f"{chunk.cell.name} n={chunk.n}"


def check_protocol(asked: CramConfig) -> None:
    """Refuse settings that the chosen protocol has no use for.

    Raises
    ------
    InputError
        Lengths under ``frontier``; under ``published`` a length below 2, restarts, a start token, a text
        around the vectors, or a learning rate that decays.
    """
    if asked.protocol == "frontier":
        if asked.length:
            got = f"--length {asked.length[0]} with frontier"
            remedy = "add --protocol fixed, or use --n-max"
            raise InputError(problem("lengths only where they are tried one by one", got, remedy))
        return
    if asked.protocol != "published":
        return
    odd = [
        name
        for name, changed in (
            ("--bos", asked.bos != "none"),
            ("--prefix", bool(asked.prefix)),
            ("--suffix", bool(asked.suffix)),
            ("--restarts", asked.restarts != 1),
            ("--lr-end", asked.lr_end != asked.lr),
            ("--length 1", 1 in asked.length),
        )
        if changed
    ]
    if odd:
        wanted = "the published protocol (no start token or text, one start, a steady rate, n of at least 2)"
        raise InputError(problem(wanted, ", ".join(odd), "leave that out, or use --protocol fixed"))


def _by_cell(trials: list[dict[str, Any]], cells: list[Cell]) -> dict[Cell, list[dict[str, Any]]]:
    named = {cell.name: cell for cell in cells}
    found: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for trial in trials:
        found[named[trial["cell"]]].append(trial)
    return dict(found)
