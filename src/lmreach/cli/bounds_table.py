"""The table that `lmreach bounds` prints."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmreach.maths.bounds import Limit, tightest

_PAGE = 79


@dataclass(frozen=True)
class Found:
    """Limits and what they are of.

    Attributes
    ----------
    subject
        The model and its sizes, in words.
    notes
        What a reader should know.
    limits
        In the order of the table.
    thresholds
        log10 of the threshold length for prompts of any length (tokens), by support; empty if not asked for.
    """

    subject: str
    notes: tuple[str, ...]
    limits: Sequence[Limit]
    thresholds: dict[str, float]


def as_json(found: Found, m: int, n: int | None) -> dict[str, Any]:
    """Return the limits at m vectors and n tokens as JSON-ready values."""
    entry = {
        "subject": found.subject,
        "m": m,
        "n": n,
        "limits": _rows(found.limits, m, n),
        "notes": found.notes,
    }
    return {**entry, "unbounded_log10_tokens": found.thresholds} if found.thresholds else entry


def print_table(found: Found, m: int, n: int | None) -> None:
    """Print the table, what each limit assumes, and the notes."""
    rows = _rows(found.limits, m, n)
    _table(found.subject, rows, m, n)
    if found.thresholds:
        print("prompts of any length (Corollary 4.10): threshold length in tokens")
        for name, log10 in found.thresholds.items():
            print(f"  {name}: 10^{log10:.1f}")
        print()
    for row in rows:
        _say(f"{row['name']}: {row['note']}; in the norm {row['norm']} [{row['source']}]")
    for note in found.notes:
        _say(f"note: {note}")


def _rows(found: Sequence[Limit], m: int, n: int | None) -> list[dict[str, Any]]:
    best = {limit.name for limit in tightest(found).values()}
    return [
        {
            **limit.as_dict(),
            "log_count_nats": limit.log_count(m),
            "longest_fully_possible": limit.longest_fully_possible(m),
            "log_share_nats": None if n is None else limit.log_share(n, m),
            "tightest": limit.name in best,
        }
        for limit in found
    ]


# Shorter words, so that the table fits into 80 columns.
_PACKING = {"proved": "proved", "exact count": "counted", "convention": "paper"}


def _table(subject: str, rows: list[dict[str, Any]], m: int, n: int | None) -> None:
    columns = [
        ["", "limit", *(("*" if row["tightest"] else " ") + row["name"] for row in rows)],
        ["", "premise", *(row["premise"] for row in rows)],
        ["", "packing", *(_PACKING[row["packing"]] for row in rows)],
        ["ln P", "nats", *(f"{row['log_packing_nats']:.1f}" for row in rows)],
        ["tokens/", "vector", *(f"{row['tokens_per_vector']:.2f}" for row in rows)],
        ["bits/", "coord", *(f"{row['bits_per_coordinate']:.2f}" for row in rows)],
        ["all up", f"to m={m}", *(str(row["longest_fully_possible"]) for row in rows)],
    ]
    if n is not None:
        columns.append(["share", f"n={n}", *(_share(row["log_share_nats"]) for row in rows)])
    widths = [max(map(len, column)) for column in columns]
    print(subject)
    for cells in zip(*columns, strict=True):
        words = (
            cell.ljust(width) if k < 3 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        print(" ".join(words).rstrip())
    print("* tightest proved limit under its premise; 'paper': a convention, no bound\n")


def _say(text: str) -> None:
    for line in textwrap.wrap(text, _PAGE, subsequent_indent="  "):
        print(line)


def _share(log_share: float) -> str:
    return "1" if log_share == 0 else f"10^{log_share / math.log(10):.0f}"
