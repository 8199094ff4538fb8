"""What the commands that make a run share: watching it, and saying at the end where it is."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from lmreach.cli.progress import Interrupt, Terminal
from lmreach.progress import Progress, Silent

if TYPE_CHECKING:
    from lmreach.study.run import StudyEnd


def watch(
    run: "Callable[[Progress, Callable[[], bool]], StudyEnd]", *, quiet: bool, no_progress: bool, json: bool
) -> int:
    """Run with progress and Ctrl-C in hand, then print where the report is; returns the exit code."""
    terminal = None if quiet or no_progress else Terminal()
    with Interrupt() as interrupt:
        try:
            end = run(terminal or Silent(), interrupt)
        finally:
            if terminal is not None:
                terminal.close()
    results = (end.folder / "results.json").read_text(encoding="utf-8")
    if json:
        print(results, end="")
    elif quiet:
        print(end.folder / "report.html")
    else:
        _summary(end, results)
    if end.interrupted:
        print(f"lmreach: interrupted; go on with: lmreach resume {end.folder}", file=sys.stderr)
        return 130
    return 0


def _summary(end: "StudyEnd", results: str) -> None:
    from json import loads

    from lmreach.report.words import headline

    for sentence in headline(loads(results)):
        print(sentence)
    print()
    print(f"report: {end.folder / 'report.html'}")
    print(f"check:  lmreach verify {end.folder}")
