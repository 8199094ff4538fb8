"""The tables of the page: limits, growth, what was reached, and beside them those of `fact_tables`."""

import math
from collections.abc import Sequence

from lmreach.report.kit import reading
from lmreach.report.kit.format import NOT_KNOWN, interval, number, percent
from lmreach.report.kit.table import Cell, Column, Row, Table
from lmreach.report.study import stepped, words
from lmreach.report.study.facts import config, model, provenance, support
from lmreach.results import AnyResults, Interval
from lmreach.results.limits import Limit
from lmreach.results.study import Accessibility, Slope, StudyResults

__all__ = [
    "Cell",
    "Column",
    "Row",
    "Table",
    "config",
    "examples",
    "limits",
    "measured",
    "model",
    "points",
    "provenance",
    "ratios",
    "reached",
    "slopes",
    "support",
    "tightest",
]

_ASSUMES = {
    "format": "nothing but the number format of the vectors",
    "input": "vectors lie where real inputs lie",
    "hidden": "prompts are told apart only by final hidden states, at a stated precision",
}


def limits(results: AnyResults) -> Table:
    """Every limit, with its ratio to the measured slope of each target kind."""
    targets = [target for target in reading.targets(results) if reading.slope_of(results, target)]
    columns = (
        Column("Limit", "support, norm", numeric=False),
        Column("Premise", numeric=False),
        Column("Packing", numeric=False),
        Column("ln P per vector", "nats"),
        Column("Limit C", "tokens per vector"),
        Column("Content", "bits per coordinate"),
        *(Column("C / slope", f"ratio, {target}") for target in targets),
        Column("Numbers from", numeric=False),
    )
    rows = tuple(_limit(results, limit, targets) for limit in reading.limits(results))
    source = (
        "ln P: packing number of the support. C = ln P / ln V (Corollary 4.6 of the paper). Bits per "
        "coordinate: ln P / (d ln 2)."
    )
    if targets:
        source += f" C / slope: the limit over the measured slope, and interval{_after(results, targets)}."
    return Table(
        "limits",
        "Every limit, by premise and from tight to loose; the tightest of each premise is marked",
        source,
        columns,
        rows,
    )


def tightest(results: AnyResults) -> Table:
    """The tightest limit of each premise, loosest assumption first; equal limits share a row."""
    targets = [target for target in reading.targets(results) if reading.slope_of(results, target)]
    columns = (
        Column("Limit", numeric=False),
        Column("Assumes", numeric=False),
        Column("Limit C", "tokens per vector"),
        *(Column("C / slope", f"ratio, {target}") for target in targets),
    )
    every = reading.limits(results)
    rows = []
    for limit in reversed(reading.tightest(results)):
        equal = [one.name for one in every if one.premise == limit.premise and _equal(one, limit)]
        found = [reading.ratio_of(reading.slope_of(results, target), limit) for target in targets]
        named = f"premise {limit.premise}, {limit.packing}"
        rows.append(
            Row(
                (
                    Cell(limit.name, ", ".join(name for name in equal if name != limit.name)),
                    Cell(_ASSUMES.get(limit.premise, limit.premise), named),
                    Cell(number(limit.tokens_per_vector)),
                    *map(_known, found),
                )
            )
        )
    source = "C: tokens that one vector can decide at most. In small print: limits of the same value."
    if targets:
        source += f" C / slope: over the measured slope{_after(results, targets)}."
    return Table("tightest", "The tightest limit under each assumption", source, columns, tuple(rows))


def _after(results: AnyResults, targets: Sequence[str]) -> str:
    """Say after how many steps the slopes of some kinds stand, and which had levelled off."""
    told = {target: reading.of_target(reading.entries(results), target) for target in targets}
    said = [f"{target} {steps}" for target, own in told.items() if (steps := stepped.steps_with_level(own))]
    return f", after: {'; '.join(said)}" if said else ""


def _equal(one: Limit, other: Limit) -> bool:
    return math.isclose(one.tokens_per_vector, other.tokens_per_vector, rel_tol=1e-6)


def reached(results: AnyResults) -> Table:
    """n50 per kind and m in short: strings, interval, steps."""
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("n50", "tokens, interval"),
        Column("n50 / m", "tokens per vector"),
        Column("Strings", "finished / asked"),
        Column("Steps", "per string"),
    )
    rows = tuple(
        Row(
            (
                Cell(record.target),
                Cell(number(record.m)),
                Cell(*words.n50_cell(record)),
                Cell(number(record.tokens_per_vector)),
                Cell(f"{number(record.finished)} / {number(record.strings)}"),
                Cell(number(stepped.steps_each(record)), stepped.level([record])),
            )
        )
        for record in reading.entries(results)
    )
    source = (
        "n50: half of the strings were emitted to this length. Every one was confirmed by greedy decoding."
    )
    if words.is_published(reading.entries(results)):
        source = " ".join(words.protocol_notes(results))
    return Table("reached", "n50 by kind of target and number of vectors", source, columns, rows)


def _limit(results: AnyResults, limit: Limit, targets: Sequence[str]) -> Row:
    tight = limit.tightest_of_premise
    found = [reading.ratio_of(reading.slope_of(results, target), limit) for target in targets]
    shape = f"{limit.support}, {limit.norm}"
    cells = (
        Cell(limit.name, shape, "tightest" if tight else ""),
        Cell(limit.premise),
        Cell(limit.packing),
        Cell(number(limit.log_packing_nats)),
        Cell(number(limit.tokens_per_vector)),
        Cell(number(limit.bits_per_coordinate)),
        *map(_known, found),
        Cell(limit.source, limit.note),
    )
    return Row(cells, strong=tight)


def slopes(results: AnyResults) -> Table:
    """The growth of n50 per vector, one row per target kind."""
    columns = (
        Column("Target", numeric=False),
        Column("Slope", "tokens per vector"),
        Column("Intercept", "tokens"),
        Column("R²", "share of variance"),
        Column("Without intercept", "tokens per vector"),
        Column("Exponent of m", "1: linear"),
        Column("m used", "vectors", numeric=False),
        Column("Steps", "per string"),
        Column("In words", numeric=False),
    )
    rows = tuple(
        Row(
            (
                Cell(one.target),
                _known(one.slope),
                Cell(number(one.intercept)),
                Cell(number(one.r2)),
                _known(one.through_origin),
                _known(one.exponent),
                Cell(", ".join(map(number, one.m)) or NOT_KNOWN),
                _steps(results, one),
                Cell(one.slope.words or one.slope.verdict.replace("_", " "), one.shape_words),
            )
        )
        for one in reading.slopes(results)
    )
    source = (
        "A straight line fitted to n50 against m; the second line is the slope’s interval, from resampling "
        "strings. Where n50 is only known to lie beyond a length, it moves the line only if the line "
        "passes on the other side of that length."
    )
    found = reading.entries(results)
    if any(record.points for record in found):
        source = source.replace("resampling strings", "draws of n50 from the fitted curves")
    if words.is_published(found):
        source = f"{words.PUBLISHED_LABEL[:1].upper()}{words.PUBLISHED_LABEL[1:]}. {source}"
    return Table("slopes", "Growth of n50 with each further vector", source, columns, rows)


def _steps(results: AnyResults, line: Slope) -> Cell:
    """Write the steps behind the points of a line, and whether n50 had levelled off at all of them."""
    own = [e for e in reading.entries(results) if e.target == line.target and e.m in line.m]
    return Cell(stepped.steps_told(own).removesuffix(" steps") or NOT_KNOWN, stepped.level(own))


def _known(one: Interval | None) -> Cell:
    """Write a value with its interval; neither where there is no value."""
    if one is None or one.value is None:
        return Cell(NOT_KNOWN)
    return Cell(number(one.value), interval(one.low, one.high))


def measured(results: AnyResults) -> Table:
    """What was reached: one row per target kind and m, with both ratios."""
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("Strings", "finished / asked"),
        Column("n50", "tokens"),
        Column("n50 / m", "tokens per vector"),
        Column("Content", "bits per coordinate"),
        Column("n50 as ids", "bits"),
        Column("Vectors", "bits"),
        Column("Ids / vectors", "bits per bit"),
        Column("Vectors' RMS", "× real inputs"),
        Column("Outcomes", "strings", numeric=False),
        Column("Smallest gap", "logits"),
        Column("Steps", "per string"),
        Column("Steps", "in all"),
        Column("Time", "seconds"),
    )
    found = reading.entries(results)
    hows = list(dict.fromkeys(map(_how, found)))
    # What holds for every row is said once, below the table.
    rows = tuple(_measured(record, _how(record) if len(hows) > 1 else "") for record in found)
    confirmed = "Measured by optimising prompt vectors and confirmed by greedy decoding at batch 1. "
    if words.is_published(found):
        confirmed = " ".join(words.protocol_notes(results)) + " "
    source = (
        f"{f'Protocol: {hows[0]}. ' if len(hows) == 1 else ''}{confirmed}n50: where "
        f"the accessibility curve crosses one half, with its {_confidence(results)} interval. Tokens "
        "per vector is a count of tokens, not of bits: n50 as ids takes n50 · log2 V bits, the vectors "
        "take those they are stored in, and “Ids / vectors” is the ratio of the two."
    )
    return Table(
        "measured", "n50 and its cost, per kind of target and number of vectors", source, columns, rows
    )


def _how(record: Accessibility) -> str:
    limit = f"length limit {number(record.limit)} tokens"
    if record.points:
        limit = f"single lengths up to {number(record.limit)} tokens"
    around = (("prefix", record.prefix), ("suffix", record.suffix))
    texts = "".join(f", {name} “{text}”" for name, text in around if text)
    protocol = record.protocol
    if words.is_published([record]):
        protocol = words.PUBLISHED_LABEL
    held = f", within {record.within}" if record.within else ""
    return f"{protocol}, {_start(record.bos)}{texts}{held}, {limit}"


def _confidence(results: AnyResults) -> str:
    found = [entry.n50.confidence for entry in reading.entries(results)]
    return percent(found[0]) if found else "stated"


def _measured(record: Accessibility, how: str) -> Row:
    n50, told = words.n50_cell(record)
    ids, vectors = record.bits_ids, record.bits_vectors
    ratio = ids / vectors if ids is not None and vectors else None
    outcomes = [f"{number(count)} {name.replace('_', ' ')}" for name, count in record.outcomes.items()]
    cells = (
        Cell(record.target, how),
        Cell(number(record.m)),
        Cell(f"{number(record.finished)} / {number(record.strings)}"),
        Cell(n50, told),
        Cell(number(record.tokens_per_vector)),
        Cell(number(record.bits_per_coordinate)),
        Cell(number(ids)),
        Cell(number(vectors)),
        Cell(number(ratio)),
        Cell(number(None if record.extent is None else record.extent.median_rms_over_inputs)),
        Cell(", ".join(outcomes) or NOT_KNOWN),
        Cell(number(record.smallest_gap)),
        Cell(number(stepped.steps_each(record)), stepped.level([record])),
        Cell(number(record.steps)),
        Cell(number(record.seconds)),
    )
    return Row(cells)


def points(results: AnyResults) -> Table:
    """Strings reached at single lengths, one row per kind, m and length; no rows for reaches."""
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("n", "tokens"),
        Column("Strings", "reached / tried"),
        Column("Share", "of strings"),
        Column("In words", numeric=False),
    )
    rows = tuple(row for record in reading.entries(results) for row in _points(record))
    source = (
        "Each string and length is a trial of its own, from scratch. Share: with Clopper-Pearson's interval. "
        "In words, once per kind and m: n50 from the fitted curve, how sharply it falls, and below it n50 "
        "from Turnbull's estimate, which supposes no curve (each reach is known to lie between two lengths)."
    )
    return Table("points", "Success at single lengths", source, columns, rows)


def _points(record: Accessibility) -> list[Row]:
    points = record.points
    if points is None:
        return []
    columns = (points.n, points.reached, points.tried, points.share, points.low, points.high)
    said = [one for one in (record.n50.words, record.fit.steepness if record.fit else "") if one]
    if words.is_published([record]):
        said.append(f"{number(record.decoded)} of {number(record.solved)} successes also decode")
    free = "" if record.turnbull is None else record.turnbull.words
    return [
        Row(
            (
                Cell(record.target),
                Cell(number(record.m)),
                Cell(number(n)),
                Cell(f"{number(reached)} / {number(tried)}"),
                Cell(number(share), interval(low, high)),
                Cell("; ".join(said) if place == 0 else "", free if place == 0 else ""),
            )
        )
        for place, (n, reached, tried, share, low, high) in enumerate(zip(*columns, strict=True))
    ]


def _start(bos: str) -> str:
    return {"none": "no start token", "before": "start token before", "after": "start token after"}.get(
        bos, bos
    )


def ratios(results: AnyResults) -> Table:
    """Each limit over the measured tokens per vector, per kind and m."""
    names = [limit.name for limit in reading.limits(results)]
    found = reading.entries(results)
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("Steps", "per string"),
        *(Column(name, "C / (n50 / m)") for name in names),
    )
    rows = tuple(
        Row(
            (
                Cell(record.target),
                Cell(number(record.m)),
                Cell(number(stepped.steps_each(record))),
                *(Cell(number(record.ratio_to_limits.get(name))) for name in names),
            )
        )
        for record in found
    )
    source = "A limit’s tokens per vector over the measured n50 / m of that row."
    return Table("ratios", "Limits over what was reached, per kind of target and m", source, columns, rows)


def examples(results: StudyResults) -> Table:
    """Targets and how far each was emitted, every character shown."""
    columns = (
        Column("Target", "kind, trial", numeric=False),
        Column("m", "vectors"),
        Column("Reach", "tokens"),
        Column("Text of the target", numeric=False),
        Column("Emitted", numeric=False),
    )
    rows = tuple(
        Row(
            (
                Cell(example.target, example.key),
                Cell(number(example.m)),
                Cell(number(example.reach)),
                Cell(example.text, exact=True),
                Cell(example.emitted, exact=True),
            )
        )
        for example in results.examples
    )
    source = (
        "Reach: the longest confirmed prefix. "
        "\\n and \\t mark line ends and tabs of the text itself, \\x.. bytes and controls that have no sign."
    )
    return Table("examples", "Examples of targets", source, columns, rows)
