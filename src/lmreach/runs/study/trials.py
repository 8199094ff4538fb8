"""Running one chunk of strings: those that the ledger lacks, each written with its proof as it finishes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size
from jaxtyping import Int

from lmreach.config import CramPlan
from lmreach.engine.clock import Clock
from lmreach.engine.keys import cram_key, cut_key, key_seed, occurrences, record_version
from lmreach.engine.store import Proof, Store
from lmreach.errors import LmreachError, out_of_memory
from lmreach.experiments.cramming.cram import CramResult, StepReport, cram
from lmreach.experiments.cramming.published import PublishedSettings, PublishedTrial, cram_published
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import describe, held_to
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.progress import Progress
from lmreach.results.records import Trial
from lmreach.runs.study.conditions import Answer, Chunk
from lmreach.runs.study.ledger import is_failed
from lmreach.runs.study.records import at_a_length, claim, crammed_record, published_record
from lmreach.runs.study.search import Search
from lmreach.runs.study.strings import Strings

__all__ = ["Cramming", "Finished", "RoundFailed"]


# Confirming a string, before any was: each token is decoded once and scored with and without the vectors,
# and so many decoding steps' time goes into what does not depend on its length.
_DECODED, _WRITTEN = 1.5, 4.0


class RoundFailed(LmreachError):
    """A chunk that this machine cannot run: the others can, and their results stand."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A chunk that is through: what it cost, and what became of its strings in their order."""

    seconds: float
    answers: list[Answer]


class _Pace:
    """Time between finished strings, so that the seconds of a chunk's records add up to its own."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._last = now, now()
        self.shortest: float | None = None

    def lap(self) -> float:
        now = self._now()
        seconds, self._last = now - self._last, now
        self.shortest = seconds if self.shortest is None else min(self.shortest, seconds)
        return seconds


@dataclass(frozen=True, eq=False)
class _Missing:
    """Strings of a chunk that are to be run.

    Attributes
    ----------
    ids, keys, index
        Targets, keys of their trials, and places among the strings of their kind.
    cut
        Keys under which strings were written that were cut, by those of the whole trials.
    starts
        Keys that the starts are drawn by: a string starts alike whatever number of steps was chosen for it.
    """

    chunk: Chunk
    config: CramPlan
    ids: Int[np.ndarray, "strings n"]
    keys: list[str]
    starts: list[str]
    index: list[int]
    pace: _Pace
    cut: dict[str, str] = field(default_factory=dict)


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
        Asked before every step. Once the budget is spent, strings are confirmed as they stand.
    progress
        Told of every step and finished string.
    token_seconds
        Of one decoding step: what confirming takes is kept back.
    """

    model: LoadedModel
    search: Search
    strings: Strings
    store: Store
    clock: Clock
    progress: Progress
    token_seconds: float = 0.0
    _confirming: dict[int, float] = field(default_factory=dict)

    def has(self, chunk: Chunk) -> bool:
        """Say whether the ledger holds all strings of a chunk, none of them cut."""
        return not self._look_up(chunk)[1].keys

    @cached_property
    def held(self) -> VectorSet | None:
        """The set that vectors are held to; None: any finite vector."""
        return held_to(self.search.optimiser, self.model) if self.search.config.within else None

    def run(self, chunk: Chunk) -> Finished | None:
        """Run the strings of a chunk that the ledger lacks; None: it was stopped before its end.

        Raises
        ------
        RoundFailed
            Memory does not hold a single string.
        """
        began = self.clock.now()
        try:
            with stoppable(self.clock.late):  # strings of some kinds are sampled from the model
                keys, missing = self._look_up(chunk)
        except PassStopped:
            return None
        if missing.keys and self._attempt(missing) != len(missing.keys):
            return None
        own = self.store.records(Trial, [missing.cut.get(key, key) for key in keys])
        # A resumed run reads its costs off the ledger: what was run before decides as it did then.
        spent = self.clock.now() - began if missing.keys else sum(trial.seconds for trial in own)
        return Finished(spent, [_answer(trial) for trial in own])

    def _look_up(self, chunk: Chunk) -> tuple[list[str], _Missing]:
        """Return the keys of all strings of a chunk, and those of its strings that were not run yet."""
        n = chunk.n or self.strings.limit(chunk.condition.m)
        drawn = self.strings.ids(chunk.condition.target, n, chunk.last)
        ids, facts, version = drawn[chunk.first :], self.model.facts, record_version(self.store)
        config = self._config(chunk)

        def keys_under(asked: CramPlan) -> list[str]:
            return [
                cram_key(
                    fingerprint=facts.fingerprint,
                    dtype=facts.dtype,
                    m=chunk.condition.m,
                    target=row,
                    config=asked,
                    occurrence=earlier,
                    version=version,
                    start_scale=self.search.start_scale,
                )
                for row, earlier in zip(ids, occurrences(drawn)[chunk.first :], strict=True)
            ]

        keys, starts = keys_under(config), keys_under(self.search.config)
        written = self.store.written(keys)
        places = [i for i, key in enumerate(keys) if key not in written]
        return keys, _Missing(
            chunk,
            config,
            ids[places],
            [keys[i] for i in places],
            [starts[i] for i in places],
            [chunk.first + place for place in places],
            _Pace(self.clock.now),
        )

    def _config(self, chunk: Chunk) -> CramPlan:
        """Return the settings with the steps that the run chose for a condition, if it did."""
        steps = chunk.condition.steps
        return self.search.config.model_copy(update={"max_steps": steps}) if steps else self.search.config

    def _attempt(self, missing: _Missing) -> int:
        """Run with as many rows at once as fit into memory; returns how many strings ended.

        A string that is run again with fewer rows changes nothing stored.
        """
        published = self.search.config.protocol == "published"
        attempt = partial(self._cram_published if published else self._cram, missing)
        count = len(missing.keys)
        rows = min(self.search.config.batch_size or count, count)

        def fitting(batch_size: int) -> int:
            try:
                return attempt(batch_size)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                # In the words that fewer rows are tried for, whatever device and library ran out.
                raise RuntimeError(f"{batch_size} rows ran out of memory.") from error

        try:
            ended: int = find_executable_batch_size(fitting, starting_batch_size=rows)()
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise RoundFailed("out of memory with one string at a time") from error
        return ended

    def _cram(self, missing: _Missing, batch_size: int) -> int:
        """Cram under our protocols."""
        m = missing.chunk.condition.m
        watch = _Watch(self.clock, self.progress, missing, partial(self._to_confirm, m))
        found = cram(
            self.model,
            missing.ids,
            missing.chunk.condition.m,
            self.search.optimiser.model_copy(update={"max_steps": missing.config.max_steps}),
            generators=[key_seed(key, 0) for key in missing.starts],
            batch_size=batch_size,
            search=self.search.model,
            on_result=partial(self._write, missing),
            on_step=watch,
            stop=self.clock.stopped,
            cut=watch.late,
            abandon=watch.too_late,
        )
        if len(found) > 1 and missing.pace.shortest is not None:
            self._confirming[m] = missing.pace.shortest
        return len(found)

    def _to_confirm(self, m: int, prefixes: Sequence[int]) -> float:
        """Return the seconds that confirming takes: as of the last strings at this m, else by tokens."""
        tokens = _DECODED * sum(prefixes) + _WRITTEN * len(prefixes)
        return max(tokens * self.token_seconds, self._confirming.get(m, 0.0) * len(prefixes))

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
        record = crammed_record(
            self.model,
            one,
            target,
            frame=self.strings.frame(),
            index=index,
            seconds=seconds,
            max_steps=missing.config.max_steps,
        )
        if one.outcome == "cut":
            missing.cut[key] = cut_key(key, one.steps)
            record, key = record.model_copy(update={"cut_of": key}), missing.cut[key]
        if chunk.n is not None:
            record = at_a_length(record, chunk, solved=one.reach >= chunk.n)
        proof = None
        if one.reach > 0:
            claimed = claim(self.model.facts, one, m=chunk.condition.m, config=missing.config)
            stored = None
            if self.held is not None:
                claimed |= describe(self.held)
                stored = self.held.encode(torch.from_numpy(one.free))
            proof = Proof(one.vectors, target[: one.reach], claimed, stored)
        self.store.add(key, chunk.condition.name, record, proof)
        self.progress.string(_shown(chunk), one.reach, record.outcome)

    def _write_published(self, missing: _Missing, first: int, place: int, one: PublishedTrial) -> None:
        """Write a trial; ``place`` is in its batch, which begins at ``first``."""
        chunk, row = missing.chunk, first + place
        index, seconds = missing.index[row], missing.pace.lap()
        record = published_record(self.model, one, missing.ids[row], index=index, seconds=seconds)
        self.store.add(missing.keys[row], chunk.condition.name, at_a_length(record, chunk, solved=one.solved))
        self.progress.string(_shown(chunk), missing.ids.shape[1] if one.solved else 0, one.outcome)


class _Watch:
    """Follows the steps of a chunk: tells how far they are, and when they have to end.

    Confirming what stands takes time as well, and so does the step that is asked about: both are kept back.
    """

    def __init__(
        self,
        clock: Clock,
        progress: Progress,
        missing: _Missing,
        to_confirm: Callable[[Sequence[int]], float],
    ) -> None:
        self._clock, self._progress, self._missing = clock, progress, missing
        self._to_confirm = to_confirm
        self._last, self._ahead, self._confirming = clock.now(), 0.0, 0.0

    def __call__(self, step: StepReport) -> None:
        now = self._clock.now()
        self._confirming = self._to_confirm(step.prefixes)
        self._ahead = now - self._last + self._confirming
        self._last = now
        chunk, config = self._missing.chunk, self._missing.config
        self._progress.step(chunk.condition.name, step.steps, config.max_steps, step.prefixes)

    def late(self) -> bool:
        """Say whether another step would leave too little time to confirm what stands."""
        return self._clock.late(self._ahead)

    def too_late(self) -> bool:
        """Say whether a step that takes longer than the last one has to be given up for the same."""
        return self._clock.late(self._confirming)


def _shown(chunk: Chunk) -> str:
    return chunk.condition.name if chunk.n is None else f"{chunk.condition.name} n={chunk.n}"


def _answer(trial: Trial) -> Answer:
    """Read a record: a trial at one length says whether it was solved, another whether it met its limit."""
    whole = trial.outcome == "hit_limit" if trial.solved is None else trial.solved
    return Answer(trial.reach, whole, is_failed(trial))
