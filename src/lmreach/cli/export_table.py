"""The table of studies, for other software and for a paper."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lmreach.cli.compare import Published, Runs
from lmreach.files import write_whole


def export_table(
    runs: Runs = (),
    /,
    *,
    format: Annotated[
        Literal["csv", "markdown", "latex"],
        Parameter(help="csv: every number in full, a line per m; the others: rounded, with intervals."),
    ] = "markdown",
    lines: Annotated[
        Literal["m", "model"],
        Parameter(help="For markdown and latex: a line per number of vectors, or per model and target kind."),
    ] = "m",
    published: Published = (),
    out: Annotated[
        str | None, Parameter(name=["--out", "-o"], help="File; default: standard output.")
    ] = None,
) -> int:
    """Write the table of one or several studies as CSV, Markdown or LaTeX.

    Where several differ in what moves the numbers, notes say so: below the table, and on standard error.
    """
    from lmreach.report.compare.export import table_text
    from lmreach.report.compare.words import warning
    from lmreach.runs.compare.compare import compare

    compared = compare(*runs, published=published)
    text = table_text(compared, format, lines)
    if out is None:
        print(text, end="")
    else:
        write_whole(Path(out), text)
        print(out)
    for one in compared.warnings:
        print(f"lmreach: warning: {warning(one)}", file=sys.stderr)
    return 0
