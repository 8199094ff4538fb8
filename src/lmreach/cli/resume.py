"""Go on with a run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json, NoProgress, On, Open, Quiet, seconds
from lmreach.config import ExecutorConfig


def resume(
    run: str,
    /,
    *,
    budget: Annotated[
        str, Parameter(help="Time for this continuation: 90s, 5m, 1h, or none for no limit.")
    ] = "none",
    executor: On = ExecutorConfig(),
    json: Json = False,
    open: Open = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Go on with an interrupted or budget-limited run of any kind: what is finished is kept.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.engine.run import RunKind, open_run

    folder, limit = Path(run), seconds(budget)
    kind, silent = open_run(folder).kind, quiet or no_progress
    if kind is RunKind.CENSUS:
        from lmreach.cli.census import go_on

        return go_on(folder, limit, executor, json=json, quiet=quiet, silent=silent, open=open)
    if kind is RunKind.COPY:
        from lmreach.cli.copy import go_on as go_on_copying

        return go_on_copying(folder, limit, executor, json=json, quiet=quiet, silent=silent, open=open)
    if kind is RunKind.REACHABLE:
        from lmreach.cli.census import search_on

        return search_on(folder, limit, json=json, silent=silent)
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.runs.study.run import resume_study

    return watch(
        lambda progress, stop: resume_study(
            folder, budget_s=limit, progress=progress, stop=stop, begun=BEGUN, executor=executor
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
        open=open,
    )
