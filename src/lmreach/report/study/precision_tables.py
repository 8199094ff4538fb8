"""Tables of what the vectors tell, how sharply reach falls, and which numbers are known well enough."""

from collections.abc import Sequence
from typing import Any

from lmreach.report.kit import reading
from lmreach.report.kit.format import interval, is_number, number, percent
from lmreach.report.kit.reading import Record
from lmreach.report.kit.table import Cell, Column, Row, Table


def information(results: Record) -> Table:
    """Bits of the target that the vectors hold: cross-entropy without them minus with them."""
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("Without vectors", "bits per string"),
        Column("With vectors", "bits per string"),
        Column("Gained", "bits per vector"),
        Column("Gained", "bits per coordinate"),
        Column("Gained / stored", "bits per bit"),
        Column("Token gain", "tokens per string"),
    )
    rows = tuple(
        Row(
            (
                Cell(str(record.get("target"))),
                Cell(number(record.get("m"))),
                *(Cell(number(told.get(name))) for name in _INFORMATION),
            )
        )
        for record, told in _with(results, "information")
    )
    source = (
        "Cross-entropy of the prefixes that came out, teacher-forced, given nothing (or the start token) and "
        "given the vectors (Kuratov et al. 2025); means over all strings, those of reach 0 gaining nothing. "
        "Token gain: tokens that are the most likely one with the vectors, minus without. Stored: 32 bits "
        "per coordinate, as optimised."
    )
    return Table("information", "What the vectors tell of the target", source, columns, rows)


_INFORMATION = (
    "ce_without_bits",
    "ce_with_bits",
    "bits_per_vector",
    "bits_per_coordinate",
    "bits_per_stored_bit",
    "tokens_gained",
)


def falls(results: Record) -> Table:
    """How sharply the share of strings falls with length, beside what counting alone allows."""
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("n90", "tokens"),
        Column("n10", "tokens"),
        Column("n10 - n90", "tokens"),
        Column("Over n50", "ratio"),
        Column("Counting allows", "tokens"),
        Column("Share divided by", "per token"),
    )
    rows = tuple(
        Row(
            (
                Cell(str(record.get("target"))),
                Cell(number(record.get("m"))),
                Cell(number(fall.get("n90"))),
                Cell(number(fall.get("n10"))),
                Cell(
                    number(fall.get("width")),
                    interval(fall.get("low"), fall.get("high")) if is_number(fall.get("width")) else "",
                ),
                Cell(number(fall.get("relative"))),
                Cell(number(fall.get("predicted"))),
                Cell(number(fall.get("factor_per_token"))),
            )
        )
        for record, fall in _with(results, "cliff")
    )
    source = (
        "n90 and n10: lengths that nine in ten and one in ten strings reach. Counting allows: ln 9 / ln V "
        "tokens, as a limit's share falls by a factor V per token. Share divided by: between n50 and n10."
    )
    return Table("falls", "How sharply reach falls", source, columns, rows)


def precision(results: Record) -> Table:
    """Which of the asked numbers are known to the wanted relative width."""
    found = reading.precision(results)
    columns = (
        Column("Number", numeric=False),
        Column("Interval over value", "%"),
        Column("Known well enough", numeric=False),
    )
    rows = tuple(Row((Cell(_name(one)), Cell(_width(one)), Cell(_known(one)))) for one in found)
    wanted = reading.wanted_width(results)
    source = (
        "No width was asked for; all strings were run."
        if wanted is None
        else f"Wanted: {percent(wanted)}. Measuring ends early where that is known, judged at fixed numbers "
        "of strings; what is short of it needs more strings, more time, or a longer limit."
    )
    return Table("precision", "How well n50 and slopes are known", source, columns, rows)


def unknown_words(results: Record) -> str:
    """Say in one sentence which numbers are not known to the wanted width; empty if nothing was asked."""
    wanted, found = reading.wanted_width(results), reading.precision(results)
    if wanted is None or not found:
        return ""
    open_ones = [one for one in found if not one.get("known")]
    if not open_ones:
        return f"Every n50 and slope is known to {percent(wanted)} (interval over value)."
    widths = [one["relative_width"] for one in open_ones if is_number(one.get("relative_width"))]
    no_end = len(open_ones) - len(widths)
    said = [f"widest {percent(round(max(widths), 2))}"] if widths else []
    said += [f"{no_end} with an open end"] if no_end else []
    return (
        f"Not known to the wanted {percent(wanted)} (interval over value): {len(open_ones)} of {len(found)} "
        f"numbers, {', '.join(said)}."
    )


def _with(results: Record, part: str) -> Sequence[tuple[Record, Record]]:
    records = reading.records(results, "accessibility")
    return [(record, record[part]) for record in records if isinstance(record.get(part), dict)]


def _name(one: Record) -> str:
    where = "" if one.get("m") is None else f", m = {number(one['m'])}"
    return f"{one.get('what')}, {one.get('target')}{where}"


def _width(one: Record) -> str:
    width: Any = one.get("relative_width")
    return number(100.0 * width) if is_number(width) else "an end is open"


def _known(one: Record) -> str:
    return {True: "yes", False: "no"}.get(one.get("known"), "not asked")  # type: ignore[arg-type]
