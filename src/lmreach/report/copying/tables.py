"""The tables of copying: lengths, layouts, mistakes, cramming beside it."""

from lmreach.report.kit.format import NOT_KNOWN, interval, number
from lmreach.report.kit.table import Cell, Column, Row, Table
from lmreach.results import Interval
from lmreach.results.base import Share
from lmreach.results.copying import Copying

__all__ = ["tables"]


def tables(copying: Copying) -> list[Table]:
    """Return the tables that have rows."""
    found = [_lengths(copying), _layouts(copying), _orders(copying), _cramming(copying)]
    return [table for table in found if table.rows]


def _percent(value: float) -> str:
    return f"{100 * value:.3g}"


def _share(one: Share) -> Cell:
    ends = f"{_percent(one.low)} to {_percent(one.high)}"
    return Cell(_percent(one.share), small=f"{ends}; {one.count} of {one.of}")


def _lengths(copying: Copying) -> Table:
    columns = (
        Column("Length", "characters"),
        Column("Prompt", "positions"),
        Column("Exact match", "% of strings, with end mark"),
        Column("All characters right", "% of strings"),
        Column("Per-character accuracy", "% of characters"),
        Column("First wrong after", "characters, median"),
    )
    to = copying.trained_to
    rows = tuple(
        Row(
            (
                Cell(str(one.length), badge="in training" if to and one.length <= to else ""),
                Cell(number(int(one.prompt))),
                _share(one.exact),
                _share(one.complete),
                _share(one.characters),
                _middle(one.first_wrong_quartiles),
            )
        )
        for one in copying.lengths
    )
    how = (
        "Teacher-forced: the true answer so far was read at every step."
        if copying.decoding == "teacher_forced"
        else "Free-running greedy decoding: each step read what the model itself had emitted."
    )
    source = (
        f"{how} Intervals: 95 %, Clopper and Pearson; those of characters count characters of one string as "
        "dependent."
    )
    return Table("copy-lengths", "Copying by length of the string", source, columns, rows)


def _middle(quartiles: tuple[float, float, float] | None) -> Cell:
    if quartiles is None:
        return Cell("none wrong")
    low, middle, high = (number(q) for q in quartiles)
    return Cell(middle, small=f"{low} to {high}")


def _layouts(copying: Copying) -> Table:
    columns = (
        Column("Layout", numeric=False),
        Column("Lengths", "characters", numeric=False),
        Column("Prompts", "positions", numeric=False),
        Column("Right", "strings at each length", numeric=False),
        Column("n50", "characters"),
        Column("Right here alone", "strings"),
        Column("Right in the usual one alone", "strings"),
        Column("McNemar's test", "p"),
    )
    rows = []
    for index, one in enumerate(copying.layouts):
        rows.append(
            Row(
                (
                    Cell(one.layout, badge="usual" if not index else ""),
                    Cell(", ".join(map(str, one.lengths))),
                    Cell(", ".join(map(str, one.prompts))),
                    Cell(
                        ", ".join(str(r.count) for r in one.right),
                        small=f"of {one.right[0].of} each",
                    ),
                    _n50(one.n50),
                    Cell(str(one.only_here) if index else ""),
                    Cell(str(one.only_usual) if index else ""),
                    Cell(number(one.p_value) if index else ""),
                )
            )
        )
    source = (
        "The same strings in every layout; n50 here from these lengths alone. McNemar's exact test on the "
        "strings that come out in one of the two layouts only."
    )
    return Table(
        "copy-layouts", "Does it depend on what stands around the string?", source, columns, tuple(rows)
    )


def _n50(n50: Interval) -> Cell:
    if n50.value is None:
        return Cell(NOT_KNOWN, small=n50.words)
    return Cell(number(n50.value), small=interval(n50.low, n50.high))


def _orders(copying: Copying) -> Table:
    columns = (
        Column("Preceding characters", "k"),
        Column("Wrong symbol followed another occurrence of them", "%"),
        Column("A random wrong symbol would have", "%"),
        Column("They occur elsewhere and go on differently", "%"),
        Column("At all places of these strings", "%"),
        Column("Wrong symbol stood at most k places away", "%"),
        Column("A random wrong symbol does", "%"),
    )
    rows = tuple(
        Row(
            (
                Cell(str(one.k)),
                _share(one.followed) if one.followed else Cell(NOT_KNOWN),
                _chance(one.followed_by_chance),
                _share(one.ambiguous) if one.ambiguous else Cell(NOT_KNOWN),
                _chance(one.ambiguous_usually),
                _share(one.near) if one.near else Cell(NOT_KNOWN),
                _chance(one.near_by_chance),
            )
        )
        for one in (() if copying.mistakes is None else copying.mistakes.orders)
    )
    source = (
        "First mistakes of all strings that went wrong. Longer matches count in every row up to their length."
    )
    return Table(
        "copy-mistakes",
        "What do mistakes look like: a look-up that found another place, or a slip?",
        source,
        columns,
        rows,
    )


def _chance(value: float | None) -> Cell:
    return Cell(NOT_KNOWN if value is None else _percent(value))


def _cramming(copying: Copying) -> Table:
    columns = (
        Column("Prompt vectors", "m"),
        Column("Strings"),
        Column("Length limit", "tokens"),
        Column("Reaches", "tokens", numeric=False),
        Column("n50", "tokens"),
    )
    rows = []
    for one in copying.cramming:
        reaches = " ".join(map(str, sorted(one.reaches)))
        strings = Cell(str(one.strings), small=f"and {one.failed} that failed" if one.failed else "")
        rows.append(Row((Cell(str(one.m)), strings, Cell(str(one.limit)), Cell(reaches), _n50(one.n50))))
    source = "Vectors optimised until this very model emits random strings of the same symbols."
    return Table("copy-cramming", "What optimised vectors reach on this model", source, columns, tuple(rows))
