"""A comparison as lines: a table, one entry in two lines, then what differs."""

import textwrap
from collections.abc import Iterator, Sequence

from lmreach.report.kit.table import Table
from lmreach.results.compare import Comparison

__all__ = ["comparison_lines"]

_PAGE = 99
_SHOWN = {
    "Model": "model",
    "n50, fewest vectors": "n50",
    "Slope": "slope",
    "Bits": "bits",
    "Limit, hidden": "limit",
}
_LEGEND = (
    "n50 in tokens, at the fewest vectors; slope and limit (the tightest under the premise hidden) in tokens "
    "per vector; bits of the slope per coordinate. Second lines: 95 % intervals, and how many times the "
    "slope a limit is. The page and the files have more columns."
)


def comparison_lines(compared: Comparison) -> Iterator[str]:
    """Give the table and the differences; those that move the numbers are warnings."""
    from lmreach.report.compare.tables import by_entry  # brings altair
    from lmreach.report.compare.words import warning

    yield from _table(by_entry(compared))
    for one in compared.differences:
        lead = "warning" if one.serious else "note"
        yield from textwrap.wrap(f"{lead}: {warning(one)}", _PAGE, subsequent_indent="  ")


def _table(table: Table) -> Iterator[str]:
    """Give the columns that fit; the page and the files hold all of them."""
    chosen = [index for index, column in enumerate(table.columns) if column.head in _SHOWN]
    lines = [[_SHOWN[table.columns[index].head] for index in chosen]]
    for row in table.rows:
        cells = [row.cells[index] for index in chosen]
        lines.append([cell.text for cell in cells])
        lines.append([", ".join(filter(None, (cell.small, cell.badge))) for cell in cells])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield _line(line, widths)
    yield ""
    yield from textwrap.wrap(_LEGEND, _PAGE)
    yield ""


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
