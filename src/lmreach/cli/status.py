"""Where a run is."""

from lmreach.cli.options import Json


def status(run: str, /, *, json: Json = False) -> int:
    """Say how far a run of any kind is, what is left and why, and how to go on.

    Parameters
    ----------
    run
        Folder of the run; another process may be writing to it.
    """
    from lmreach.cli.running import show
    from lmreach.runs.status import status as run_status

    show(run_status(run), json=json)
    return 0
