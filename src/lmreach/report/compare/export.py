"""A comparison as a table for other software and for a paper: CSV, Markdown, LaTeX."""

import csv
import io
from collections.abc import Iterable
from typing import Literal

from lmreach.report.compare.tables import by_condition, by_entry
from lmreach.report.compare.words import warning
from lmreach.report.kit.table import Cell, Table
from lmreach.results.compare import Comparison
from lmreach.results.shown import flat

__all__ = ["FORMS", "Form", "Lines", "table_text"]

Form = Literal["csv", "markdown", "latex"]
Lines = Literal["model", "m"]
FORMS: dict[Form, str] = {"csv": "csv", "markdown": "md", "latex": "tex"}
"""Each form and the ending of its file."""


def table_text(compared: Comparison, form: Form, lines: Lines = "model") -> str:
    """Return the table of a comparison as text.

    Parameters
    ----------
    form
        ``csv``: every number in full, an estimate in four columns, always one line per number of vectors.
        ``markdown``, ``latex``: numbers rounded and with their intervals; differences that move the numbers
        go with the table as notes.
    lines
        ``model``: one line per study and target kind; ``m``: one per number of vectors.
    """
    if form == "csv":
        return _csv(compared)
    table = by_entry(compared) if lines == "model" else by_condition(compared)
    notes = [" ".join(warning(one).split()) for one in compared.warnings]
    return (_markdown if form == "markdown" else _latex)(table, notes)


def _csv(compared: Comparison) -> str:
    rows = [flat(row) for row in compared.rows()]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _markdown(table: Table, notes: Iterable[str]) -> str:
    heads = [
        _pipe(f"{column.head} ({column.unit})" if column.unit else column.head) for column in table.columns
    ]
    rules = ["---:" if column.numeric else ":---" for column in table.columns]
    lines = [_bar(heads), _bar(rules)]
    lines += [_bar(_pipe(_said(cell)) for cell in row.cells) for row in table.rows]
    return "\n".join([*lines, "", *(f"> {note}\n" for note in [table.source, *notes])])


def _bar(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _pipe(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _said(cell: Cell) -> str:
    beside = ", ".join(filter(None, (cell.small, cell.badge)))
    return f"{cell.text} ({beside})" if beside else cell.text


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "’": "'",
    "“": "``",
    "”": "''",
    "\n": " ",
}


def _tex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)


def _latex(table: Table, notes: Iterable[str]) -> str:
    """Write a tabular with rules of booktabs; second lines of a cell stand in a row of their own below."""
    kinds = "".join("r" if column.numeric else "l" for column in table.columns)
    heads = [_tex(column.head) for column in table.columns]
    units = [_tex(column.unit) for column in table.columns]
    lines = ["% needs \\usepackage{booktabs}; wide: put it into table* or \\resizebox"]
    lines += [f"% {note}" for note in [table.source, *notes]]
    lines += [f"\\begin{{tabular}}{{{kinds}}}", "\\toprule", _row(heads), _row(_small(units)), "\\midrule"]
    for row in table.rows:
        lines.append(_row(_tex(cell.text) for cell in row.cells))
        below = [", ".join(filter(None, (cell.small, cell.badge))) for cell in row.cells]
        lines.append(_row(_small(map(_tex, below))))
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _small(cells: Iterable[str]) -> list[str]:
    return [f"{{\\footnotesize {cell}}}" if cell else "" for cell in cells]
