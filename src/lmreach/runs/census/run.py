"""A census as a run: its folder, blocks kept as they are decoded, and results.json.

A grid is one trial per m; a census of real prompts one trial per block of prompts. The same command with the
same ``--out`` goes on where it stopped, and gives what an uninterrupted run gives.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lmreach.config import Bos
from lmreach.config.census import SAMPLE, CensusConfig
from lmreach.engine.clock import Clock
from lmreach.engine.keys import digest
from lmreach.engine.provenance import provenance, public
from lmreach.engine.run import Envelope, Left, RunEnd, RunKind, begin, open_run
from lmreach.engine.store import Store
from lmreach.experiments.census.decode import Block
from lmreach.experiments.census.exact import GridCensus, census_grid, check_size, input_extent
from lmreach.experiments.census.grid import Grid
from lmreach.experiments.census.reasons import reasons
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
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.progress import Progress, Silent
from lmreach.report.html import render
from lmreach.results import CensusResults
from lmreach.results.census import Census, GridCount, Missing, TokenCount
from lmreach.results.records import BlockRecord, GridRecord
from lmreach.results.run import Model, NotDone
from lmreach.runs.census.records import grid_record, missing_record, token_record

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

    Raises
    ------
    InputError
        Settings that the model cannot be run with, or a grid of more prompts than ``max_prompts``.
    OutputError
        The folder holds something else, or cannot be written.
    """
    watched, clock = progress or Silent(), Clock(config.budget_s, stop, begun=begun)
    with begin(RunKind.CENSUS, config, out, name=config.model, fresh=fresh) as written:
        watched.stage("loading the model")
        model = model or load(config.model, config.load, progress=watched.stage)
        grids = [] if config.grid is None else _grids(config, model, config.grid)
        plans = _plans(config, model) if config.grid is None else []
        facts = model.facts
        store = written.bind(
            facts.name, facts.fingerprint, settings_of(model.model), command=command, note=watched.note
        )
        run = _Counting(config, model, store, watched, clock.over)
        found = Census(grids=tuple(run.grids(grids)), tokens=tuple(run.tokens(plans)))
        results = _results(config, model, found, run, written.envelope)
        render(results, written.folder / "report.html")
        left = [Left(what, why) for what, why in run.left]
        return written.end(results, interrupted=run.stopped, left=left)


def resume_census(
    run: Path,
    *,
    budget_s: float | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
    begun: float | None = None,
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
    return run_census(config, run, progress=progress, stop=stop, begun=begun)


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
    _spoke: float = 0.0

    def grids(self, grids: list[Grid]) -> list[GridCount]:
        """Count every grid that has not been counted yet."""
        counted = []
        for grid in grids:
            extent = float(np.abs(grid.values).max())
            key = self._key(kind="census grid", q=grid.q, m=grid.m, order=grid.order, extent=extent)
            kept = self.store.find(GridRecord, key)
            if kept is None:
                if self._over(f"the grid of m = {grid.m}"):
                    continue
                kept = GridRecord(grid=self._grid(grid))
                self.store.add(key, f"grid, m = {grid.m}", kept)
            counted.append(kept.grid)
        return counted

    def tokens(self, plans: list[TokenPlan]) -> list[TokenCount]:
        """Decode every block that has not been decoded yet, and count."""
        counted = map(self._plan, plans)
        return [token_record(self.model, one) for one in counted if one is not None]

    def _grid(self, grid: Grid) -> GridCount:
        config, begun = self.config, time.monotonic()
        result = census_grid(
            self.model,
            grid,
            config.length,
            bos=config.bos,
            sketch=config.sketch,
            memory_rows=config.memory_rows,
            folder=self.store.folder,
            missing=config.list_missing,
            on_progress=lambda done, total: self._say(f"grid of m = {grid.m}", done, total, begun, done),
        )
        return grid_record(result, self._missing(result))

    def _missing(self, result: GridCensus) -> Missing | None:
        if result.missing is None:
            return None
        why = reasons(self.model, result.missing, seed=self.config.seed) if result.missing.count else None
        return missing_record(result.missing, why)

    def _plan(self, plan: TokenPlan) -> TokenCensus | None:
        name, begun, fresh = f"prompts of {plan.tokens} token(s)", time.monotonic(), 0
        blocks, seconds = list[Block](), 0.0
        for number in range(plan.blocks):
            key = self._block_key(plan, number)
            record = self.store.find(BlockRecord, key)
            if record is None:
                if self._over(f"{plan.prompts - number * BLOCK:,} {name}"):
                    break
                record = self._decoded(plan, number)
                self.store.add(key, name, record)
                fresh += 1
            blocks.append(_block(record))
            seconds += record.seconds
            done = min((number + 1) * BLOCK, plan.prompts)
            self._say(name, done, plan.prompts, begun, fresh * BLOCK)
        return count_outputs(self.model, plan, blocks, seconds=seconds) if blocks else None

    def _decoded(self, plan: TokenPlan, number: int) -> BlockRecord:
        begun = time.monotonic()
        block = decode_plan_block(self.model, plan, number)
        return BlockRecord(
            ids=block.ids.tolist(),
            tied=tuple(np.flatnonzero(block.tied).tolist()),
            close=tuple(np.flatnonzero(block.close).tolist()),
            seconds=round(time.monotonic() - begun, 3),
        )

    def _block_key(self, plan: TokenPlan, number: int) -> str:
        # A last block that is cut short is another block than the whole one of a larger plan.
        rows = min(BLOCK, plan.prompts - number * BLOCK)
        return self._key(kind="census block", tokens=plan.tokens, block=number, rows=rows, seed=plan.seed)

    def _key(self, **asked: Any) -> str:
        facts, config = self.model.facts, self.config
        weights = weights_of(facts.fingerprint)
        common = {"fingerprint": weights, "model": facts.name, "dtype": facts.dtype}
        return digest({"record": 1, **common, "n": config.length, "bos": config.bos, **asked})

    def _over(self, what: str) -> bool:
        if self.stop():
            self.stopped = True
            self.left.append((what, "stopped before it; the same command with the same --out goes on"))
        return self.stopped

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
