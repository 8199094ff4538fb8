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
    from lmreach.engine.folder import existing, read_json
    from lmreach.report.figures import save_figures
    from lmreach.report.html import render

    folder = existing(Path(run))
    results = read_json(folder / "results.json")
    print(render(results, folder / "report.html"))
    if figures:
        for path in save_figures(results, folder / "figures"):
            print(path)
    return 0
