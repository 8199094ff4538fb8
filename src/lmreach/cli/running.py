"""What the commands that make a run share: watching it, and saying at the end where it is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmreach.cli.progress import Interrupt
from lmreach.progress import Progress, Silent
from lmreach.progress.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from lmreach.engine.run import RunEnd
    from lmreach.results.run import RunResults

    Ended = RunEnd | RunResults
    from lmreach.results.shown import Shown


def open_page(page: "Path") -> None:
    """Open a page in the web browser; where there is none, say where the page is."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        print(f"lmreach: no web browser found; the page is {page}", file=sys.stderr)


@contextmanager
def telling(*, silent: bool) -> Iterator[Progress]:
    """Give what is told about progress: the terminal, or nobody."""
    terminal = None if silent else Terminal()
    try:
        yield terminal or Silent()
    finally:
        if terminal is not None:
            terminal.close()


@contextmanager
def watched(*, silent: bool) -> Iterator[tuple[Progress, Interrupt]]:
    """Give what is told about progress, and what Ctrl-C asks to stop."""
    with Interrupt() as interrupt, telling(silent=silent) as progress:
        yield progress, interrupt


def show(result: "Shown", *, json: bool) -> None:
    """Print a result in words, or as JSON."""
    print(result.to_json() if json else result, end="" if json else "\n")


def watch(
    run: "Callable[[Progress, Callable[[], bool]], Ended]",
    *,
    quiet: bool,
    no_progress: bool,
    json: bool,
    open: bool,
) -> int:
    """Run with progress and Ctrl-C in hand, then print what was found; returns the exit code."""
    from lmreach.engine.run import open_run

    with watched(silent=quiet or no_progress) as (progress, stop):
        folder = run(progress, stop).folder
    assert folder is not None, "a run has a folder"
    end = open_run(folder).end()
    assert end is not None, "it has ended"
    if json:
        print((end.folder / "results.json").read_text(encoding="utf-8"), end="")
    elif quiet:
        print(end.folder / "report.html")
    else:
        from lmreach.results import open_results

        print(open_results(end.folder))
    for failed in end.failed:
        print(f"lmreach: {failed}", file=sys.stderr)
    if open:
        open_page(end.folder / "report.html")
    if end.interrupted:
        why = "interrupted" if stop() else "the budget is spent"
        print(f"lmreach: {why}; go on with: lmreach resume {end.folder}", file=sys.stderr)
        if stop():
            return stop.code
    return 1 if end.failed else 0
