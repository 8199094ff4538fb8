"""Tables of what the vectors tell, how sharply reach falls, and which numbers are known well enough."""

from lmreach.report.kit.format import interval, number, percent
from lmreach.report.kit.table import Cell, Column, Row, Table
from lmreach.results.study import Known, StudyResults


def information(results: StudyResults) -> Table:
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
                Cell(entry.target),
                Cell(number(entry.m)),
                Cell(number(held.ce_without_bits)),
                Cell(number(held.ce_with_bits)),
                Cell(number(held.bits_per_vector)),
                Cell(number(held.bits_per_coordinate)),
                Cell(number(held.bits_per_stored_bit)),
                Cell(number(held.tokens_gained)),
            )
        )
        for entry in results.accessibility
        if (held := entry.information) is not None
    )
    source = (
        "Cross-entropy of the prefixes that came out, teacher-forced, given nothing (or the start token) and "
        "given the vectors (Kuratov et al. 2025); means over all strings, those of reach 0 gaining nothing. "
        "Token gain: tokens that are the most likely one with the vectors, minus without. Stored: the bits "
        "that vectors are stored in, 32 per coordinate where they were held to no format."
    )
    return Table("information", "What the vectors tell of the target", source, columns, rows)


def falls(results: StudyResults) -> Table:
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
                Cell(entry.target),
                Cell(number(entry.m)),
                Cell(number(fall.n90)),
                Cell(number(fall.n10)),
                Cell(
                    number(fall.width),
                    "" if fall.width is None else interval(fall.low, fall.high),
                ),
                Cell(number(fall.relative)),
                Cell(number(fall.predicted)),
                Cell(number(fall.factor_per_token)),
            )
        )
        for entry in results.accessibility
        if (fall := entry.cliff) is not None
    )
    source = (
        "n90 and n10: lengths that nine in ten and one in ten strings reach. Counting allows: ln 9 / ln V "
        "tokens, as a limit's share falls by a factor V per token. Share divided by: between n50 and n10."
    )
    return Table("falls", "How sharply reach falls", source, columns, rows)


def precision(results: StudyResults) -> Table:
    """Which of the asked numbers are known to the wanted relative width."""
    found = () if results.precision is None else results.precision.numbers
    columns = (
        Column("Number", numeric=False),
        Column("Interval over value", "%"),
        Column("Known well enough", numeric=False),
    )
    rows = tuple(Row((Cell(_name(one)), Cell(_width(one)), Cell(_known(one)))) for one in found)
    wanted = None if results.precision is None else results.precision.wanted
    source = (
        "No width was asked for; all strings were run."
        if wanted is None
        else f"Wanted: {percent(wanted)}. Measuring ends early where that is known, judged at fixed numbers "
        "of strings; what is short of it needs more strings, more time, or a longer limit."
    )
    return Table("precision", "How well n50 and slopes are known", source, columns, rows)


def unknown_words(results: StudyResults) -> str:
    """Say in one sentence which numbers are not known to the wanted width; empty if nothing was asked."""
    if results.precision is None or results.precision.wanted is None or not results.precision.numbers:
        return ""
    wanted, found = results.precision.wanted, results.precision.numbers
    open_ones = [one for one in found if not one.known]
    if not open_ones:
        return f"Every n50 and slope is known to {percent(wanted)} (interval over value)."
    widths = [one.relative_width for one in open_ones if one.relative_width is not None]
    no_end = len(open_ones) - len(widths)
    said = [f"the widest interval is {percent(round(max(widths), 2))} of its value"] if widths else []
    said += [f"{no_end} of the intervals {'has' if no_end == 1 else 'have'} an open end"] if no_end else []
    known = len(found) - len(open_ones)
    whole = f"{known or 'None'} of the {len(found)} numbers" if len(found) > 1 else "The number"
    verb = "are" if known > 1 else "is"
    sure = f"{whole} {verb}{'' if len(found) > 1 else ' not'} known as well as was asked"
    return f"{sure} (an interval of at most {percent(wanted)} of the value): {', and '.join(said)}."


def _name(one: Known) -> str:
    where = "" if one.m is None else f", m = {number(one.m)}"
    return f"{one.what}, {one.target}{where}"


def _width(one: Known) -> str:
    return "an end is open" if one.relative_width is None else number(100.0 * one.relative_width)


def _known(one: Known) -> str:
    return "not asked" if one.known is None else "yes" if one.known else "no"
