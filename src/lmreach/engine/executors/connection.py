"""Workers that a connection leads to: the messages, the worker's end, and the driver's.

A worker calls the driver back, over a socket whose two ends prove to each other that they know a key. It ends
when the driver is gone.
"""

import os
import secrets
import signal
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from queue import SimpleQueue
from typing import Any

import lmreach.errors
from lmreach.engine.executors.base import Begin, Tell, WorkFailed
from lmreach.engine.executors.pool import Closed, Link, WorkerDied
from lmreach.errors import LmreachError

__all__ = ["KEY", "Called", "Callers", "call_back"]

KEY = "LMREACH_WORKER_KEY"
"""Environment variable that holds the key, in hex digits."""
_POLL_S = 0.2


# The worker's end ----------------------------------------------------------------------------------------


def call_back(address: Any, number: int, key: bytes) -> None:
    """Work for the driver that listens at an address, until it is gone."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the driver decides
    with Client(address, authkey=key) as driver:
        driver.send(number)
        _Worker(driver).run()


class _Worker:
    def __init__(self, driver: "Connection[Any, Any]") -> None:
        self._driver = driver
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._stop = threading.Event()

    def run(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        worker = None
        while True:
            kind, what = self._items.get()
            try:
                if kind == "begin":
                    worker = what()
                    self._send("ready", None)
                else:
                    assert worker is not None
                    self._send("done", worker(what, lambda told: self._send("told", told), self._stop.is_set))
            except LmreachError as error:
                self._send("refused", (type(error).__name__, str(error)))
            except Exception as error:
                traceback.print_exc()
                self._send("broke", f"{type(error).__name__}: {error}")

    def _read(self) -> None:
        """Take the driver's words while the other thread works; without a driver nobody needs a worker."""
        while True:
            try:
                kind, what = self._driver.recv()
            except (EOFError, OSError):
                os._exit(0)
            except Exception:  # what was sent cannot be unpickled here
                traceback.print_exc()
                os._exit(1)
            if kind == "stop":
                self._stop.set()
            else:
                self._items.put((kind, what))

    def _send(self, kind: str, what: Any) -> None:
        self._driver.send((kind, what))


# The driver's end ----------------------------------------------------------------------------------------


class Called(ABC):
    """What was started to call back: a process, a job."""

    @abstractmethod
    def ended(self) -> str | None:
        """Return how it ended; None: it has not."""

    @abstractmethod
    def kill(self) -> None:
        """End it."""


class Callers:
    """Listens for the workers that were started to call back.

    Parameters
    ----------
    host
        Name under which this machine is known to the workers'; None: they are on this one.
    """

    def __init__(self, host: str | None = None) -> None:
        self.key = secrets.token_bytes(32)
        if host is None:
            self._listener = Listener(authkey=self.key)
            self.address: Any = self._listener.address
        else:
            self._listener = Listener(("", 0), authkey=self.key)
            self.address = (host, self._listener.address[1])
        self._called: dict[int, Connection[Any, Any]] = {}
        self._change = threading.Condition()
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                caller = self._listener.accept()
                number = caller.recv()
            except (AuthenticationError, EOFError, OSError):
                continue  # a stranger, or the end
            with self._change:
                self._called[number] = caller
                self._change.notify_all()

    def link(
        self, number: int, begin: Begin, start: Callable[[], Called], closed: Callable[[], bool]
    ) -> "Caller":
        """Start a worker, wait for its call, and have it begin.

        Raises
        ------
        WorkerDied, LmreachError, Closed
            As a pool's ``connect``.
        """
        called = start()
        try:
            driver = self._wait_for(number, called, closed)
            link = Caller(driver, called)
            link.begin(begin, closed)
        except BaseException:
            called.kill()
            raise
        return link

    def _wait_for(self, number: int, called: Called, closed: Callable[[], bool]) -> "Connection[Any, Any]":
        while True:
            with self._change:
                if self._change.wait_for(lambda: number in self._called, _POLL_S):
                    return self._called.pop(number)
            if closed():
                raise Closed
            how = called.ended()
            if how is not None:
                raise WorkerDied(f"the worker ended before it began ({how})")

    def close(self) -> None:
        """Listen no longer."""
        self._closed.set()
        with suppress(OSError):
            self._listener.close()


class Caller(Link):
    """The link to a worker that called."""

    def __init__(self, worker: "Connection[Any, Any]", called: Called) -> None:
        self._worker, self._called = worker, called

    def begin(self, begin: Begin, closed: Callable[[], bool]) -> None:
        """Have the worker begin, and wait until it is ready."""
        self._send("begin", begin)
        while not self._worker.poll(_POLL_S):
            if closed():
                raise Closed
        try:
            self._answer(lambda _: None)
        except WorkFailed as error:
            raise WorkerDied(str(error)) from error

    def ask(self, item: Any, tell: Tell) -> Any:
        """Return the answer to an item."""
        self._send("do", item)
        return self._answer(tell)

    def stop(self) -> None:
        """Ask the worker to leave what it is at."""
        with suppress(OSError, WorkerDied):
            self._send("stop", None)

    def end(self) -> None:
        """End the worker."""
        self._called.kill()
        with suppress(OSError):
            self._worker.close()

    def _send(self, kind: str, what: Any) -> None:
        try:
            self._worker.send((kind, what))
        except OSError as error:
            raise WorkerDied(self._how()) from error

    def _answer(self, tell: Tell) -> Any:
        while True:
            try:
                kind, what = self._worker.recv()
            except (EOFError, OSError, TypeError) as error:  # the last where it is closed meanwhile
                raise WorkerDied(self._how()) from error
            if kind == "told":
                tell(what)
            elif kind in ("ready", "done"):
                return what
            elif kind == "broke":
                raise WorkerDied(f"the worker broke ({what})")
            else:
                name, text = what
                kinds: dict[str, type[LmreachError]] = {**vars(lmreach.errors), "WorkFailed": WorkFailed}
                raise kinds.get(name, LmreachError)(text)

    def _how(self) -> str:
        for _ in range(20):
            how = self._called.ended()
            if how is not None:
                return f"the worker died ({how})"
            time.sleep(0.05)
        return "the worker closed its connection"


if __name__ == "__main__":
    call_back(sys.argv[1], int(sys.argv[2]), bytes.fromhex(os.environ.pop(KEY)))
