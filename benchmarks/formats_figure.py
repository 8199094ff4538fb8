"""The figure and the tables of docs/formats.md, from recorded measurements; no number there is typed by hand.

    python -m benchmarks.formats_figure docs/results/formats/*.jsonl
    python -m benchmarks.formats_figure docs/results/formats/*.jsonl --check

Reads what `benchmarks.cram_formats` and `benchmarks.cram_truth` appended, writes between the page's marks
and draws docs/pictures/formats.svg and .png. With ``--check`` nothing is written, and a page that is not
what the records say is an error.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import altair as alt
import numpy as np

from benchmarks.cram_formats import USUAL
from benchmarks.formats_record import Record, read_all
from benchmarks.truth_record import Truth, read_truth
from lmreach.config.within import Within, parse_within
from lmreach.errors import LmreachError, OutputError, problem
from lmreach.files import write_whole
from lmreach.report.compare.axes import AXES, axis_figure, strands
from lmreach.report.compare.stored import Stored
from lmreach.report.kit.drawing import png, svg
from lmreach.report.kit.format import hundredths, interval, number
from lmreach.results.base import Interval

PAGE, PICTURES = Path("docs/formats.md"), Path("docs/pictures")
SHOWN = (USUAL, "straight-through")
"""Searches whose n50 enter tables and figure; others are there to be compared on the same strings."""
TRUTH = Path("docs/results/truth/signs.jsonl")


def stored(records: Iterable[Record]) -> list[Stored]:
    """Return the records of the usual search that are points of the three axes, not those of regions."""
    return [
        Stored(
            group=f"{one.asked.model}, {one.asked.targets}",
            within=_within(one),
            m=one.asked.m,
            width=one.width,
            vocab=one.vocab,
            bits=one.bits_per_coordinate,
            n50=one.n50,
            strings=one.asked.strings,
            limit=one.asked.length,
            steps=one.asked.optimiser.max_steps,
        )
        for one in records
        if one.asked.method in SHOWN and _within(one).region is None
    ]


def _within(one: Record) -> Within:
    return parse_within(one.asked.optimiser.within) if one.asked.optimiser.within else Within()


def bar(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, or a sentence where it would be empty."""
    if not rows:
        return "Nothing is recorded yet."
    return "\n".join([bar(heads), bar(["---"] * len(heads)), *map(bar, rows)])


def known(one: Interval) -> str:
    """Write an n50 with its interval."""
    value = one.verdict.replace("_", " ") if one.value is None else f"{one.value:.1f}"
    if one.low is None or one.high is None:
        return f"{value} ({interval(one.low, one.high, 2)})"
    return f"{value} ({one.low:.1f} to {one.high:.1f})"


def share(one: Interval) -> str:
    """Write a utilisation with its interval."""
    if one.value is None:
        return "n/a"
    low, high = ("open" if end is None else hundredths(end) for end in (one.low, one.high))
    return f"{hundredths(one.value)} ({low} to {high})"


def measured(records: Sequence[Record]) -> str:
    """Return one table a model and kind of target, all sets and m in it."""
    usual = sorted((one for one in records if one.asked.method in SHOWN), key=_place)
    parts = []
    for (model, targets), own in groupby(usual, key=lambda one: (one.asked.model, one.asked.targets)):
        held = list(own)
        first = held[0]
        parts.append(
            f"### {model}, {targets} targets\n\nd = {first.width}, V = {number(first.vocab)}, starts x "
            f"{first.asked.optimiser.start_scale:g}.\n"
        )
        heads = (
            "m",
            "within",
            "bits a vector",
            "steps",
            "rounds of flips",
            "strings",
            "n50",
            "limit",
            "limit / n50",
            "utilisation",
        )
        rows = [
            (
                f"{one.asked.m}",
                one.within,
                number(round(one.bits)),
                f"{one.asked.optimiser.max_steps}",
                f"{one.asked.optimiser.flips}",
                f"{one.asked.strings}",
                known(one.n50),
                f"{one.limit:.1f}",
                "n/a" if one.ratio is None else f"{one.ratio:.1f}",
                share(one.utilisation),
            )
            for one in held
        ]
        parts.append(table(heads, rows) + "\n")
    return "\n".join(parts).rstrip() or "Nothing is recorded yet."


def _place(one: Record) -> tuple[str, str, int, float, str, int]:
    asked = one.asked
    return asked.model, asked.targets, asked.m, one.bits, one.within, asked.optimiser.max_steps


def searches(records: Sequence[Record]) -> str:
    """Return the table of searches compared on the same strings, where several were."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for one in records:
        asked = one.asked
        groups.setdefault((asked.model, asked.targets, asked.m, one.within, asked.strings), []).append(one)
    rows = []
    for (model, targets, m, within, _), own in groups.items():
        if len({one.asked.method for one in own}) < 2:
            continue
        for one in own:
            reach = np.array(one.reaches, dtype=float)
            error = reach.std(ddof=1) / len(reach) ** 0.5
            where = f"{model}, {targets}, m = {m}, {within}"
            cost = number(round(one.positions_per_string))
            mean = f"{reach.mean():.1f} ± {error:.1f}"
            rows.append((where, one.asked.method, known(one.n50), mean, cost))
    return table(("where", "search", "n50", "mean reach", "positions a string"), rows)


def exponents(found: Sequence[Stored]) -> str:
    """Return how n50 grows along each axis: exponents of power laws, 1 for proportional."""
    rows = [
        (
            axis.heading,
            strand.label(group=True, steps=True),
            f"{law.points}",
            f"{law.exponent:.2f} ({law.low:.2f} to {law.high:.2f})",
        )
        for axis in AXES
        for strand in strands(axis, found)
        if (law := strand.growth) is not None
    ]
    return table(("along", "where", "points", "exponent of n50"), rows)


def found_of(one: Truth) -> str:
    """Write how many of the reachable sequences that were asked for were found; empty where none was."""
    held = one.found
    if held is None:
        return ""
    return f"{held.count} of {held.of}: {held.share:.2f} ({held.low:.2f} to {held.high:.2f})"


def truth(found: Sequence[Truth]) -> str:
    """Return the true share of reachable sequences by length, what foresees it, and what was found of it."""
    rows = [
        (
            one.model.removeprefix("tiny:"),
            f"{one.m}",
            f"{one.n}",
            f"{number(one.reachable)} of {number(one.sequences)}",
            hundredths(one.share),
            hundredths(one.counted),
            hundredths(one.by_states),
            hundredths(one.by_first_tokens),
            number(one.median_prompts),
            found_of(one),
        )
        for one in found
    ]
    heads = ("model", "m", "n", "reachable", "share", "counting", "cells of states", "cells of first tokens")
    return table((*heads, "prompts for each (median)", "found of asked"), rows)


def lengths(found: Sequence[Truth]) -> str:
    """Return the length at which half of all sequences are reachable, true and foreseen, beside the limit."""
    rows = []
    for (model, m), own in groupby(found, key=lambda one: (one.model, one.m)):
        held = list(own)
        columns = [
            [one.share for one in held],
            [one.by_states for one in held],
            [one.by_first_tokens for one in held],
            [one.share * (one.found.share if one.found else float("nan")) for one in held],
        ]
        half = [crossing(column) for column in columns]
        rows.append((model.removeprefix("tiny:"), f"{m}", f"{held[0].limit:.2f}", *half))
    heads = (
        "model",
        "m",
        "limit",
        "true n50",
        "by cells of states",
        "by cells of first tokens",
        "reachable and found",
    )
    return table(heads, rows)


def crossing(shares: Sequence[float]) -> str:
    """Write where shares at n = 1, 2, ... fall below one half, from 1 at n = 0, joined by straight lines."""
    before = 1.0
    for place, each in enumerate(shares):
        if np.isnan(each):
            return "n/a"
        if each < 0.5:
            return f"{place + (before - 0.5) / (before - each):.2f}"
        before = each
    return f"above {len(shares)}"


def picture(found: Sequence[Stored]) -> alt.VConcatChart | None:
    """Return the three axes side by side, one row a model and kind of target."""
    rows = []
    for group in dict.fromkeys(one.group for one in found):
        own = [one for one in found if one.group == group]
        drawn = [
            figure.wide.properties(title=f"{group}: {figure.title}")
            for axis in AXES
            if (figure := axis_figure(axis, own))
        ]
        if drawn:
            rows.append(alt.hconcat(*drawn, spacing=50))
    return alt.vconcat(*rows, spacing=40) if rows else None


def filled(text: str, parts: dict[str, str]) -> str:
    """Return a page with what stands between its marks put in anew.

    Raises
    ------
    OutputError
        A mark is missing.
    """
    for name, body in parts.items():
        first, last = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        if first not in text or last not in text:
            raise OutputError(problem(f"{first} and {last}", "a page without", f"add them to {PAGE}"))
        before, rest = text.split(first, 1)
        text = f"{before}{first}\n{body}\n{last}{rest.split(last, 1)[1]}"
    return text


def parts_of(records: Sequence[Record], truths: Sequence[Truth]) -> dict[str, str]:
    """Return every generated part of the page by its name."""
    found = stored(records)
    return {
        "measured": measured(records),
        "exponents": exponents(found),
        "searches": searches(records),
        "truth": truth(truths),
        "lengths": lengths(truths),
    }


def run(words: argparse.Namespace) -> None:
    """Write the page and the pictures, or check the page."""
    records = read_all(words.records)
    text = PAGE.read_text(encoding="utf-8")
    made = filled(text, parts_of(records, read_truth(words.truth) if words.truth.exists() else []))
    if words.check:
        if made != text:
            remedy = "run the command without --check"
            raise OutputError(problem(f"{PAGE} as the records say", "another page", remedy))
        return
    write_whole(PAGE, made)
    drawn = picture(stored(records))
    if drawn is not None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        write_whole(PICTURES / "formats.svg", svg(drawn))
        write_whole(PICTURES / "formats.png", png(drawn))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path, nargs="*", help="files of benchmarks.cram_formats")
    parser.add_argument("--truth", type=Path, default=TRUTH, help="file of benchmarks.cram_truth")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page differs")
    try:
        run(parser.parse_args())
    except LmreachError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
