"""Progress in a terminal or a notebook: a bar with the expected end, plain lines elsewhere."""

import time
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

# Without a terminal, lines about strings come at most this often.
_QUIET_S = 10.0


class Terminal:
    """Progress drawn with rich on standard error; lines where that is neither a terminal nor a notebook."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._done = 0
        self._total = 0
        self._ends: float | None = None
        self._spoke = 0.0
        self._begun = time.monotonic()
        # In a notebook rich draws with ipywidgets, and only warns where they are missing.
        notebook = self._console.is_jupyter and find_spec("ipywidgets") is not None
        if self._console.is_terminal or notebook:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[expected]}"),
                TimeElapsedColumn(),
                console=self._console,
            )
            self._task = self._bar.add_task("starting", total=None, expected="")
            self._bar.start()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def stage(self, text: str) -> None:
        """Say what begins now."""
        if self._bar is None:
            self._say(text)
        else:
            self._update(description=text)

    def plan(self, strings: int) -> None:
        """Set how many strings are still planned."""
        self._total = self._done + strings
        self._update(total=self._total)

    def string(self, cell: str, reach: int, outcome: str) -> None:
        """Count one finished string."""
        self._done += 1
        text = f"{cell}: reached {reach} tokens ({outcome.replace('_', ' ')})"
        if self._bar is None and time.monotonic() - self._spoke > _QUIET_S:
            self._say(f"{text}, {self._done} of {self._total} strings{self._left(', ')}")
        self._update(description=text, completed=self._done, expected=self._left())

    def expect(self, seconds: float | None) -> None:
        """Set how long the rest will take, as measured so far."""
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._update(expected=self._left())

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._say(text)

    def _left(self, lead: str = "") -> str:
        """Return the time left until the expected end, which is set anew with every batch of strings."""
        if self._ends is None:
            return ""
        return f"{lead}about {_spoken(max(self._ends - time.monotonic(), 0.0))} left"

    def _update(self, **what: Any) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **what)

    def _say(self, text: str) -> None:
        self._spoke = time.monotonic()
        self._console.print(f"[{_clock(self._spoke - self._begun)}] {text}", markup=False, soft_wrap=True)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:d}:{int(seconds) % 60:02d}"


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
