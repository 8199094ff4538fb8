"""Progress in a terminal or a notebook: a bar with the expected end, plain lines elsewhere."""

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

# Without a terminal a line comes at least this often, and lines about steps and strings no more often.
QUIET_S = 10.0
_SHOWN = 12  # strings whose tokens are shown


class Terminal:
    """Progress drawn with rich on standard error; lines where that is neither a terminal nor a notebook.

    Parameters
    ----------
    console
        Where to draw; None: standard error.
    now
        Seconds of a clock that never goes back.
    """

    def __init__(self, console: Console | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(stderr=True, highlight=False) if console is None else console
        self._now = now
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._done = 0
        self._total = 0
        self._ends: float | None = None
        self._begun = self._spoke = now()
        self._stage = "starting"
        self._stage_began = self._begun
        self._beat: _Beat | None = None
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
            self._task = self._bar.add_task(self._stage, total=None, expected="")
            self._bar.start()
        else:
            self._beat = _Beat(self.beat)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
        if self._beat is not None:
            self._beat.end()

    def stage(self, text: str) -> None:
        """Say what begins now."""
        self._stage, self._stage_began = text, self._now()
        if self._bar is None:
            self._say(text)
        else:
            self._update(description=text)

    def beat(self) -> None:
        """Say what goes on if nothing was said for a while."""
        if self._now() - self._spoke >= QUIET_S:
            self._say(f"{self._stage}, for {_clock(self._now() - self._stage_began)} now{self._left(', ')}")

    def plan(self, strings: int) -> None:
        """Set how many strings are still planned."""
        self._total = self._done + strings
        self._update(total=self._total)

    def step(self, cell: str, step: int, steps: int, prefixes: Sequence[int]) -> None:
        """Say how far strings are that are optimised together."""
        text = step_line(cell, step, steps, prefixes)
        self._stage, self._stage_began = text, self._now()
        self._update(description=text, expected=self._left())
        self.beat_with(text)

    def beat_with(self, text: str) -> None:
        """Say a line unless one came just now."""
        if self._bar is None and self._now() - self._spoke >= QUIET_S:
            self._say(f"{text}{self._left(', ')}")

    def string(self, cell: str, reach: int, outcome: str) -> None:
        """Count one finished string."""
        self._done += 1
        text = f"{cell}: reached {reach} {'token' if reach == 1 else 'tokens'} ({outcome.replace('_', ' ')})"
        self._stage, self._stage_began = text, self._now()
        self.beat_with(f"{text}, {self._done} of {self._total} strings")
        self._update(description=text, completed=self._done, expected=self._left())

    def expect(self, seconds: float | None) -> None:
        """Set how long the rest will take, as measured so far."""
        self._ends = None if seconds is None else self._now() + seconds
        self._update(expected=self._left())

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._say(text)

    def _left(self, lead: str = "") -> str:
        """Return the time left until the expected end, which is set anew with every batch of strings."""
        if self._ends is None:
            return ""
        return f"{lead}about {_spoken(max(self._ends - self._now(), 0.0))} left"

    def _update(self, **what: Any) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **what)

    def _say(self, text: str) -> None:
        self._spoke = self._now()
        self._console.print(f"[{_clock(self._spoke - self._begun)}] {text}", markup=False, soft_wrap=True)


class _Beat:
    """Calls a function every second until it is ended: long passes say nothing by themselves."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(beat,), daemon=True)
        self._thread.start()

    def _run(self, beat: Callable[[], None]) -> None:
        while not self._ended.wait(1.0):
            beat()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def step_line(cell: str, step: int, steps: int, prefixes: Sequence[int]) -> str:
    """Return one line about strings that are optimised together; their tokens are not confirmed yet.

    n50 so far is their middle.
    """
    shown = " ".join(str(one) for one in prefixes[:_SHOWN]) + (" ..." if len(prefixes) > _SHOWN else "")
    middle = f", n50 so far about {statistics.median(prefixes):g}" if prefixes else ""
    noun = "string" if len(prefixes) == 1 else "strings"
    return f"{cell}: step {step} of {steps}, {len(prefixes)} {noun}, tokens so far {shown}{middle}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:d}:{int(seconds) % 60:02d}"


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
