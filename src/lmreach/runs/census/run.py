"""A census as a run: its folder, blocks kept as they are decoded, and results.json.

A grid is one trial per m; a census of real prompts one trial per block of prompts. The same command with the
same ``--out`` goes on where it stopped, and gives what an uninterrupted run gives.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lmreach.config import Bos
from lmreach.config.census import SAMPLE, CensusConfig
from lmreach.engine import folder as folders
from lmreach.engine.keys import digest
from lmreach.engine.provenance import provenance
from lmreach.engine.store import Store
from lmreach.errors import OutputError, problem
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
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent
from lmreach.report.html import render

__all__ = [
    "CensusConfig",
    "CensusEnd",
    "census_section",
    "resume_census",
    "run_census",
]

SCHEMA = 1
_SAID_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class CensusEnd:
    """Where a census is, and whether it was stopped before its end."""

    folder: Path
    interrupted: bool


def run_census(
    config: CensusConfig,
    out: Path | None,
    *,
    command: str = "",
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> CensusEnd:
    """Count the outputs of a model and write a run folder with results.json and report.html.

    Parameters
    ----------
    out
        A new or empty folder, or that of an unfinished census with the same settings, which is gone on with;
        None: a new one under ``lmreach-runs``.
    stop
        Asked between blocks.

    Raises
    ------
    InputError
        Settings that the model cannot be run with, or a grid of more prompts than ``max_prompts``.
    OutputError
        The folder holds something else, or cannot be written.
    """
    watched = progress or Silent()
    going_on = out is not None and (out / "store.sqlite").is_file()
    place = out if going_on and out is not None else folders.choose(out, config.model, "census")
    watched.stage("loading the model")
    model = load(config.model, config.load, progress=watched.stage)
    grids = [] if config.grid is None else _grids(config, model, config.grid)
    plans = _plans(config, model) if config.grid is None else []
    with Store(place) as store:
        _agree(store, config, model, command)
        run = _Run(config, model, store, watched, stop)
        found = {"grids": run.grids(grids), "tokens": run.tokens(plans)}
        results = _results(config, model, found, run, store)
        folders.write_json(place / "results.json", results)
        render(results, place / "report.html")
    return CensusEnd(place, run.stopped)


def resume_census(
    run: Path, *, progress: Progress | None = None, stop: Callable[[], bool] = lambda: False
) -> CensusEnd:
    """Go on with a census from its folder alone.

    Raises
    ------
    OutputError
        The folder is that of no census.
    """
    with Store(folders.existing(run)) as store:
        saved, command = store.meta("census"), store.meta("command")
    if saved is None:
        raise OutputError(problem("the folder of a census", f"'{run}'", "see 'lmreach status'"))
    return run_census(CensusConfig.model_validate(saved), run, command=command, progress=progress, stop=stop)


def census_section(
    model: LoadedModel,
    *,
    budget_s: float,
    n: int = 8,
    bos: Bos = "none",
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Return ``results.census`` of a small census for a study: prompts of one token, as many as time allows.

    A random subset of the usable ids if the budget does not reach for all; at least one block is decoded.
    """
    context = model.facts.context
    room = n if context is None else min(n, context - 1 - (bos != "none"))
    plan = TokenPlan(1, max(room, 1), model.facts.usable, bos, seed)
    check_plan(model, plan)
    begun, blocks = time.monotonic(), list[Block]()
    for number in range(plan.blocks):
        if number and (stop() or time.monotonic() - begun > budget_s * number / (number + 1)):
            break
        blocks.append(decode_plan_block(model, plan, number))
    counted = count_outputs(model, plan, blocks, seconds=time.monotonic() - begun)
    return {"grids": [], "tokens": [counted.as_dict(model)]}


@dataclass(slots=True)
class _Run:
    """One run: what it works with, and what it says while it works."""

    config: CensusConfig
    model: LoadedModel
    store: Store
    progress: Progress
    stop: Callable[[], bool]
    stopped: bool = False
    left: list[tuple[str, str]] = field(default_factory=list)
    _spoke: float = 0.0

    def grids(self, grids: list[Grid]) -> list[dict[str, Any]]:
        """Count every grid that has not been counted yet."""
        known = {trial["key"]: trial["grid"] for trial in self.store.trials() if "grid" in trial}
        found = []
        for grid in grids:
            extent = float(np.abs(grid.values).max())
            key = self._key(kind="census grid", q=grid.q, m=grid.m, order=grid.order, extent=extent)
            if key not in known and self._over(f"the grid of m = {grid.m}"):
                continue
            if key not in known:
                known[key] = self._grid(grid)
                self.store.add(key, f"grid, m = {grid.m}", {"grid": known[key]})
            found.append(known[key])
        return found

    def tokens(self, plans: list[TokenPlan]) -> list[dict[str, Any]]:
        """Decode every block that has not been decoded yet, and count."""
        known = {trial["key"]: trial for trial in self.store.trials()}
        counted = [self._plan(plan, known) for plan in plans]
        return [one.as_dict(self.model) for one in counted if one is not None]

    def _grid(self, grid: Grid) -> dict[str, Any]:
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
        entry = result.as_dict()
        entry["missing"] = self._missing(result)
        return entry

    def _missing(self, result: GridCensus) -> dict[str, Any] | None:
        if result.missing is None:
            return None
        found = {**result.missing.as_dict(), "sequences": result.missing.sequences.tolist()}
        why = reasons(self.model, result.missing, seed=self.config.seed) if result.missing.count else None
        return {**found, "reasons": None if why is None else why.as_dict()}

    def _plan(self, plan: TokenPlan, known: dict[str, Any]) -> TokenCensus | None:
        name, begun, fresh = f"prompts of {plan.tokens} token(s)", time.monotonic(), 0
        blocks, seconds = list[Block](), 0.0
        for number in range(plan.blocks):
            key = self._block_key(plan, number)
            if key not in known:
                if self._over(f"{plan.prompts - number * BLOCK:,} {name}"):
                    break
                known[key] = self._decoded(plan, number)
                self.store.add(key, name, known[key])
                fresh += 1
            blocks.append(_block(known[key]))
            seconds += known[key]["seconds"]
            done = min((number + 1) * BLOCK, plan.prompts)
            self._say(name, done, plan.prompts, begun, fresh * BLOCK)
        return count_outputs(self.model, plan, blocks, seconds=seconds) if blocks else None

    def _decoded(self, plan: TokenPlan, number: int) -> dict[str, Any]:
        begun = time.monotonic()
        block = decode_plan_block(self.model, plan, number)
        return {
            "ids": block.ids.tolist(),
            "tied": np.flatnonzero(block.tied).tolist(),
            "close": np.flatnonzero(block.close).tolist(),
            "seconds": round(time.monotonic() - begun, 3),
        }

    def _block_key(self, plan: TokenPlan, number: int) -> str:
        # A last block that is cut short is another block than the whole one of a larger plan.
        rows = min(BLOCK, plan.prompts - number * BLOCK)
        return self._key(kind="census block", tokens=plan.tokens, block=number, rows=rows, seed=plan.seed)

    def _key(self, **asked: Any) -> str:
        facts, config = self.model.facts, self.config
        common = {"fingerprint": facts.fingerprint, "model": facts.name, "dtype": facts.dtype}
        return digest({"record": 1, **common, "n": config.length, "bos": config.bos, **asked})

    def _over(self, what: str) -> bool:
        if self.stop():
            self.stopped = True
            self.left.append((what, "interrupted; the same command with the same --out goes on"))
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


def _agree(store: Store, config: CensusConfig, model: LoadedModel, command: str) -> None:
    """Keep the settings of a new run; refuse to go on with other ones."""
    asked = config.model_dump(mode="json")
    saved, weights = store.meta("census"), store.meta("fingerprint")
    if saved is None and store.keys():
        remedy = "choose another --out"
        raise OutputError(problem("a new folder or that of a census", f"'{store.folder}'", remedy))
    if saved is not None and (saved != asked or weights != model.facts.fingerprint):
        other = [name for name in asked if saved.get(name) != asked[name]] or ["weights"]
        got = f"another {', '.join(other)} in '{store.folder}'"
        raise OutputError(problem("the settings the census began with", got, "choose another --out"))
    if saved is None:
        store.put_meta("census", asked)
        store.put_meta("fingerprint", model.facts.fingerprint)
        store.put_meta("command", command)
        store.put_meta("started", datetime.now(UTC).isoformat())


def _results(
    config: CensusConfig, model: LoadedModel, found: dict[str, Any], run: _Run, store: Store
) -> dict[str, Any]:
    parts = [*found["grids"], *found["tokens"]]
    where = provenance(
        threads=torch.get_num_threads(),
        device=str(model.device),
        started=datetime.fromisoformat(store.meta("started")),
    )
    return {
        "schema": SCHEMA,
        "kind": "census",
        "model_name": model.facts.name,
        "model": model.facts.as_dict(),
        "config": {**config.model_dump(mode="json"), "model": model.facts.name},
        "results": {"census": found},
        "not_done": [{"what": what, "why": why} for what, why in run.left],
        "provenance": {
            **where,
            "command": store.meta("command"),
            "seconds": round(sum(one["seconds"] for one in parts), 3),
            "interrupted": run.stopped,
        },
    }


def _block(trial: dict[str, Any]) -> Block:
    ids = np.asarray(trial["ids"], dtype=np.int64)
    tied, close = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    tied[trial["tied"]], close[trial["close"]] = True, True
    return Block(ids, tied, close)
