"""Ending a pass of a model from outside: between its blocks, forth and back, not only between passes.

One pass over a few prompts takes a minute on a large model and a slow machine, so whoever has a time limit
puts it around all passes at once::

    with stoppable(clock.over):
        ...  # any pass in here raises PassStopped once the clock says so
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from lmreach.errors import LmreachError

__all__ = ["PassStopped", "interruptible", "stoppable"]

Stop = Callable[[], bool]

_STOPS: ContextVar[tuple[Stop, ...]] = ContextVar("stops", default=())


class PassStopped(LmreachError):
    """A pass was ended before it was through; nothing of it is known."""


@contextmanager
def stoppable(stop: Stop) -> Iterator[None]:
    """End every pass in here, of whichever model, as soon as ``stop`` says so.

    Raises
    ------
    PassStopped
        From the pass that was under way.
    """
    token = _STOPS.set((*_STOPS.get(), stop))
    try:
        yield
    finally:
        _STOPS.reset(token)


@contextmanager
def interruptible(blocks: Sequence[nn.Module]) -> Iterator[None]:
    """Ask before every block of a pass, and again on the way back, whether it is to go on."""
    stops = _STOPS.get()

    def ask() -> None:
        if any(stop() for stop in stops):
            raise PassStopped("stopped within a pass of the model")

    def before(module: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        ask()
        states = next((one for one in (*args, *given.values()) if _has_gradient(one)), None)
        if states is not None:
            states.register_hook(lambda _gradient: ask())

    with ExitStack() as stack:
        for block in blocks if stops else ():
            stack.callback(block.register_forward_pre_hook(before, with_kwargs=True).remove)
        yield


def _has_gradient(given: Any) -> bool:
    return isinstance(given, Tensor) and given.requires_grad
