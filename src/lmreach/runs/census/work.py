"""Parts of a census as a worker does them: a grid, or a block of prompts."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmreach.config.census import CensusConfig
from lmreach.engine.executors.base import Stopped, Tell
from lmreach.experiments.census.exact import GridCensus, census_grid
from lmreach.experiments.census.grid import Grid
from lmreach.experiments.census.reasons import reasons
from lmreach.experiments.census.tokens import TokenPlan, decode_plan_block
from lmreach.models.loaded import LoadedModel
from lmreach.models.source import ModelSource
from lmreach.results.census import Missing
from lmreach.results.records import BlockRecord, GridRecord
from lmreach.runs.census.records import grid_record, missing_record

__all__ = ["CensusWorker", "Counter", "Part", "Tried"]


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """What one trial of the ledger holds.

    Attributes
    ----------
    key, cell
        Of the trial.
    grid
        All prompts of a grid; None: a block of real prompts.
    plan, number
        Which block.
    """

    key: str
    cell: str
    grid: Grid | None = None
    plan: TokenPlan | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Tried:
    """How many prompts of a grid were tried, and of how many."""

    cell: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class CensusWorker:
    """Makes the worker of a census where it is to work; pickles."""

    source: ModelSource
    config: CensusConfig

    def __call__(self) -> "Counter":
        """Return the worker."""
        return Counter(self.source.bring(), self.config)


@dataclass(frozen=True, slots=True)
class Counter:
    """The worker of a census: does one part after the other.

    Attributes
    ----------
    folder
        Where what memory does not hold is written meanwhile; None: where the system has such files.
    """

    model: LoadedModel
    config: CensusConfig
    folder: Path | None = None

    def __call__(self, part: Part, tell: Tell, stopped: Stopped) -> GridRecord | BlockRecord:
        """Return what the ledger is to keep of a part."""
        if part.grid is not None:
            return self._grid(part, part.grid, tell)
        assert part.plan is not None
        begun = time.monotonic()
        block = decode_plan_block(self.model, part.plan, part.number)
        return BlockRecord(
            ids=block.ids.tolist(),
            tied=tuple(np.flatnonzero(block.tied).tolist()),
            close=tuple(np.flatnonzero(block.close).tolist()),
            seconds=round(time.monotonic() - begun, 3),
        )

    def _grid(self, part: Part, grid: Grid, tell: Tell) -> GridRecord:
        config = self.config
        result = census_grid(
            self.model,
            grid,
            config.length,
            bos=config.bos,
            sketch=config.sketch,
            memory_rows=config.memory_rows,
            folder=self.folder,
            missing=config.list_missing,
            on_progress=lambda done, total: tell(Tried(part.cell, done, total)),
        )
        return GridRecord(grid=grid_record(result, self._missing(result)))

    def _missing(self, result: GridCensus) -> Missing | None:
        if result.missing is None:
            return None
        why = reasons(self.model, result.missing, seed=self.config.seed) if result.missing.count else None
        return missing_record(result.missing, why)
