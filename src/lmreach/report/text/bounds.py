"""Limits as a table that fits 80 columns, what each assumes, and notes."""

import math
import textwrap
from collections.abc import Iterator

from lmreach.results.bounds import BoundsResults, LimitAt

__all__ = ["bounds_lines"]

_PAGE = 79
# Shorter words, so that the table fits into 80 columns.
_PACKING = {"proved": "proved", "exact count": "counted", "convention": "paper"}


def bounds_lines(found: BoundsResults) -> Iterator[str]:
    """Give the table, what each limit assumes, and the notes."""
    yield from _table(found)
    if found.unbounded_log10_tokens:
        yield "prompts of any length (Corollary 4.10): threshold length in tokens"
        for name, log10 in found.unbounded_log10_tokens.items():
            yield f"  {name}: 10^{log10:.1f}"
        yield ""
    for limit in found.limits:
        yield from _folded(f"{limit.name}: {limit.note}; in the norm {limit.norm} [{limit.source}]")
    for note in found.notes:
        yield from _folded(f"note: {note}")


def _table(found: BoundsResults) -> Iterator[str]:
    limits, m, n = found.limits, found.m, found.n
    columns = [
        ["", "limit", *(("*" if limit.tightest_of_premise else " ") + limit.name for limit in limits)],
        ["", "premise", *(limit.premise for limit in limits)],
        ["", "packing", *(_PACKING[limit.packing] for limit in limits)],
        ["ln P", "nats", *(f"{limit.log_packing_nats:.1f}" for limit in limits)],
        ["tokens/", "vector", *(f"{limit.tokens_per_vector:.2f}" for limit in limits)],
        ["bits/", "coord", *(f"{limit.bits_per_coordinate:.2f}" for limit in limits)],
        ["all up", f"to m={m}", *(str(limit.longest_fully_possible) for limit in limits)],
    ]
    if n is not None:
        columns.append(["share", f"n={n}", *(map(_share, limits))])
    widths = [max(map(len, column)) for column in columns]
    yield found.subject
    for cells in zip(*columns, strict=True):
        words = (
            cell.ljust(width) if k < 3 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        yield " ".join(words).rstrip()
    yield "* tightest proved limit under its premise; 'paper': a convention, no bound"
    yield ""


def _folded(text: str) -> list[str]:
    return textwrap.wrap(text, _PAGE, subsequent_indent="  ")


def _share(limit: LimitAt) -> str:
    share = limit.log_share_nats
    assert share is not None, "a length was asked about"
    return "1" if share == 0 else f"10^{share / math.log(10):.0f}"
