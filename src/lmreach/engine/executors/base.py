"""One interface to all workers: items in, futures out, and on the way what is finished of an item.

A *worker* is made where it is to work, brings its model in once, and answers one item after the other. It may
tell of parts as they are finished. An item whose worker died is given to another: what was told twice has the
same key, so the ledger keeps it once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from lmreach.errors import LmreachError

__all__ = ["Begin", "Executor", "Stopped", "Tell", "WorkFailed", "Worker"]

Tell = Callable[[Any], None]
Stopped = Callable[[], bool]
Worker = Callable[[Any, Tell, Stopped], Any]
"""Answers an item: it is given the item, whom to tell of finished parts, and whom to ask whether to stop."""
Begin = Callable[[], Worker]
"""Makes a worker, in the process that it is to work in."""


class WorkFailed(LmreachError):
    """An item that could not be done: the others can, and their results stand."""


class Executor(ABC):
    """Workers that are handed items; a context manager, at whose end they are gone.

    Attributes
    ----------
    size
        How many items are worked on at once.
    """

    size: int

    @abstractmethod
    def submit(self, item: Any) -> "Future[Any]":
        """Hand an item out; the future holds its answer, or `WorkFailed`."""

    @abstractmethod
    def wait(self, futures: Iterable["Future[Any]"], timeout: float) -> "set[Future[Any]]":
        """Return which futures are done, after at most so many seconds; passes on what workers told.

        Raises
        ------
        LmreachError
            Workers refuse to begin: whatever is handed out, they would again.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask workers to leave what they are at."""

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
