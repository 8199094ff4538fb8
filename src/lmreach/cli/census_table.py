"""A census as lines of text, and missing sequences as a file."""

from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from lmreach.files import write_whole

if TYPE_CHECKING:
    from lmreach.results import AnyResults
    from lmreach.results.census import GridLength, TokenLength


def print_census(results: "AnyResults") -> None:
    """Print the sentences of a census and one table per grid or prompt length."""
    from lmreach.report.census.section import sentences

    if results.kind == "copy" or results.census is None:
        return
    for sentence in sentences(results.census):
        print(sentence)
    for grid in results.census.grids:
        print(f"\nm = {grid.m}, {grid.prompts:,} prompts, {grid.seconds:.1f} s")
        print(f"{'length':>8}{'distinct':>16}{'of at most':>16}{'ln share':>11}")
        for counted in grid.lengths:
            print(_length(counted))
    for entry in results.census.tokens:
        kind = "token" if entry.prompt_tokens == 1 else "tokens"
        tried = f"{entry.prompts:,} tried, {entry.seconds:.1f} s"
        print(f"\nprompts of {entry.prompt_tokens} {kind}, {tried}")
        print(f"{'length':>8}{'distinct':>16}{'of at most':>16}{'ln share':>11}{'bits':>9}{'Chao1':>14}")
        for one in entry.lengths:
            guess = "" if one.chao1 is None else f"{one.chao1.value:>14,.0f}"
            print(f"{_length(one)}{one.entropy_bits:>9.2f}{guess}")


def _length(one: "GridLength | TokenLength") -> str:
    most = f"{exp(one.log_bound_nats):,.0f}" if one.log_bound_nats < 30 else f"e^{one.log_bound_nats:.1f}"
    return f"{one.length:>8}{one.distinct:>16,.0f}{most:>16}{one.log_share_nats:>11.2f}"


def write_missing(results: "AnyResults", path: Path) -> None:
    """Write the missing sequences listed in a census, ids separated by spaces, one sequence per line.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    lines = []
    grids = () if results.kind == "copy" or results.census is None else results.census.grids
    for grid in grids:
        if grid.missing is None:
            continue
        what = f"{grid.missing.count} of {grid.missing.of} sequences of {grid.missing.length} tokens"
        lines.append(f"# m = {grid.m}: {what} missing, {grid.missing.listed} listed")
        lines += [" ".join(map(str, ids)) for ids in grid.missing.sequences]
    write_whole(path, "\n".join([*lines, ""]), remedy="choose another place for --missing")
