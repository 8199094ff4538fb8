"""Running one chunk of strings: those that the ledger lacks, each written with its proof as it finishes."""

import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size
from jaxtyping import Int

from lmreach.engine.clock import Clock
from lmreach.engine.keys import cram_key, key_seed, occurrences, record_version
from lmreach.engine.store import Proof, Store
from lmreach.experiments.cramming.cram import CramResult, cram
from lmreach.experiments.cramming.published import PublishedSettings, PublishedTrial, cram_published
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import describe, held_to
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress
from lmreach.runs.study.conditions import Answer, Chunk
from lmreach.runs.study.ledger import Trial, is_failed
from lmreach.runs.study.records import at_a_length, bits_record, claim, crammed_record, published_record
from lmreach.runs.study.search import Search
from lmreach.runs.study.strings import Strings

__all__ = ["Cramming", "Finished"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A chunk that is through: what it cost, and what became of its strings in their order."""

    seconds: float
    answers: list[Answer]


class _Pace:
    """Time between finished strings, so that the seconds of a chunk's records add up to its own."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        return seconds


@dataclass(frozen=True, eq=False)
class _Missing:
    """Strings of a chunk that are to be run: targets, keys, and places among the strings of their kind."""

    chunk: Chunk
    ids: Int[np.ndarray, "strings n"]
    keys: list[str]
    index: list[int]
    pace: _Pace = field(default_factory=_Pace)


@dataclass(frozen=True, eq=False)
class Cramming:
    """Runs chunks and writes what comes of them.

    Attributes
    ----------
    model
        Judges what was reached.
    search
        Settings, and what the optimiser works on.
    strings, store
        Where targets come from and where records go.
    clock
        Asked before every step.
    progress
        Told of every finished string.
    """

    model: LoadedModel
    search: Search
    strings: Strings
    store: Store
    clock: Clock
    progress: Progress

    @cached_property
    def held(self) -> VectorSet | None:
        """The set that vectors are held to; None: any finite vector."""
        return held_to(self.search.optimiser, self.model) if self.search.config.within else None

    def run(self, chunk: Chunk) -> Finished | None:
        """Run the strings of a chunk that the ledger lacks; None: time was up before its end."""
        began = time.monotonic()
        keys, missing = self._look_up(chunk)
        if missing.keys and self._attempt(missing) != len(missing.keys):
            return None
        own = self.store.records(keys)
        # A resumed run reads its costs off the ledger: what was run before decides as it did then.
        spent = time.monotonic() - began if missing.keys else sum(trial["seconds"] for trial in own)
        return Finished(spent, [_answer(trial) for trial in own])

    def _look_up(self, chunk: Chunk) -> tuple[list[str], _Missing]:
        """Return the keys of all strings of a chunk, and those of its strings that were not run yet."""
        n = chunk.n or self.strings.limit(chunk.condition.m)
        drawn = self.strings.ids(chunk.condition.target)[: chunk.last, :n]
        ids, facts, version = drawn[chunk.first :], self.model.facts, record_version(self.store)
        keys = [
            cram_key(
                fingerprint=facts.fingerprint,
                dtype=facts.dtype,
                m=chunk.condition.m,
                target=row,
                config=self.search.config,
                occurrence=earlier,
                version=version,
                start_scale=self.search.start_scale,
            )
            for row, earlier in zip(ids, occurrences(drawn)[chunk.first :], strict=True)
        ]
        written = self.store.written(keys)
        places = [i for i, key in enumerate(keys) if key not in written]
        index = [chunk.first + place for place in places]
        return keys, _Missing(chunk, ids[places], [keys[i] for i in places], index)

    def _attempt(self, missing: _Missing) -> int:
        """Run with as many rows at once as fit into memory; returns how many strings ended.

        A string that is run again with fewer rows changes nothing stored.
        """
        published = self.search.config.protocol == "published"
        attempt = partial(self._cram_published if published else self._cram, missing)
        count = len(missing.keys)
        rows = min(self.search.config.batch_size or count, count)
        ended: int = find_executable_batch_size(attempt, starting_batch_size=rows)()
        return ended

    def _cram(self, missing: _Missing, batch_size: int) -> int:
        """Cram under our protocols."""
        found = cram(
            self.model,
            missing.ids,
            missing.chunk.condition.m,
            self.search.optimiser,
            generators=[key_seed(key, 0) for key in missing.keys],
            batch_size=batch_size,
            search=self.search.model,
            on_result=partial(self._write, missing),
            stop=self.clock.over,
        )
        return len(found)

    def _cram_published(self, missing: _Missing, batch_size: int) -> int:
        """Cram under the published protocol."""
        asked = self.search.config
        settings = PublishedSettings(
            lr=asked.lr,
            betas=(asked.beta1, asked.beta2),
            max_steps=asked.max_steps,
            patience=asked.patience,
        )
        ended = 0
        for first in range(0, len(missing.keys), batch_size):
            part = slice(first, first + batch_size)
            found = cram_published(
                self.model,
                missing.ids[part],
                missing.chunk.condition.m,
                settings,
                generators=[key_seed(key, 0) for key in missing.keys[part]],
                on_result=partial(self._write_published, missing, first),
                stop=self.clock.over,
            )
            ended += sum(one.outcome != "stopped" for one in found)
        return ended

    def _write(self, missing: _Missing, one: CramResult) -> None:
        chunk, key, target = missing.chunk, missing.keys[one.index], missing.ids[one.index]
        index, seconds = missing.index[one.index], missing.pace.lap()
        record = crammed_record(self.model, one, target, index=index, seconds=seconds)
        record |= bits_record(self.model, one, target, self.strings.frame())
        if chunk.n is not None:
            record |= at_a_length(chunk, solved=one.reach >= chunk.n, outcome=record["outcome"])
        proof = None
        if one.reach > 0:
            claimed = claim(self.model.facts, one, m=chunk.condition.m, config=self.search.config)
            stored = None
            if self.held is not None:
                claimed |= describe(self.held)
                stored = self.held.encode(torch.from_numpy(one.free))
            proof = Proof(one.vectors, target[: one.reach], claimed, stored)
        self.store.add(key, chunk.condition.name, record, proof)
        self.progress.string(_shown(chunk), one.reach, record["outcome"])

    def _write_published(self, missing: _Missing, first: int, place: int, one: PublishedTrial) -> None:
        """Write a trial; ``place`` is in its batch, which begins at ``first``."""
        chunk, row = missing.chunk, first + place
        index, seconds = missing.index[row], missing.pace.lap()
        record = published_record(self.model, one, missing.ids[row], index=index, seconds=seconds)
        record |= at_a_length(chunk, solved=one.solved, outcome=one.outcome)
        self.store.add(missing.keys[row], chunk.condition.name, record)
        self.progress.string(_shown(chunk), missing.ids.shape[1] if one.solved else 0, one.outcome)


def _shown(chunk: Chunk) -> str:
    return chunk.condition.name if chunk.n is None else f"{chunk.condition.name} n={chunk.n}"


def _answer(trial: dict[str, Any]) -> Answer:
    """Read a record: a trial at one length says whether it was solved, another whether it met its limit."""
    whole = trial["solved"] if "solved" in trial else trial["outcome"] == "hit_limit"
    return Answer(int(trial["reach"]), bool(whole), is_failed(cast("Trial", trial)))
