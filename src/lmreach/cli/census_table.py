"""A census as lines of text, and missing sequences as a file."""

from pathlib import Path
from typing import Any

from lmreach.files import write_whole


def print_census(census: Any) -> None:
    """Print the sentences of a census and one table per grid or prompt length."""
    from lmreach.report.census.section import sentences

    for sentence in sentences(census):
        print(sentence)
    for grid in census["grids"]:
        print(f"\nm = {grid['m']}, {grid['prompts']:,} prompts, {grid['seconds']:.1f} s")
        print(f"{'length':>8}{'distinct':>16}{'of at most':>16}{'ln share':>11}")
        for one in grid["lengths"] or grid["estimates"]:
            _print_length(one)
    for entry in census["tokens"]:
        kind = "token" if entry["prompt_tokens"] == 1 else "tokens"
        tried = f"{entry['prompts']:,} tried, {entry['seconds']:.1f} s"
        print(f"\nprompts of {entry['prompt_tokens']} {kind}, {tried}")
        print(f"{'length':>8}{'distinct':>16}{'of at most':>16}{'ln share':>11}{'bits':>9}{'Chao1':>14}")
        for one in entry["lengths"]:
            _print_length(one)


def _print_length(one: Any) -> None:
    from math import exp

    most = (
        f"{exp(one['log_bound_nats']):,.0f}"
        if one["log_bound_nats"] < 30
        else f"e^{one['log_bound_nats']:.1f}"
    )
    more = f"{one['entropy_bits']:>9.2f}" if "chao1" in one else ""
    if one.get("chao1"):
        more += f"{one['chao1']['value']:>14,.0f}"
    print(f"{one['length']:>8}{one['distinct']:>16,.0f}{most:>16}{one['log_share_nats']:>11.2f}{more}")


def write_missing(census: Any, path: Path) -> None:
    """Write the missing sequences listed in a census, ids separated by spaces, one sequence per line.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    lines = []
    for grid in census["grids"]:
        found = grid["missing"]
        if found is None:
            continue
        what = f"{found['count']} of {found['of']} sequences of {found['length']} tokens"
        lines.append(f"# m = {grid['m']}: {what} missing, {found['listed']} listed")
        lines += [" ".join(map(str, ids)) for ids in found["sequences"]]
    write_whole(path, "\n".join([*lines, ""]), remedy="choose another place for --missing")
