"""How far a run is."""

from typing import ClassVar, Literal

from lmreach.results.base import Result
from lmreach.results.shown import Shown

__all__ = ["PartStatus", "RunStatus", "Unfinished"]


class PartStatus(Result):
    """One part of a run: a condition of a study, a block of a census, the training of a copier.

    Attributes
    ----------
    done
        How many are finished.
    of
        How many were asked for; None: nobody knows before the end.
    noun
        Of what.
    ended
        Whether this part is through; None where only the count says so.
    """

    name: str
    done: int
    of: int | None
    noun: str
    ended: bool | None = None


class Unfinished(Result):
    """Something that was not done, and why; ``open``: going on would do it."""

    what: str
    why: str
    open: bool


class RunStatus(Shown):
    """How far a run is, what is left, and how to go on with it.

    Attributes
    ----------
    kind
        study (a cram too), census, reachable or copy.
    state
        ``running``: a process writes to it; ``stopped``: going on would do more; ``done``: nothing is left.
    writer
        The process that writes to it.
    failed
        Parts that failed, each with its reason.
    go_on
        The command that goes on; empty where nothing is left or a process is at it.
    """

    _table: ClassVar[str] = "parts"

    folder: str
    kind: str
    model: str
    state: Literal["running", "stopped", "done"]
    writer: str | None
    parts: tuple[PartStatus, ...]
    left: tuple[Unfinished, ...]
    failed: tuple[str, ...]
    came_to_its_end: bool
    go_on: str
