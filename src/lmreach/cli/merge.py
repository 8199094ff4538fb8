"""Parts of one plan, run apart, as one run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def merge(
    runs: Annotated[
        tuple[str, ...],
        Parameter(name="RUN", show_default=False, help="Folders of the parts: runs of one command."),
    ] = (),
    /,
    *,
    out: Annotated[
        str, Parameter(name=["--out", "-o"], help="Folder for the whole run: new or empty.")
    ] = "lmreach-merged",
) -> int:
    """Join runs that each did a part of one plan (--shard 1/8 and so on): every trial once, with its proof.

    The page and the results are written by 'lmreach resume', which also runs whatever no part has.
    """
    from lmreach.engine.merge import merge as join

    run = join(runs, Path(out))
    with run.ledger() as store:
        count = sum(store.counts().values())
    print(f"{count:,} trials of {len(runs)} runs in {run.folder}; go on with: lmreach resume {run.folder}")
    return 0
