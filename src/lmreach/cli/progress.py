"""Ctrl-C and SIGTERM while a command runs."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

# A cluster sends SIGTERM and kills ten seconds or more later.
_GRACE_S = 8.0


class Interrupt:
    """Turns the first Ctrl-C, and SIGTERM, into a request to stop at the next step.

    A second Ctrl-C kills. After SIGTERM the process ends within ten seconds, whatever it is at: what is
    finished is in the ledger, and the rest of a step cannot be kept anyway.

    Attributes
    ----------
    asked
        Whether a stop was asked for.
    code
        Exit code of a run that was stopped so.
    """

    def __init__(self) -> None:
        self.asked = False
        self.code = 130
        self._before: dict[signal.Signals, Any] = {}
        self._timer = threading.Timer(_GRACE_S, _leave)
        self._timer.daemon = True

    def __enter__(self) -> "Interrupt":
        handlers = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._terminate}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Return whether a stop was asked for."""
        return self.asked

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self._ask("Ctrl-C again to kill")

    def _terminate(self, _signal: int, _frame: FrameType | None) -> None:
        if self.code == _TERMINATED:
            return
        self.code = _TERMINATED
        self._timer.start()
        self._ask(f"within {_GRACE_S:g} s")

    def _ask(self, more: str) -> None:
        self.asked = True
        print(
            f"\nlmreach: stopping after this step and writing what is finished; {more}",
            file=sys.stderr,
        )


_TERMINATED = 128 + signal.SIGTERM


def _leave() -> None:
    """End the process in the middle of a step."""
    print("lmreach: ended before its next step; finished trials are kept, resume goes on", file=sys.stderr)
    sys.stderr.flush()
    os._exit(_TERMINATED)
