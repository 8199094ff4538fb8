"""Render a run again."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def report(
    run: str,
    /,
    *,
    figures: Annotated[bool, Parameter(negative="", help="Also write every figure as SVG and PNG.")] = False,
) -> int:
    """Render the report of a run again from its results.json; recomputes nothing.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.engine.run import RunKind, open_run
    from lmreach.report.figures import save_figures
    from lmreach.report.html import render
    from lmreach.results import open_results

    begun = open_run(Path(run))
    begun.require(RunKind.STUDY, RunKind.CENSUS, RunKind.COPY, what="draw a page of")
    folder, results = begun.folder, open_results(begun.folder)
    print(render(results, folder / "report.html"))
    if figures:
        for path in save_figures(results, folder / "figures"):
            print(path)
    return 0
