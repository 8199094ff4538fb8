"""Render a run again."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Open


def report(
    run: str,
    /,
    *,
    figures: Annotated[bool, Parameter(negative="", help="Also write every figure as SVG and PNG.")] = False,
    open: Open = False,
) -> int:
    """Render the report of a run again from its results.json; recomputes nothing.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.cli.running import open_page
    from lmreach.engine.run import open_run
    from lmreach.report.figures import save_figures
    from lmreach.report.html import render

    begun = open_run(Path(run))
    folder, results = begun.folder, begun.results()
    page = render(results, folder / "report.html")
    print(page)
    if figures:
        for path in save_figures(results, folder / "figures"):
            print(path)
    if open:
        open_page(page)
    return 0
