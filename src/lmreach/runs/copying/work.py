"""Parts of a copying run as a worker does them: strings of one length, or strings crammed at one m."""

from dataclasses import dataclass

from lmreach.config.copying import Decoding
from lmreach.engine.executors.base import Stopped, Tell
from lmreach.experiments.copying.measure import measure
from lmreach.experiments.copying.prompts import Laid
from lmreach.models.loaded import LoadedModel
from lmreach.models.source import ModelSource
from lmreach.results.records import CopyRecord, CrammedRecord
from lmreach.runs.copying.limit import cram_strings

__all__ = ["Copier", "CopyWorker", "Crammed", "Length", "Part", "length_record"]


@dataclass(frozen=True, slots=True)
class Length:
    """Strings of one length in one layout."""

    laid: Laid
    n: int
    strings: int
    seed: int
    decoding: Decoding


@dataclass(frozen=True, slots=True)
class Crammed:
    """Strings of the symbols that strings are drawn from, crammed into m vectors."""

    laid: Laid
    m: int
    strings: int
    steps: int
    seed: int


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """What one trial of the ledger holds."""

    key: str
    cell: str
    asked: Length | Crammed


@dataclass(frozen=True, slots=True)
class CopyWorker:
    """Makes the worker of a copying run where it is to work; pickles."""

    source: ModelSource

    def __call__(self) -> "Copier":
        """Return the worker."""
        return Copier(self.source.bring())


@dataclass(frozen=True, slots=True)
class Copier:
    """The worker of a copying run: does one part after the other."""

    model: LoadedModel

    def __call__(self, part: Part, tell: Tell, stopped: Stopped) -> CopyRecord | CrammedRecord | None:
        """Return what the ledger is to keep of a part; None: it was stopped."""
        asked = part.asked
        if isinstance(asked, Length):
            return length_record(self.model, asked)
        crammed = cram_strings(
            self.model,
            asked.laid.symbols,
            asked.m,
            strings=asked.strings,
            steps=asked.steps,
            seed=asked.seed,
            stop=stopped,
        )
        return None if crammed is None else CrammedRecord(crammed=crammed)


def length_record(model: LoadedModel, asked: Length) -> CopyRecord:
    """Return the record of a length."""
    score = measure(model, asked.laid, asked.n, asked.strings, seed=asked.seed, decoding=asked.decoding)
    return score.record(asked.laid.name)
