"""No other process: items are worked on as they are handed out."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from lmreach.engine.executors.base import Executor, Stopped, Tell, Worker, WorkFailed

__all__ = ["Local"]


class Local(Executor):
    """One worker, in this very thread.

    Parameters
    ----------
    worker
        Answers items.
    tell
        Told of finished parts at once.
    stopped
        What the worker asks.
    """

    def __init__(self, worker: Worker, tell: Tell, stopped: Stopped) -> None:
        self.size = 1
        self._worker, self._tell, self._stopped = worker, tell, stopped

    def submit(self, item: Any) -> "Future[Any]":
        """Work on an item until it is answered."""
        future: Future[Any] = Future()
        try:
            future.set_result(self._worker(item, self._tell, self._stopped))
        except WorkFailed as error:
            future.set_exception(error)
        return future

    def wait(self, futures: Iterable["Future[Any]"], timeout: float) -> "set[Future[Any]]":
        """Return all: they are answered already."""
        return set(futures)

    def stop(self) -> None:
        """Do nothing: whoever would ask is asked itself."""

    def close(self) -> None:
        """Do nothing."""
