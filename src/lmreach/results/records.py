"""What the ledger of a run keeps of each trial, one model per kind: written and read as JSON.

A ledger may come from another version: what it kept beside these fields is passed over, and a field that it
did not know has its default.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, JsonValue

from lmreach.results.answers import Answer
from lmreach.results.base import Result, Share
from lmreach.results.census import GridCount
from lmreach.results.copying import Crammed
from lmreach.results.upgrade import grid_parts

__all__ = [
    "AnswerRecord",
    "BlockRecord",
    "Certified",
    "CopyRecord",
    "CrammedRecord",
    "GridRecord",
    "Mistake",
    "MistakeKind",
    "Record",
    "Trial",
]


class Record(Result):
    """A row of the ledger.

    Attributes
    ----------
    key, cell
        Which trial it is, and the group it is counted in. Empty: not written yet.
    """

    # What is no number is written as such, so that the ledger refuses it instead of keeping null.
    model_config = ConfigDict(extra="ignore", ser_json_inf_nan="constants")

    key: str = ""
    cell: str = ""

    def written(self) -> dict[str, JsonValue]:
        """Return what the ledger writes beside key and cell: the fields that were set."""
        everything = self.model_dump(mode="json")
        return {name: everything[name] for name in self.model_fields_set - {"key", "cell"}}


class Certified(Record):
    """Ids, and how many of them are shown to come out by a certificate."""

    ids: tuple[int, ...] = ()
    reach: int = 0


class Trial(Certified):
    """One string of a study, or one string at a single length; None: the protocol has no use for it.

    Attributes
    ----------
    index
        Its place among the strings of its kind.
    limit
        Tokens that were asked for.
    outcome
        How it ended.
    smallest_gap
        Of the tokens that came out. None: none did.
    steps, max_steps
        Taken, over all restarts, and those it was to take.
    seconds
        From the end of the string before it to its own.
    text, emitted
        Of the target and of what came out.
    proposed
        Tokens that the optimiser's own model emitted.
    growing, growth
        Whether it still grew at the end, and tokens won, each with the step.
    cut_of
        Key of the trial that this one is the beginning of: time was up.
    solved, chunk
        Of a trial at one length: whether it was reached, and the strings that it was run with.
    best, decoded
        Of the published protocol: most of its tokens right at once, and whether all come out in decoding.
    ce_without_bits, ce_with_bits, tokens_gained
        What the vectors tell of the prefix that came out.
    """

    index: int
    limit: int
    outcome: str
    smallest_gap: float | None
    steps: int
    seconds: float
    text: str
    emitted: str
    max_steps: int | None = None
    proposed: int | None = None
    growing: bool = False
    growth: tuple[tuple[int, int], ...] | None = None
    cut_of: str | None = None
    solved: bool | None = None
    chunk: tuple[int, int] | None = None
    best: int | None = None
    decoded: bool | None = None
    ce_without_bits: float | None = None
    ce_with_bits: float | None = None
    tokens_gained: int | None = None


class GridRecord(Record):
    """All prompts of one grid."""

    grid: Annotated[GridCount, BeforeValidator(grid_parts)]


class BlockRecord(Record):
    """One block of prompts of real tokens.

    Attributes
    ----------
    ids
        What each prompt gives.
    tied, close
        Rows whose two largest logits were equal, and nearly so.
    """

    ids: tuple[tuple[int, ...], ...]
    tied: tuple[int, ...]
    close: tuple[int, ...]
    seconds: float


class AnswerRecord(Answer, Certified):
    """The answer to whether a text can be produced."""


MistakeKind = Literal["symbol", "ended early", "did not end", "other token"]


class Mistake(Result):
    """The first wrong id of an answer, and what it has to do with the characters before it.

    Attributes
    ----------
    place
        How many characters were right before it.
    emitted
        The id that came out.
    kind
        ``symbol``: another character of the alphabet; ``ended early``: the end mark; ``did not end``: all
        characters right and then no end mark; ``other token``: neither.
    order
        Largest k for which it followed another occurrence of the last k characters; 0: none.
    chance
        For each k of `lmreach.experiments.copying.mistakes.ORDERS`, the share of wrong symbols that would
        have had an order of at least k.
    ambiguity
        Largest k for which the last k characters have another occurrence that goes on differently.
    usual
        For each k, the share of all places of this string with an ambiguity of at least k.
    distance
        How many places from the right one the symbol that came out stands in the string, at the nearest; 0 if
        it does not stand in it, or where the answer is no part of the prompt.
    near
        For each k, the share of wrong symbols that have a distance of at most k (and not 0).
    """

    place: int
    emitted: int
    kind: MistakeKind
    order: int
    chance: tuple[float, ...]
    ambiguity: int
    usual: tuple[float, ...]
    distance: int
    near: tuple[float, ...]


class CopyRecord(Record):
    """Strings of one length asked for in one layout.

    Attributes
    ----------
    prompt, positions
        Positions of the longest prompt, and with its answer.
    exact, complete
        Answers that are right with their end mark, and those whose characters are all right.
    characters
        Characters right at their place.
    first_wrong
        Per string, how many characters were right before the first wrong one. None: nothing is wrong.
    right, of
        Per string, characters right at their place, and those of the answer.
    mistakes
        One per string that is not right, in order.
    """

    layout: str
    length: int
    decoding: str
    prompt: int
    positions: int
    strings: int
    exact: Share
    complete: Share
    characters: Share
    first_wrong: tuple[int | None, ...]
    right: tuple[int, ...]
    of: tuple[int, ...]
    mistakes: tuple[Mistake, ...]
    seconds: float


class CrammedRecord(Record):
    """Strings of a copier's alphabet crammed into m vectors."""

    crammed: Crammed
