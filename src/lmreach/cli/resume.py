"""Go on with a run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json, NoProgress, Quiet, seconds


def resume(
    run: str,
    /,
    *,
    budget: Annotated[str, Parameter(help="Time for this continuation: 90s, 5m, 1h, or none.")] = "none",
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Go on with an interrupted or budget-limited run: finished strings are kept, missing ones are run.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.engine.folder import existing
    from lmreach.engine.store import Store

    with Store(existing(Path(run))) as store:
        counting = store.meta("census") is not None
        copying = store.meta("copy") is not None
    if counting:
        from lmreach.cli.census import go_on

        return go_on(Path(run), json=json, quiet=quiet, silent=quiet or no_progress)
    if copying:
        from lmreach.cli.copy import go_on as go_on_copying

        return go_on_copying(Path(run), json=json, quiet=quiet, silent=quiet or no_progress)
    from lmreach.cli.running import watch
    from lmreach.runs.study.run import resume_study

    return watch(
        lambda progress, stop: resume_study(
            Path(run), budget_s=seconds(budget), progress=progress, stop=stop
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
    )
