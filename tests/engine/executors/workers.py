"""Workers of tests: they need no model, and do to themselves what a cluster does to them."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmreach.engine.executors.base import Begin, Stopped, Tell, WorkFailed
from lmreach.errors import ModelError


@dataclass(frozen=True)
class Doubling:
    """A worker that doubles numbers, and tells of each before it answers.

    ``place`` keeps a file for each item that was begun, which is how a worker knows that it is not the first.
    """

    place: Path
    refuses: str = ""

    def __call__(self) -> Callable[[Any, Tell, Stopped], Any]:
        if self.refuses:
            raise ModelError(self.refuses)
        return self.work

    def first(self, item: Any) -> bool:
        mark = self.place / f"begun-{item}"
        before = mark.exists()
        mark.touch()
        return not before

    def work(self, item: Any, tell: Tell, stopped: Stopped) -> Any:
        first = self.first(item)
        if item == "dies once" and first:
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "dies":
            os._exit(3)
        if item == "breaks":
            raise ValueError("something unforeseen")
        if item == "fails":
            raise WorkFailed("out of memory with one string at a time")
        if item == "waits":
            while not stopped():
                time.sleep(0.01)
            return None
        tell(("half", item))
        return item * 2


def never() -> Begin:
    raise AssertionError("nobody begins there")
