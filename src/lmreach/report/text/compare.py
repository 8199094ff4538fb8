"""A comparison as lines: a table, one entry in two lines, then what differs."""

import textwrap
from collections.abc import Iterator, Sequence

from lmreach.report.kit.table import Cell, Table
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
_BELOW = {"Bits": "Steps"}
"""Columns whose cells stand in the second line of another's: the page has a column for them."""
_LEGEND = (
    "n50 in tokens, at the fewest vectors; slope and limit (the tightest under the premise hidden) in tokens "
    "per vector; bits of the slope per coordinate. Second lines: 95 % intervals, optimiser steps per string, "
    "and how many times the slope a limit is. The page and the files have more columns."
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
    heads = [column.head for column in table.columns if column.head in _SHOWN]
    lines = [[_SHOWN[head] for head in heads], [_BELOW.get(head, "").lower() for head in heads]]
    every = [column.head for column in table.columns]
    for row in table.rows:
        cells = dict(zip(every, row.cells, strict=True))
        lines.append([cells[head].text for head in heads])
        lines.append([_second(cells[head], cells.get(_BELOW.get(head, ""))) for head in heads])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield _line(line, widths)
    yield ""
    yield from textwrap.wrap(_LEGEND, _PAGE)
    yield ""


def _second(cell: Cell, below: Cell | None) -> str:
    return ", ".join(filter(None, (cell.small, cell.badge))) if below is None else below.text


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
