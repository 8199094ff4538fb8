"""How many threads steps are taken with: on a busy machine one is often quicker than all."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import step_wall_seconds
from lmreach.models.stopping import PassStopped, stoppable

__all__ = ["quickest_threads", "timed_threads"]

_ASKED_BY = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Fewer threads must be clearly quicker: they leave the others' cores alone, but a choice on the edge would
# differ from run to run.
_WORTH_IT = 1.1


def quickest_threads(seconds: Callable[[int], float], most: int) -> int:
    """Return the number of threads, ``most`` or a half, a quarter, ... of it, whose step is quickest.

    Parameters
    ----------
    seconds
        Seconds of a step with so many threads.
    """
    best, least = most, seconds(most)
    threads = most
    while threads > 1:
        threads //= 2
        own = seconds(threads)
        if own * _WORTH_IT < least:
            best, least = threads, own
    return best


@contextmanager
def timed_threads(model: LoadedModel, stop: Callable[[], bool] = lambda: False) -> Iterator[int]:
    """Work with the quickest number of threads, unless the user set one; it is put back at the end.

    Parameters
    ----------
    stop
        Asked within the timed steps; a yes ends them, and the number of threads stays what it is.
    """
    before = torch.get_num_threads()
    if before == 1 or model.device.type != "cpu" or any(name in os.environ for name in _ASKED_BY):
        yield before
        return

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        return step_wall_seconds(model)

    try:
        threads = before
        with suppress(PassStopped), stoppable(stop):
            threads = quickest_threads(seconds, before)
        torch.set_num_threads(threads)
        yield threads
    finally:
        torch.set_num_threads(before)
