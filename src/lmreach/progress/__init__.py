"""What a long run tells whoever watches: stages, finished strings and the time still needed."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Progress", "Silent", "watching"]


class Progress(Protocol):
    """Receiver of a run's progress; every method is cheap and must not raise."""

    def stage(self, text: str) -> None:
        """Say what begins now."""

    def plan(self, strings: int) -> None:
        """Say how many strings are planned from here on."""

    def step(self, cell: str, step: int, steps: int, prefixes: Sequence[int]) -> None:
        """Say how far strings are that are optimised together.

        Parameters
        ----------
        step, steps
            Steps taken, and at most.
        prefixes
            Tokens of each string that came out so far, none confirmed yet.
        """

    def string(self, cell: str, reach: int, outcome: str) -> None:
        """Say that one string has finished."""

    def expect(self, seconds: float | None) -> None:
        """Say how long the rest will take, as measured so far; None: not known yet."""

    def note(self, text: str) -> None:
        """Say something that the user should know."""


class Silent:
    """Progress that nobody watches."""

    def stage(self, text: str) -> None:
        """Ignore."""

    def plan(self, strings: int) -> None:
        """Ignore."""

    def step(self, cell: str, step: int, steps: int, prefixes: Sequence[int]) -> None:
        """Ignore."""

    def string(self, cell: str, reach: int, outcome: str) -> None:
        """Ignore."""

    def expect(self, seconds: float | None) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""


@contextmanager
def watching(progress: Progress | None) -> Iterator[Progress]:
    """Give whoever is told: the one given, else a bar where a terminal or notebook shows it, else nobody."""
    if progress is not None or not _looked_on():
        yield progress or Silent()
        return
    from lmreach.progress.terminal import Terminal  # brings rich

    terminal = Terminal()
    try:
        yield terminal
    finally:
        terminal.close()


def _looked_on() -> bool:
    """Whether standard error is a terminal, or this is a notebook's kernel."""
    shell = sys.modules.get("IPython")
    kernel = None if shell is None else shell.get_ipython()
    return sys.stderr.isatty() or type(kernel).__name__ == "ZMQInteractiveShell"
