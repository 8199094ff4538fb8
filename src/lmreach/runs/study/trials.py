"""The driver's side of a round: which strings it holds, whether the ledger has them, writing them."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from lmreach.config import CramPlan
from lmreach.engine.clock import Clock
from lmreach.engine.executors.base import Executor
from lmreach.engine.keys import Occurrences, cram_key, record_version
from lmreach.engine.store import Store
from lmreach.models.facts import ModelFacts
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.progress import Progress
from lmreach.results.records import Trial
from lmreach.runs.study.conditions import Answer, Chunk
from lmreach.runs.study.ledger import is_failed
from lmreach.runs.study.round import Round, RoundEnd, Stepped, StringEnd
from lmreach.runs.study.search import Search
from lmreach.runs.study.strings import Strings

__all__ = ["Cramming", "Finished", "Writer"]

_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Finished:
    """A chunk that is through: what it cost, and what became of its strings in their order."""

    seconds: float
    answers: list[Answer]


@dataclass(frozen=True, slots=True)
class Writer:
    """Takes what workers tell: strings go into the ledger, and whoever watches hears of it."""

    store: Store
    progress: Progress
    news: Callable[[], None]

    def __call__(self, told: StringEnd | Stepped) -> None:
        """Take note."""
        if isinstance(told, Stepped):
            self.progress.step(told.name, told.steps, told.most, told.prefixes)
        else:
            self.store.add_entry(told.entry)
            self.news()
            self.progress.string(told.shown, told.tokens, told.outcome)


@dataclass(frozen=True, slots=True, eq=False)
class Cramming:
    """Hands rounds to workers and reads off the ledger what came of them.

    Attributes
    ----------
    facts
        Of the model.
    search
        Settings, and what was found to search with.
    strings, store
        Where targets come from and where records go.
    clock
        How much time a round has.
    executor
        The workers.
    """

    facts: ModelFacts
    search: Search
    strings: Strings
    store: Store
    clock: Clock
    executor: Executor
    _equal: dict[tuple[str, int], Occurrences] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many rounds are run at once."""
        return self.executor.size

    def known(self, chunk: Chunk) -> Finished | None:
        """Return what became of a chunk if the ledger holds all its strings, none of them cut.

        A resumed run reads its costs off the ledger: what was run before decides as it did then.
        """
        keys = self._keys(chunk, self._config(chunk))
        if len(self.store.written(keys)) < len(set(keys)):
            return None
        own = self.store.records(Trial, keys)
        return Finished(sum(trial.seconds for trial in own), [_answer(trial) for trial in own])

    def start(self, chunk: Chunk) -> "Future[Any]":
        """Have a chunk run; the future is for `finished`."""
        ready: Future[Any] = Future()
        try:
            with stoppable(self.clock.late):  # strings of some kinds are sampled from the model
                known = self.known(chunk)
                asked = None if known is not None else self._round(chunk)
        except PassStopped:
            known, asked = None, None
        if asked is not None:
            return self.executor.submit(asked)
        ready.set_result(known)
        return ready

    def _round(self, chunk: Chunk) -> Round:
        config = self._config(chunk)
        return Round(
            chunk,
            config,
            self._ids(chunk)[chunk.first :],
            self._keys(chunk, config),
            self._keys(chunk, self.search.config),
            self.clock.remaining(),
        )

    def wait(self, futures: Iterable["Future[Any]"]) -> "set[Future[Any]]":
        """Return which chunks are through, after a moment at most."""
        return self.executor.wait(futures, _LOOK_S)

    def finished(self, future: "Future[Any]") -> Finished | None:
        """Return what became of a chunk; None: it was stopped before its end.

        Raises
        ------
        WorkFailed
            It could not be run.
        """
        end: RoundEnd | Finished | None = future.result()
        if not isinstance(end, RoundEnd):
            return end
        own = self.store.records(Trial, end.keys)
        return Finished(end.seconds, [_answer(trial) for trial in own])

    def stop(self) -> None:
        """Have workers leave what they are at."""
        self.executor.stop()

    def _ids(self, chunk: Chunk) -> Any:
        n = chunk.n or self.strings.limit(chunk.condition.m)
        return self.strings.ids(chunk.condition.target, n, chunk.last)

    def _keys(self, chunk: Chunk, asked: CramPlan) -> list[str]:
        drawn, version = self._ids(chunk), record_version(self.store)
        equal = self._equal.setdefault((chunk.condition.target, drawn.shape[1]), Occurrences())
        return [
            cram_key(
                fingerprint=self.facts.fingerprint,
                dtype=self.facts.dtype,
                m=chunk.condition.m,
                target=row,
                config=asked,
                occurrence=earlier,
                version=version,
                start_scale=self.search.start_scale,
            )
            for row, earlier in zip(drawn[chunk.first :], equal.of(drawn, chunk.first), strict=True)
        ]

    def _config(self, chunk: Chunk) -> CramPlan:
        """Return the settings with the steps that the run chose for a condition, if it did."""
        steps = chunk.condition.steps
        return self.search.config.model_copy(update={"max_steps": steps}) if steps else self.search.config


def _answer(trial: Trial) -> Answer:
    """Read a record: a trial at one length says whether it was solved, another whether it met its limit."""
    whole = trial.outcome == "hit_limit" if trial.solved is None else trial.solved
    return Answer(trial.reach, whole, is_failed(trial))
