"""Workers elsewhere: each has a thread here that hands it items, and replaces it when it dies."""

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from lmreach.engine.executors.base import Executor, Tell, WorkFailed

__all__ = ["Closed", "Link", "Pool", "WorkerDied"]

_TRIES = 3
"""How often an item is given to a worker, and how often in a row one may fail to begin."""
_GRACE_S = 5.0


class WorkerDied(Exception):
    """A worker that is gone, or broke; another may do what it was at."""


class Closed(Exception):
    """The pool was closed while a worker was to begin."""


class Link(ABC):
    """The driver's end of one worker, from its beginning on."""

    @abstractmethod
    def ask(self, item: Any, tell: Tell) -> Any:
        """Return the answer to an item.

        Raises
        ------
        WorkFailed
            The worker says that it cannot be done.
        WorkerDied
            It ended, or something unforeseen went wrong in it.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask the worker to leave what it is at."""

    @abstractmethod
    def end(self) -> None:
        """End the worker, whatever it is at."""


@dataclass(eq=False)
class _Job:
    item: Any
    future: "Future[Any]" = field(default_factory=Future)
    deaths: int = 0


class Pool(Executor):
    """Threads that wait for items and for answers.

    Parameters
    ----------
    connect
        Begins the worker of a number and returns the link to it, once it is ready; may take as long as a
        cluster needs. It is given a question to ask meanwhile: whether the pool was closed, upon which it
        raises `Closed`. Raises `WorkerDied` where the worker did not begin, and another `LmreachError` where
        none would.
    size
        Number of workers. None begins before there is an item for it, and an item waits for nobody in
        particular: whoever is ready takes it.
    tell
        Told of finished parts, in the thread that calls `wait`.
    """

    def __init__(self, connect: Callable[[int, Callable[[], bool]], Link], size: int, tell: Tell) -> None:
        self.size = size
        self._connect, self._tell = connect, tell
        self._told: SimpleQueue[Any] = SimpleQueue()
        self._jobs: deque[_Job] = deque()
        self._change = threading.Condition()
        self._links: dict[int, Link] = {}
        self._closed, self._asked_to_stop = False, False
        self._refused: Exception | None = None
        self._alive, self._why = size, ""
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), daemon=True) for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, item: Any) -> "Future[Any]":
        """Hand an item to whichever worker is free next."""
        job = _Job(item)
        with self._change:
            if self._alive:
                self._jobs.append(job)
                self._change.notify_all()
            else:
                job.future.set_exception(WorkFailed(self._why))
        return job.future

    def wait(self, futures: Iterable["Future[Any]"], timeout: float) -> "set[Future[Any]]":
        """Return which futures are done; passes on what was told before."""
        done, _ = wait_for(futures, timeout, FIRST_COMPLETED)
        while True:
            try:
                self._tell(self._told.get_nowait())
            except Empty:
                break
        if self._refused is not None:
            raise self._refused
        return done

    def stop(self) -> None:
        """Ask workers to leave what they are at; what waits is given back unanswered."""
        with self._change:
            self._asked_to_stop = True
            links = list(self._links.values())
        self._give_back()
        for link in links:
            link.stop()

    def close(self) -> None:
        """End the workers, those that are at something after a moment."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._give_back()
        ends = time.monotonic() + (_GRACE_S if self._asked_to_stop else 0.0)
        for thread in self._threads:
            thread.join(max(ends - time.monotonic(), 0.05))
        with self._change:
            links = list(self._links.values())
        for link in links:
            link.end()
        for thread in self._threads:
            thread.join(_GRACE_S)

    def _give_back(self) -> None:
        """Answer what no worker has begun with nothing."""
        with self._change:
            jobs = list(self._jobs)
            self._jobs.clear()
        for job in jobs:
            job.future.set_result(None)

    def _serve(self, number: int) -> None:
        """Hand items to one worker after the other until the pool is closed."""
        link, failures = None, 0
        try:
            while self._wanted():
                if link is None:
                    try:
                        link = self._connect(number, lambda: self._closed)
                    except WorkerDied as error:
                        failures += 1
                        if failures == _TRIES:
                            return self._give_up(str(error))
                        continue
                    failures = 0
                    with self._change:
                        self._links[number] = link
                job = self._take()
                if job is not None and not self._answer(job, link):
                    self._drop(number)
                    link = None
        except Closed:
            pass
        except Exception as error:  # raised where somebody waits
            self._refused = error
            self._give_up(str(error))
        finally:
            self._drop(number)

    def _wanted(self) -> bool:
        """Wait until there is an item; returns False once the pool is closed."""
        with self._change:
            self._change.wait_for(lambda: self._jobs or self._closed)
            return not self._closed

    def _take(self) -> _Job | None:
        with self._change:
            return self._jobs.popleft() if self._jobs else None

    def _answer(self, job: _Job, link: Link) -> bool:
        """Have an item answered; returns whether the worker is still good."""
        try:
            answer = link.ask(job.item, self._told.put)
        except WorkFailed as error:
            job.future.set_exception(error)
            return True
        except WorkerDied as error:
            self._again(job, str(error))
            return False
        job.future.set_result(answer)
        return True

    def _again(self, job: _Job, why: str) -> None:
        """Give an item to another worker, unless it was the end of too many."""
        job.deaths += 1
        with self._change:
            if self._closed or self._asked_to_stop:
                job.future.set_result(None)
            elif job.deaths < _TRIES:
                self._jobs.appendleft(job)
                self._change.notify_all()
            else:
                job.future.set_exception(WorkFailed(f"{why}, {job.deaths} times"))

    def _drop(self, number: int) -> None:
        with self._change:
            link = self._links.pop(number, None)
        if link is not None:
            link.end()

    def _give_up(self, why: str) -> None:
        """Let a thread go whose workers do not begin; with the last one goes whatever waits."""
        with self._change:
            self._alive -= 1
            self._why = why
            jobs = [] if self._alive else list(self._jobs)
            if not self._alive:
                self._jobs.clear()
        for job in jobs:
            job.future.set_exception(WorkFailed(why))
