"""The tables of a comparison: a line per study and target kind, a line per number of vectors, differences."""

from dataclasses import replace

from lmreach.report.kit.format import NOT_KNOWN, hundredths, interval, number
from lmreach.report.kit.table import Cell, Column, Row, Table
from lmreach.report.study.words import n50_cell
from lmreach.results.base import Interval
from lmreach.results.compare import PUBLISHED, Comparison, ComparisonEntry, Difference, LimitBeside
from lmreach.results.study import Accessibility
from lmreach.results.utilisation import utilisation

__all__ = ["apart", "by_condition", "by_entry", "grouped"]

_SOURCE = (
    "Read from each study; nothing is computed again. Second lines: 95 % intervals, and under a limit how "
    "many times the slope it is."
)
_PUBLISHED = " Published: printed by the paper, without intervals, and not checked here."


def by_entry(compared: Comparison) -> Table:
    """One line per study and target kind: what a paper would print."""
    columns = (
        Column("Model", numeric=False),
        Column("d", "V below it"),
        Column("n50, fewest vectors", "tokens"),
        Column("n50, most vectors", "tokens"),
        Column("Slope", "tokens per vector"),
        Column("Bits", "of the slope, per coordinate"),
        Column("Steps", "per string"),
        *(Column(f"Limit, {premise}", "tokens per vector") for premise in ("hidden", "input", "format")),
        Column("Paper’s ball", "tokens per vector"),
    )
    published = any(one.origin == "published" for one in compared.entries)
    source = _SOURCE + (_PUBLISHED if published else "")
    rows = tuple(map(_entry, compared.entries))
    return Table("compared", "Studies beside one another", source, columns, rows)


def apart(compared: Comparison) -> tuple[Table, Table]:
    """Return the same as two tables: what was measured, and what was published; either may have no rows."""
    whole = by_entry(compared)
    origins = [entry.origin == "published" for entry in compared.entries]
    measured = tuple(row for row, printed in zip(whole.rows, origins, strict=True) if not printed)
    published = tuple(row for row, printed in zip(whole.rows, origins, strict=True) if printed)
    name = f"Published values beside them ({len(published)} rows)"
    return (
        replace(whole, source=_SOURCE, rows=measured),
        replace(whole, name="published", caption=name, rows=published),
    )


def _entry(entry: ComparisonEntry) -> Row:
    first, last = (entry.conditions[i] if entry.conditions else None for i in (0, -1))
    published = entry.origin == "published"
    limits = (entry.hidden, entry.input, entry.format, entry.ball)
    cells = (
        _name(entry),
        Cell(number(entry.width), number(entry.vocab)),
        _n50(first, with_m=True),
        _n50(last, with_m=True),
        _estimate(entry.slope),
        Cell(number(entry.bits_per_coordinate)),
        Cell(_steps(entry.steps, most=published), f"{_range(entry.strings)} strings; {entry.protocol}"),
        *map(_limit, limits),
    )
    return Row(cells)


def by_condition(compared: Comparison) -> Table:
    """One line per study, target kind and number of vectors."""
    columns = (
        Column("Model", numeric=False),
        Column("m", "prompt vectors"),
        Column("n50", "tokens"),
        Column("n50 / m", "tokens per vector"),
        Column("Bits", "per coordinate"),
        Column("Held to", numeric=False),
        Column("Utilisation", "bits of ids / bits stored"),
        Column("Strings", "finished"),
        Column("Still growing", "of these"),
        Column("Steps", "per string"),
        Column("More steps", "n50", numeric=False),
    )
    rows = tuple(_condition(entry, one) for entry in compared.measured for one in entry.conditions)
    source = (
        "n50 with its 95 % interval. Utilisation: n50 log2 V over the bits that the vectors are stored in. "
        "Still growing: strings that grew in the last tenth of their steps. More steps: whether twice the "
        "steps still moved n50 by more than half of its interval."
    )
    return Table("conditions", "Every number of vectors", source, columns, rows)


def _condition(entry: ComparisonEntry, one: Accessibility) -> Row:
    counted = one.trials or one.finished
    cells = (
        _name(entry),
        Cell(number(one.m)),
        _n50(one, with_m=False),
        Cell(number(one.tokens_per_vector)),
        Cell(number(one.bits_per_coordinate)),
        Cell(one.within or "any float32", f"{number(one.bits_vectors)} bits"),
        _share(entry, one),
        Cell(number(one.finished)),
        Cell(number(one.still_growing)),
        Cell(_steps(one.steps / counted if counted else None)),
        Cell(one.levelling or NOT_KNOWN),
    )
    return Row(cells)


def _share(entry: ComparisonEntry, one: Accessibility) -> Cell:
    assert entry.vocab is not None, "a measured entry knows its vocabulary"
    used = utilisation(one.n50, vocab=entry.vocab, bits=one.bits_vectors)
    if used.value is None:
        return Cell(NOT_KNOWN, one.n50.verdict.replace("_", " "))
    low, high = (None if end is None else 100 * end for end in (used.low, used.high))
    told = interval(low, high, 2)
    return Cell(hundredths(used.value), told if None in (low, high) else f"{told} %")


def _name(entry: ComparisonEntry) -> Cell:
    published = entry.origin == "published"
    return Cell(entry.study.removesuffix(PUBLISHED), entry.target, "published" if published else "")


def _n50(one: Accessibility | None, *, with_m: bool) -> Cell:
    if one is None:
        return Cell(NOT_KNOWN, "not published")
    value, told = n50_cell(one)
    return Cell(value, f"{told}; m = {one.m}" if with_m else told)


def _estimate(one: Interval) -> Cell:
    if one.value is None:
        return Cell(NOT_KNOWN, one.verdict.replace("_", " "))
    return Cell(number(one.value), interval(one.low, one.high))


def _limit(limit: LimitBeside | None) -> Cell:
    if limit is None:
        return Cell(NOT_KNOWN)
    ratio = limit.ratio
    if ratio is None or ratio.value is None:
        return Cell(number(limit.tokens_per_vector), "no slope")
    ends = "" if ratio.low is None and ratio.high is None else f" ({interval(ratio.low, ratio.high)})"
    return Cell(number(limit.tokens_per_vector), f"× {number(ratio.value)}{ends}")


def _steps(steps: float | None, *, most: bool = False) -> str:
    told = number(None if steps is None else round(steps))
    return f"≤ {told}" if most else told


def _range(counts: tuple[int, ...]) -> str:
    if not counts:
        return NOT_KNOWN
    low, high = min(counts), max(counts)
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def grouped(difference: Difference) -> str:
    """Say which studies have which value: ``frontier: a, b; published: c``."""
    held: dict[str, list[str]] = {}
    for study, value in difference.values.items():
        held.setdefault(value, []).append(study)
    return "; ".join(f"{value} ({_studies(names)})" for value, names in held.items())


def _studies(names: list[str]) -> str:
    """Name the studies; published ones are counted where there are many."""
    published = [name for name in names if name.endswith(PUBLISHED)]
    if len(published) < 4:
        return ", ".join(names)
    mine = [name for name in names if name not in published]
    return ", ".join([*mine, f"{len(published)} published models"])
