"""One round of strings as a worker runs it: which strings it holds is decided by whoever hands it out.

A round is always run as a whole, whatever of it the ledger holds already: how many rows a pass has decides
how it rounds, and so each string comes to the same end whoever runs it, in whichever run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache
from jaxtyping import Int

from lmreach.config import CramPlan
from lmreach.engine.clock import Clock
from lmreach.engine.executors.base import Stopped, Tell, WorkFailed
from lmreach.engine.keys import cut_key, key_seed
from lmreach.engine.store import Entry, Proof
from lmreach.errors import out_of_memory
from lmreach.experiments.cramming.cram import CramResult, StepReport, cram
from lmreach.experiments.cramming.published import PublishedSettings, PublishedTrial, cram_published
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import describe, held_to
from lmreach.models.frame import frame_of
from lmreach.models.loaded import LoadedModel
from lmreach.models.source import ModelSource
from lmreach.results.study import SearchRecord
from lmreach.runs.study.conditions import Chunk
from lmreach.runs.study.records import at_a_length, claim, crammed_record, published_record
from lmreach.runs.study.search import Search, prepare

__all__ = ["Crammer", "Round", "RoundEnd", "Stepped", "StringEnd", "StudyWorker"]


# Confirming a string, before any was: each token is decoded once and scored with and without the vectors,
# and so many decoding steps' time goes into what does not depend on its length.
_DECODED, _WRITTEN = 1.5, 4.0
_TOLD_EVERY_S = 0.1
_FEWER = 0.9  # of the rows that memory did not hold


@dataclass(frozen=True, eq=False, slots=True)
class Round:
    """The strings of a chunk, to be run together.

    Attributes
    ----------
    ids, keys
        Targets, and keys of their trials.
    starts
        Keys that the starts are drawn by: a string starts alike whatever number of steps was chosen for it.
    seconds
        Time that is left for it; None: as long as it takes.
    """

    chunk: Chunk
    config: CramPlan
    ids: Int[np.ndarray, "strings n"]
    keys: list[str]
    starts: list[str]
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StringEnd:
    """A finished string, as the ledger is to keep it; ``tokens`` came out."""

    entry: Entry
    shown: str
    tokens: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Stepped:
    """How far the strings of a round are."""

    name: str
    steps: int
    most: int
    prefixes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """A round that is through.

    Attributes
    ----------
    seconds
        What it took.
    keys
        Under which its strings are kept, in their order: those that were cut have others.
    """

    seconds: float
    keys: list[str]


@dataclass(frozen=True, slots=True)
class StudyWorker:
    """Makes the worker of a study where it is to work; pickles.

    Attributes
    ----------
    source
        Where the model comes from.
    config, record
        Settings, and what the driver found to search with.
    token_seconds
        Of one decoding step, as the driver timed it.
    """

    source: ModelSource
    config: CramPlan
    record: SearchRecord | None
    token_seconds: float

    def __call__(self) -> "Crammer":
        """Return the worker."""
        model = self.source.bring()
        if self.record is None:
            return Crammer(model, Search(model, self.config, None), self.token_seconds)
        return Crammer(model, prepare(model, self.config, m=1, kept=self.record), self.token_seconds)


class _Pace:
    """Time between finished strings, so that the seconds of a round's records add up to its own."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._last = now, now()
        self.shortest: float | None = None

    def lap(self) -> float:
        now = self._now()
        seconds, self._last = now - self._last, now
        self.shortest = seconds if self.shortest is None else min(self.shortest, seconds)
        return seconds


@dataclass(eq=False)
class _Work:
    """A round under way: its time, whom to tell, and the keys of strings that were cut by their own."""

    round: Round
    clock: Clock
    tell: Tell
    pace: _Pace
    cut: dict[str, str] = field(default_factory=dict)
    told: float = 0.0

    @property
    def chunk(self) -> Chunk:
        return self.round.chunk

    @property
    def shown(self) -> str:
        name, n = self.chunk.condition.name, self.chunk.n
        return name if n is None else f"{name} n={n}"


@dataclass(frozen=True, eq=False)
class Crammer:
    """The worker of a study: runs rounds, and tells of each string as it ends.

    Attributes
    ----------
    model
        Judges what was reached.
    search
        Settings, and what the optimiser works on.
    token_seconds
        Of one decoding step: what confirming takes is kept back.
    clock
        The driver's own, where this is its process; None: each round has what time it was given.
    """

    model: LoadedModel
    search: Search
    token_seconds: float = 0.0
    clock: Clock | None = None
    _confirming: dict[int, float] = field(default_factory=dict)

    @cached_property
    def held(self) -> VectorSet | None:
        """The set that vectors are held to; None: any finite vector."""
        return held_to(self.search.optimiser, self.model) if self.search.config.within else None

    def __call__(self, round_: Round, tell: Tell, stopped: Stopped) -> RoundEnd | None:
        """Run a round; None: it was stopped before its end.

        Raises
        ------
        WorkFailed
            Memory does not hold a single string.
        """
        clock = self.clock
        if clock is None:
            clock = Clock(round_.seconds, stopped)
            clock.keep_back(0.0)
        began = clock.now()
        work = _Work(round_, clock, tell, _Pace(clock.now))
        if self._attempt(work) != len(round_.keys):
            return None
        return RoundEnd(clock.now() - began, [work.cut.get(key, key) for key in round_.keys])

    def _attempt(self, work: _Work) -> int:
        """Run with as many rows at once as fit into memory; returns how many strings ended.

        A string that is run again with fewer rows changes nothing stored.
        """
        published = self.search.config.protocol == "published"
        attempt = self._cram_published if published else self._cram
        count = len(work.round.keys)
        rows = min(self.search.config.batch_size or count, count)
        while True:
            try:
                return attempt(work, rows)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                if rows == 1:
                    raise WorkFailed("out of memory with one string at a time") from error
            # Outside the handler, whose traceback holds what the attempt had in memory. A collection takes as
            # long as a short round, so there is none where memory was enough.
            clear_device_cache(garbage_collection=True)
            rows = int(_FEWER * rows)

    def _cram(self, work: _Work, batch_size: int) -> int:
        """Cram under our protocols."""
        asked, m = work.round, work.chunk.condition.m
        watch = _Watch(work, partial(self._to_confirm, m))
        found = cram(
            self.model,
            asked.ids,
            m,
            self.search.optimiser.model_copy(update={"max_steps": asked.config.max_steps}),
            generators=[key_seed(key, 0) for key in asked.starts],
            batch_size=batch_size,
            search=self.search.model,
            on_result=partial(self._tell, work),
            on_step=watch,
            stop=work.clock.stopped,
            cut=watch.late,
            abandon=watch.too_late,
        )
        if len(found) > 1 and work.pace.shortest is not None:
            self._confirming[m] = work.pace.shortest
        return len(found)

    def _to_confirm(self, m: int, prefixes: Sequence[int]) -> float:
        """Return the seconds that confirming takes: as of the last strings at this m, else by tokens."""
        tokens = _DECODED * sum(prefixes) + _WRITTEN * len(prefixes)
        return max(tokens * self.token_seconds, self._confirming.get(m, 0.0) * len(prefixes))

    def _cram_published(self, work: _Work, batch_size: int) -> int:
        """Cram under the published protocol."""
        plan, asked = self.search.config, work.round
        settings = PublishedSettings(
            lr=plan.lr,
            betas=(plan.beta1, plan.beta2),
            max_steps=plan.max_steps,
            patience=plan.patience,
        )
        ended = 0
        for first in range(0, len(asked.keys), batch_size):
            part = slice(first, first + batch_size)
            found = cram_published(
                self.model,
                asked.ids[part],
                work.chunk.condition.m,
                settings,
                generators=[key_seed(key, 0) for key in asked.keys[part]],
                on_result=partial(self._tell_published, work, first),
                stop=work.clock.over,
            )
            ended += sum(one.outcome != "stopped" for one in found)
        return ended

    def _tell(self, work: _Work, one: CramResult) -> None:
        chunk, asked = work.chunk, work.round
        key, target = asked.keys[one.index], asked.ids[one.index]
        plan = self.search.config
        record = crammed_record(
            self.model,
            one,
            target,
            frame=frame_of(self.model, plan.bos, plan.prefix, plan.suffix),
            index=chunk.first + one.index,
            seconds=work.pace.lap(),
            max_steps=asked.config.max_steps,
        )
        if one.outcome == "cut":
            work.cut[key] = cut_key(key, one.steps)
            record, key = record.model_copy(update={"cut_of": key}), work.cut[key]
        if chunk.n is not None:
            record = at_a_length(record, chunk, solved=one.reach >= chunk.n)
        proof = None
        if one.reach > 0:
            claimed = claim(self.model.facts, one, m=chunk.condition.m, config=asked.config)
            stored = None
            if self.held is not None:
                claimed |= describe(self.held)
                stored = self.held.encode(torch.from_numpy(one.free))
            proof = Proof(one.vectors, target[: one.reach], claimed, stored)
        entry = Entry(key, chunk.condition.name, record, proof)
        work.tell(StringEnd(entry, work.shown, one.reach, record.outcome))

    def _tell_published(self, work: _Work, first: int, place: int, one: PublishedTrial) -> None:
        """Tell of a trial; ``place`` is in its batch, which begins at ``first``."""
        chunk, asked, row = work.chunk, work.round, first + place
        index, target = chunk.first + row, asked.ids[row]
        record = published_record(self.model, one, target, index=index, seconds=work.pace.lap())
        record = at_a_length(record, chunk, solved=one.solved)
        entry = Entry(asked.keys[row], chunk.condition.name, record)
        work.tell(StringEnd(entry, work.shown, target.size if one.solved else 0, one.outcome))


class _Watch:
    """Follows the steps of a round: tells how far they are, and when they have to end.

    Confirming what stands takes time as well, and so does the step that is asked about: both are kept back.
    """

    def __init__(self, work: _Work, to_confirm: Callable[[Sequence[int]], float]) -> None:
        self._work, self._to_confirm = work, to_confirm
        self._last, self._ahead, self._confirming = work.clock.now(), 0.0, 0.0

    def __call__(self, step: StepReport) -> None:
        work, now = self._work, self._work.clock.now()
        self._confirming = self._to_confirm(step.prefixes)
        self._ahead = now - self._last + self._confirming
        self._last = now
        if now - work.told >= _TOLD_EVERY_S:
            work.told = now
            name, most = work.chunk.condition.name, work.round.config.max_steps
            work.tell(Stepped(name, step.steps, most, step.prefixes))

    def late(self) -> bool:
        """Say whether another step would leave too little time to confirm what stands."""
        return self._work.clock.late(self._ahead)

    def too_late(self) -> bool:
        """Say whether a step that takes longer than the last one has to be given up for the same."""
        return self._work.clock.late(self._confirming)
