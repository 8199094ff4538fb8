"""A census as a run: its folder, blocks kept as they are decoded, and results.json.

A grid is one trial per m; a census of real prompts one trial per block of prompts. The same command with the
same ``--out`` goes on where it stopped, and gives what an uninterrupted run gives.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lmreach.config import Bos, ExecutorConfig
from lmreach.config.census import SAMPLE, CensusConfig
from lmreach.engine.clock import Clock
from lmreach.engine.executors.base import Executor
from lmreach.engine.executors.choose import check_executor, executor_of
from lmreach.engine.keys import digest
from lmreach.engine.provenance import provenance, public
from lmreach.engine.run import Envelope, Left, RunEnd, RunKind, begin, open_run
from lmreach.engine.store import Store
from lmreach.experiments.census.decode import Block
from lmreach.experiments.census.exact import check_size, input_extent
from lmreach.experiments.census.grid import Grid
from lmreach.experiments.census.tokens import (
    BLOCK,
    TokenCensus,
    TokenPlan,
    check_plan,
    count_outputs,
    decode_plan_block,
)
from lmreach.identity import weights_of
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.memory import bytes_of
from lmreach.models.source import ModelSource
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.progress import Progress, Silent
from lmreach.report.html import render
from lmreach.results import CensusResults
from lmreach.results.census import Census, GridCount
from lmreach.results.records import BlockRecord, GridRecord
from lmreach.results.run import Model, NotDone
from lmreach.runs.census.records import token_record
from lmreach.runs.census.work import CensusWorker, Counter, Part, Tried
from lmreach.runs.handing_out import answers

__all__ = [
    "CensusConfig",
    "census_section",
    "resume_census",
    "run_census",
]

_SAID_EVERY_S = 10.0


def run_census(
    config: CensusConfig,
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
    """Count the outputs of a model and write a run folder with results.json and report.html.

    Parameters
    ----------
    out
        A new or empty folder, or that of an unfinished census with the same settings, which is gone on with;
        None: a new one under ``lmreach-runs``.
    stop
        Asked between blocks.
    fresh
        Begin anew where ``out`` holds a run, which is moved aside.
    model
        The model itself, where it stands in memory; None: the one that the config names.
    begun
        When the budget began, on `time.monotonic`; None: now.
    executor
        Where grids and blocks of prompts are decoded.

    Raises
    ------
    InputError
        Settings that the model cannot be run with, or a grid of more prompts than ``max_prompts``.
    OutputError
        The folder holds something else, or cannot be written.
    """
    check_executor(executor)
    watched, clock = progress or Silent(), Clock(config.budget_s, stop, begun=begun)
    with begin(RunKind.CENSUS, config, out, name=config.model, fresh=fresh) as written:
        watched.stage("loading the model")
        name = "" if model is not None else config.model
        model = model or load(config.model, config.load, progress=watched.stage)
        grids = [] if config.grid is None else _grids(config, model, config.grid)
        plans = _plans(config, model) if config.grid is None else []
        facts = model.facts
        store = written.bind(
            facts.name, facts.fingerprint, settings_of(model.model), command=command, note=watched.note
        )
        run = _Counting(config, model, store, watched, clock.over)
        found = run.whole(name, executor, grids, plans)
        results = _results(config, model, found, run, written.envelope)
        render(results, written.folder / "report.html")
        left = [Left(what, why) for what, why in run.left]
        return written.end(results, interrupted=run.stopped, left=left, failed=run.failed.values())


def resume_census(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    begun: float | None = None,
    executor: ExecutorConfig = ExecutorConfig(),  # noqa: B008  (frozen)
) -> RunEnd:
    """Go on with a census from its folder alone.

    Parameters
    ----------
    budget_s
        Seconds for this part of it; None: no limit.

    Raises
    ------
    OutputError
        The folder is that of no census.
    """
    there = open_run(run)
    there.require(RunKind.CENSUS, what="go on with as a census")
    config = there.envelope.config.model_copy(update={"budget_s": budget_s})
    assert isinstance(config, CensusConfig)
    return run_census(config, run, progress=progress, stop=stop, begun=begun, executor=executor)


def census_section(
    model: LoadedModel,
    *,
    budget_s: float,
    n: int = 8,
    bos: Bos = "none",
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Census:
    """Return a small census for a study: prompts of one token, as many as time allows.

    A random subset of the usable ids if the budget does not reach for all.

    Raises
    ------
    PassStopped
        If not even the first block was through in twice the time.
    """
    context = model.facts.context
    room = n if context is None else min(n, context - 1 - (bos != "none"))
    plan = TokenPlan(1, max(room, 1), model.facts.usable, bos, seed)
    check_plan(model, plan)
    begun, blocks = time.monotonic(), list[Block]()
    for number in range(plan.blocks):
        if number and (stop() or time.monotonic() - begun > budget_s * number / (number + 1)):
            break
        try:
            with stoppable(lambda: stop() or time.monotonic() - begun > 2 * budget_s):
                blocks.append(decode_plan_block(model, plan, number))
        except PassStopped:
            if not blocks:
                raise
            break
    counted = count_outputs(model, plan, blocks, seconds=time.monotonic() - begun)
    return Census(tokens=(token_record(model, counted),))


@dataclass(slots=True)
class _Counting:
    """One run: what it works with, and what it says while it works."""

    config: CensusConfig
    model: LoadedModel
    store: Store
    progress: Progress
    stop: Callable[[], bool]
    stopped: bool = False
    left: list[tuple[str, str]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    _spoke: float = 0.0
    _elsewhere: bool = False

    def whole(self, name: str, on: ExecutorConfig, grids: list[Grid], plans: list[TokenPlan]) -> Census:
        """Do every part that the ledger lacks, and count."""
        counted = {self._grid_key(grid): grid for grid in grids}
        blocks = [(plan, list(self._blocks(plan))) for plan in plans]
        parts = [Part(key, f"grid, m = {grid.m}", grid=grid) for key, grid in counted.items()]
        parts += [part for _, own in blocks for part in own]
        written = self.store.written([part.key for part in parts])
        missing = [p for number, p in enumerate(parts) if p.key not in written and on.owns(number)]
        if missing and not self.stop():
            with self._executor(name, on) as executor:
                self._do(executor, missing)
        self._elsewhere = on.shard is not None and not self.stop()
        tokens = [self._plan(plan, own) for plan, own in blocks]
        return Census(
            grids=tuple(one for key, grid in counted.items() if (one := self._grid(key, grid)) is not None),
            tokens=tuple(token_record(self.model, one) for one in tokens if one is not None),
        )

    def _executor(self, name: str, on: ExecutorConfig) -> Executor:
        def here() -> Counter:
            return Counter(self.model, self.config, self.store.folder)

        def there(*, files: bool) -> CensusWorker:
            source = ModelSource.of(self.model, name, self.config.load, files=files)
            return CensusWorker(source, self.config)

        begun = time.monotonic()

        def tell(tried: Tried) -> None:
            self._say(tried.cell, tried.done, tried.total, begun, tried.done)

        memory = bytes_of(self.model.model)
        return executor_of(on, here, there, tell, self.stop, memory=memory)

    def _do(self, executor: Executor, missing: list[Part]) -> None:
        """Have parts done, and write each as it comes."""
        begun = time.monotonic()

        def failed(part: Part, why: str) -> None:
            self.failed[part.key] = f"a part of {part.cell} failed: {why}"

        of_plan = [part for part in missing if part.plan is not None]
        done = 0
        for part, record in answers(executor, missing, self.stop, failed):
            self.store.add(part.key, part.cell, record)
            if part.plan is not None:
                done += 1
                self._say("blocks of prompts", done, len(of_plan), begun, done)

    def _grid(self, key: str, grid: Grid) -> GridCount | None:
        kept = self.store.find(GridRecord, key)
        if kept is None:
            self._leave(f"the grid of m = {grid.m}", [key])
        return None if kept is None else kept.grid

    def _plan(self, plan: TokenPlan, parts: list[Part]) -> TokenCensus | None:
        """Count the outputs of a plan's blocks up to the first that is missing."""
        keys = [part.key for part in parts]
        written = self.store.written(keys)
        whole = list(itertools.takewhile(lambda key: key in written, keys))
        if len(whole) < len(keys):
            left = plan.prompts - len(whole) * BLOCK
            self._leave(f"{left:,} prompts of {plan.tokens} token(s)", keys)
        own = self.store.records(BlockRecord, whole)
        seconds = sum(one.seconds for one in own)
        return count_outputs(self.model, plan, list(map(_block, own)), seconds=seconds) if own else None

    def _leave(self, what: str, keys: list[str]) -> None:
        """Say what is missing, and why."""
        why = next((self.failed[key] for key in keys if key in self.failed), None)
        if why is None and self._elsewhere:
            why = "another part of the plan has them"
        if why is None:
            why, self.stopped = "stopped before it; the same command with the same --out goes on", True
        self.left.append((what, why))

    def _blocks(self, plan: TokenPlan) -> Iterator[Part]:
        for number in range(plan.blocks):
            cell = f"prompts of {plan.tokens} token(s)"
            yield Part(self._block_key(plan, number), cell, plan=plan, number=number)

    def _grid_key(self, grid: Grid) -> str:
        extent = float(np.abs(grid.values).max())
        return self._key(kind="census grid", q=grid.q, m=grid.m, order=grid.order, extent=extent)

    def _block_key(self, plan: TokenPlan, number: int) -> str:
        # A last block that is cut short is another block than the whole one of a larger plan.
        rows = min(BLOCK, plan.prompts - number * BLOCK)
        return self._key(kind="census block", tokens=plan.tokens, block=number, rows=rows, seed=plan.seed)

    def _key(self, **asked: Any) -> str:
        facts, config = self.model.facts, self.config
        weights = weights_of(facts.fingerprint)
        common = {"fingerprint": weights, "model": facts.name, "dtype": facts.dtype}
        return digest({"record": 1, **common, "n": config.length, "bos": config.bos, **asked})

    def _say(self, what: str, done: int, total: int, begun: float, fresh: int) -> None:
        now = time.monotonic()
        if fresh and (now - self._spoke > _SAID_EVERY_S or (done == total and now - begun > _SAID_EVERY_S)):
            rest = (total - done) * (now - begun) / fresh
            ends = f", about {rest:.0f} s left" if rest < 90 else f", about {rest / 60:.0f} min left"
            self.progress.stage(f"{what}: {done:,} of {total:,}{ends if done < total else ''}")
            self._spoke = now


def _grids(config: CensusConfig, model: LoadedModel, q: int) -> list[Grid]:
    extent = config.extent or input_extent(model)
    found = [Grid.even(q, extent, model.facts.width, m, config.order) for m in config.m]
    check_size(found, config.max_prompts)
    return found


def _plans(config: CensusConfig, model: LoadedModel) -> list[TokenPlan]:
    usable = model.facts.usable
    plans = []
    for tokens in config.prompt_tokens:
        prompts = config.prompts or (usable if tokens == 1 else SAMPLE)
        # There are no more prompts of one token than ids.
        prompts = min(prompts, usable) if tokens == 1 else prompts
        plans.append(TokenPlan(tokens, config.length, prompts, config.bos, config.seed))
    for plan in plans:
        check_plan(model, plan)
    return plans


def _results(
    config: CensusConfig, model: LoadedModel, found: Census, run: _Counting, envelope: Envelope
) -> CensusResults:
    spent = sum(one.seconds for one in found.grids) + sum(one.seconds for one in found.tokens)
    return CensusResults(
        model=Model.from_object(model.current_facts),
        config=public(config, model.facts.name),
        census=found,
        not_done=tuple(NotDone(what=what, why=why) for what, why in run.left),
        provenance=provenance(
            threads=torch.get_num_threads(),
            device=str(model.device),
            started=datetime.fromisoformat(envelope.started),
            command=envelope.command,
            seconds=round(spent, 3),
            interrupted=run.stopped,
        ),
    )


def _block(record: BlockRecord) -> Block:
    ids = np.asarray(record.ids, dtype=np.int64)
    tied, close = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    tied[list(record.tied)], close[list(record.close)] = True, True
    return Block(ids, tied, close)
