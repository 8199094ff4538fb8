"""Several studies beside one another."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json, Open
from lmreach.files import check_place

Runs = Annotated[
    tuple[str, ...],
    Parameter(
        name="RUN", show_default=False, help="Folders of studies, or results.json files of any version."
    ),
]
Published = Annotated[
    tuple[str, ...],
    Parameter(
        consume_multiple=(1, None),
        negative_iterable=(),
        show_default=False,
        help="A published model whose slopes stand beside, marked as published; 'all' for each of them.",
    ),
]


def compare(
    runs: Runs = (),
    /,
    *,
    published: Published = (),
    out: Annotated[
        str, Parameter(name=["--out", "-o"], help="Folder for the page and its tables; they are replaced.")
    ] = "lmreach-compare",
    open: Open = False,
    json: Json = False,
) -> int:
    """Put studies beside one another: one table, one page, and where they differ in more than their models.

    Writes compare.html, table.csv, table.md, table.tex and comparison.json. Recomputes nothing.
    """
    from lmreach.cli.running import open_page, show
    from lmreach.report.compare.page import write_comparison
    from lmreach.runs.compare.compare import compare as run_compare

    compared = run_compare(*runs, published=published)
    folder = Path(out)
    check_place(folder)
    page, *_ = write_comparison(compared, folder)
    show(compared, json=json)
    if not json:
        print(f"\npage: {page}\ntables: {folder / 'table.csv'}, table.md, table.tex")
    if open:
        open_page(page)
    return 0
