"""One text, and whether the model can be made to say it at all."""

import sys
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from lmreach.config.census import ReachableConfig

if TYPE_CHECKING:
    from lmreach.progress import Progress
    from lmreach.runs.census.answer import Asked


def ask(config: ReachableConfig, out: Path | None, *, fresh: bool, json: bool, silent: bool) -> int:
    """Answer ``census --is-reachable``; a search that succeeds leaves a certificate."""
    from lmreach.engine.provenance import command_line
    from lmreach.runs.census.answer import run_reachable

    return _watch(
        lambda progress, stop: run_reachable(
            config, out, command=command_line(), progress=progress, stop=stop, fresh=fresh
        ),
        json=json,
        silent=silent,
    )


def go_on(folder: Path, budget_s: float | None, *, json: bool, silent: bool) -> int:
    """Go on with the search from its folder alone; returns the exit code."""
    from lmreach.runs.census.answer import resume_reachable

    return _watch(
        lambda progress, stop: resume_reachable(folder, budget_s=budget_s, progress=progress, stop=stop),
        json=json,
        silent=silent,
    )


def _watch(run: "Callable[[Progress, Callable[[], bool]], Asked]", *, json: bool, silent: bool) -> int:
    from lmreach.cli.progress import Interrupt, Terminal
    from lmreach.progress import Silent

    terminal = None if silent else Terminal()
    with Interrupt() as interrupt:
        try:
            asked = run(terminal or Silent(), interrupt)
        finally:
            if terminal is not None:
                terminal.close()
    _print(asked, json=json)
    if asked.end is not None and asked.end.interrupted:
        print(f"lmreach: interrupted; go on with: lmreach resume {asked.end.folder}", file=sys.stderr)
        return 130
    return 0


def _print(asked: "Asked", *, json: bool) -> None:
    answer, certificate = asked.answer, asked.certificate
    if json:
        place = None if certificate is None else str(certificate)
        entry = {"model": asked.model, **answer.as_dict(), "certificate": place}
        print(dumps(entry, indent=1, allow_nan=False))
        return
    print(f"{answer.verdict}: {answer.reason}")
    for m, reach in answer.tried:
        print(f"  m = {m}: longest start {reach} of {len(answer.ids)} tokens")
    if certificate is not None:
        print(f"certificate: {certificate}")
