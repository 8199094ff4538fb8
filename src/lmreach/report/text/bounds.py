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
    yield found.subject
    for sentence in answers(found):
        yield from _folded(sentence)
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


def answers(found: BoundsResults) -> Iterator[str]:
    """Answer what was asked in words: is n possible from m, how many vectors, which width."""
    if found.n is not None:
        yield _possible(found, found.n)
    if found.need is not None:
        yield _needed(found, found.need)


def _possible(found: BoundsResults, n: int) -> str:
    """Say whether every sequence of n tokens may come from m vectors, premise by premise."""
    asked = f"Every sequence of {n:,} {_noun(n, 'token')} from {found.m:,} {_noun(found.m, 'vector')}"
    binding = sorted(
        (limit for limit in found.limits if limit.tightest_of_premise),
        key=lambda limit: limit.log_packing_nats,
    )
    out = [limit for limit in binding if limit.longest_fully_possible < n]
    allowing = [limit for limit in binding if limit not in out]
    if not out:
        tightest = binding[0]
        return (
            f"{asked}: not excluded: the tightest limit allows {tightest.longest_fully_possible:,} "
            f"({tightest.name}, premise {tightest.premise})."
        )
    said = "; by ".join(
        f"{limit.name} (premise {limit.premise}), which allows {limit.longest_fully_possible:,} and at most "
        f"a share {_share(limit)}"
        for limit in out
    )
    rest = ", ".join(f"{limit.premise} ({limit.longest_fully_possible:,})" for limit in allowing)
    return f"{asked}: excluded by {said}{f'; not excluded under {rest}' if rest else ''}."


def _needed(found: BoundsResults, need: int) -> str:
    """Say the vectors, or the width, below which a limit excludes some sequence."""
    tokens = f"Every sequence of {need:,} {_noun(need, 'token')}"
    if found.widths_needed:
        told = ", ".join(f"{width:,} by {name}" for name, width in found.widths_needed.items())
        most = max(found.widths_needed.values())
        vectors = f"{found.m:,} {_noun(found.m, 'vector')}"
        return f"{tokens} from {vectors} needs a width of at least {most:,} ({told})."
    binding = [limit for limit in found.limits if limit.tightest_of_premise]
    told = "; ".join(
        f"{limit.vectors_needed:,} under the premise {limit.premise} ({limit.name})"
        if limit.vectors_needed is not None
        else f"no number is enough under the premise {limit.premise} ({limit.name})"
        for limit in binding
    )
    return f"{tokens} needs at least this many vectors: {told}."


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


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
