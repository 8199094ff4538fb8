"""What single questions give: about the cells of a decoder, and whether one output can be produced."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from lmreach.results.base import Result
from lmreach.results.cells import Cells
from lmreach.results.run import RunResults
from lmreach.results.shown import Shown

__all__ = ["Answer", "CellsResults", "ReachabilityResults", "Tried"]


class CellsResults(Cells, Shown):
    """Parts of the question about decoder cells; None: not asked for, or not through when it was stopped.

    Attributes
    ----------
    vocab, width
        Usable tokens, and coordinates of a hidden state.
    files
        Names of the files that the map was drawn into. Empty: none was.
    interrupted
        Whether it was stopped before all parts were through.
    """

    model: str
    vocab: int
    width: int
    files: tuple[str, ...] = ()
    interrupted: bool = False

    def rows(self) -> Sequence[Result]:
        """Return the largest cells, else the cells of drawn tokens, else those on the map."""
        if self.shares is not None:
            return self.shares.largest
        if self.rare is not None:
            return self.rare.tokens
        return () if self.map is None else self.map.cells


class Tried(Result):
    """How far a search came at one number of vectors, in tokens of the text."""

    m: int
    longest_start: int


class Answer(Result):
    """Whether one output can be produced at all; "no" only with a proof.

    Attributes
    ----------
    reason
        One sentence.
    m, bos, smallest_gap
        For ``yes``: the prompt that emits it. None: another verdict.
    """

    verdict: Literal["yes", "no", "not found"]
    reason: str
    ids: tuple[int, ...]
    tokens: int
    m: int | None
    bos: str
    smallest_gap: float | None
    tried: tuple[Tried, ...]
    seconds: float


class ReachabilityResults(Answer, RunResults):
    """The answer to whether one output can be produced, from which model, and where its proof is.

    Attributes
    ----------
    certificate
        Name of the file in the run's folder that holds the vectors. None: there is none.
    """

    _table: ClassVar[str] = "tried"

    kind: Literal["reachable"] = "reachable"
    certificate: str | None = None
