"""Processes of this machine, each with a model of its own; threads are divided among them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable

from lmreach.engine.executors.base import Begin, Tell
from lmreach.engine.executors.connection import KEY, Called, Callers
from lmreach.engine.executors.pool import Link, Pool

__all__ = ["Processes", "threads_of_each"]

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Processes(Pool):
    """A pool of processes.

    Parameters
    ----------
    begin
        Makes a worker; it is pickled.
    size
        Number of processes.
    tell
        Told of finished parts.
    """

    def __init__(self, begin: Begin, size: int, tell: Tell) -> None:
        self._begin, self._callers = begin, Callers()
        self._threads_of_each = threads_of_each(size)
        super().__init__(self._link, size, tell)

    def close(self) -> None:
        """End the processes."""
        super().close()
        self._callers.close()

    def _link(self, number: int, closed: Callable[[], bool]) -> Link:
        def start() -> Called:
            return _Process(self._callers, number, self._threads_of_each)

        return self._callers.link(number, self._begin, start, closed)


def threads_of_each(size: int) -> int:
    """Return the threads of each of so many processes: a share of those that one would have."""
    named = next((os.environ[name] for name in _THREADS if os.environ.get(name, "").isdigit()), None)
    return max(int(named or os.cpu_count() or 1) // size, 1)


class _Process(Called):
    def __init__(self, callers: Callers, number: int, threads: int) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        environment = {
            **os.environ,
            **dict.fromkeys(_THREADS, str(threads)),
            KEY: callers.key.hex(),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        command = [
            sys.executable,
            "-m",
            "lmreach.engine.executors.connection",
            str(callers.address),
            str(number),
        ]
        self._process = subprocess.Popen(  # noqa: S603
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said
        )

    def ended(self) -> str | None:
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"exit code {code}{said and ': ' + said[:300]}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._said.close()
