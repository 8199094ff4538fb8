"""What a table of the page is made of: plain data, one row per record, each column with its unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmreach.report.kit.format import number

__all__ = ["Cell", "Column", "Row", "Table", "text_of"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column head and its unit; numeric columns are set flush right."""

    head: str
    unit: str = ""
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell shows: text, a smaller second line, a badge; ``exact`` text shows every character."""

    text: str
    small: str = ""
    badge: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One record; the first cell is its head."""

    cells: tuple[Cell, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption and a line that says where its numbers come from."""

    name: str
    caption: str
    source: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def text_of(value: Any) -> str:
    """Write any recorded value as text; lists and tables of names are joined."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text_of(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        shown = [text_of(item) for item in value[:24]]
        more = [f"and {len(value) - 24:,} more"] if len(value) > 24 else []
        return ", ".join(shown + more) or "none"
    return number(value)
