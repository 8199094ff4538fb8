"""Handing parts of a run to workers, as many at once as there are."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from lmreach.engine.executors.base import Executor, WorkFailed

__all__ = ["answers"]

Item = TypeVar("Item")
_LOOK_S = 0.2


def answers(
    executor: Executor, items: Iterable[Item], stop: Callable[[], bool], failed: Callable[[Item, str], None]
) -> Iterator[tuple[Item, Any]]:
    """Give each item with its answer, as it comes; what was stopped, or not handed out, is left out.

    Parameters
    ----------
    stop
        Asked before each item is handed out, and while some are worked on.
    failed
        Told of items that could not be done, and why.
    """
    left, away = iter(items), dict[Future[Any], Item]()
    asked_to_stop, more = False, True
    while True:
        while more and len(away) < executor.size and not stop():
            item = next(left, None)
            more = item is not None
            if item is not None:
                away[executor.submit(item)] = item
        if not away:
            return
        for future in executor.wait(away, _LOOK_S):
            item = away.pop(future)
            try:
                answer = future.result()
            except WorkFailed as error:
                failed(item, str(error))
                continue
            if answer is not None:
                yield item, answer
        if stop() and not asked_to_stop:
            asked_to_stop = True
            executor.stop()
