"""The tables of the page: limits, growth, what was reached, and beside them those of `fact_tables`."""

from collections.abc import Sequence
from typing import Any

from lmreach.report.kit import reading
from lmreach.report.kit.format import NOT_KNOWN, interval, is_number, number, percent
from lmreach.report.kit.reading import Record
from lmreach.report.kit.table import Cell, Column, Row, Table, text_of
from lmreach.report.study import words
from lmreach.report.study.facts import config, model, provenance, support

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
    "slopes",
    "support",
]


def limits(results: Record) -> Table:
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
        "coordinate: ln P / (d ln 2). C / slope: the limit over the measured slope, and interval."
    )
    return Table(
        "limits",
        "Every limit, by premise and from tight to loose; the tightest of each premise is marked",
        source,
        columns,
        rows,
    )


def _limit(results: Record, limit: Record, targets: Sequence[str]) -> Row:
    tight = bool(limit.get("tightest_of_premise"))
    found = [reading.ratio_of(reading.slope_of(results, target), limit) or {} for target in targets]
    ratios = [
        Cell(number(ratio.get("ratio")), interval(ratio.get("low"), ratio.get("high")) if ratio else "")
        for ratio in found
    ]
    shape = f"{text_of(limit.get('support'))}, {text_of(limit.get('norm'))}"
    cells = (
        Cell(text_of(limit.get("name")), shape, "tightest" if tight else ""),
        Cell(text_of(limit.get("premise"))),
        Cell(text_of(limit.get("packing"))),
        Cell(number(limit.get("log_packing_nats"))),
        Cell(number(limit.get("tokens_per_vector"))),
        Cell(number(limit.get("bits_per_coordinate"))),
        *ratios,
        Cell(text_of(limit.get("source")), str(limit.get("note") or "")),
    )
    return Row(cells, strong=tight)


def slopes(results: Record) -> Table:
    """The growth of n50 per vector, one row per target kind."""
    columns = (
        Column("Target", numeric=False),
        Column("Slope", "tokens per vector"),
        Column("Intercept", "tokens"),
        Column("R²", "share of variance"),
        Column("Without intercept", "tokens per vector"),
        Column("Exponent of m", "1: linear"),
        Column("m used", "vectors", numeric=False),
        Column("In words", numeric=False),
    )
    rows = tuple(
        Row(
            (
                Cell(text_of(slope.get("target"))),
                Cell(number(slope.get("slope")), _interval_if(slope)),
                Cell(number(slope.get("intercept"))),
                Cell(number(slope.get("r2"))),
                _known(slope.get("through_origin")),
                _known(slope.get("exponent")),
                Cell(", ".join(map(number, slope.get("m") or ())) or NOT_KNOWN),
                Cell(
                    str(slope.get("words") or text_of(slope.get("verdict")).replace("_", " ")),
                    str(slope.get("shape_words") or ""),
                ),
            )
        )
        for slope in reading.records(results, "slopes")
    )
    source = (
        "A straight line fitted to n50 against m; the second line is the slope’s interval, from resampling "
        "strings. An n50 beyond the tried lengths holds the line only where it would run on its wrong side."
    )
    found = reading.records(results, "accessibility")
    if any(record.get("points") for record in found):
        source = source.replace("resampling strings", "draws of n50 from the fitted curves")
    if words.is_published(found):
        source = f"{words.PUBLISHED_LABEL[:1].upper()}{words.PUBLISHED_LABEL[1:]}. {source}"
    return Table("slopes", "Growth of n50 with each further vector", source, columns, rows)


def _known(value: Any) -> Cell:
    """Write a value with its interval, as a list of three."""
    if not isinstance(value, list | tuple) or len(value) != 3:
        return Cell(NOT_KNOWN)
    return Cell(number(value[0]), interval(value[1], value[2]))


def _interval_if(record: Record) -> str:
    return interval(record.get("low"), record.get("high")) if is_number(record.get("slope")) else ""


def measured(results: Record) -> Table:
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
        Column("Steps", "of the optimiser"),
        Column("Time", "seconds"),
    )
    found = reading.records(results, "accessibility")
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


def _how(record: Record) -> str:
    limit = f"length limit {number(record.get('limit'))} tokens"
    if record.get("points"):
        limit = f"single lengths up to {number(record.get('limit'))} tokens"
    texts = "".join(
        f", {name} “{text_of(record[name])}”" for name in ("prefix", "suffix") if record.get(name)
    )
    protocol = text_of(record.get("protocol"))
    if words.is_published([record]):
        protocol = words.PUBLISHED_LABEL
    return f"{protocol}, {_start(record.get('bos'))}{texts}, {limit}"


def _confidence(results: Record) -> str:
    found = [
        (record.get("n50") or {}).get("confidence") for record in reading.records(results, "accessibility")
    ]
    return percent(found[0]) if found else "stated"


def _measured(record: Record, how: str) -> Row:
    n50, told = words.n50_cell(record)
    ids, vectors = record.get("bits_ids"), record.get("bits_vectors")
    ratio = ids / vectors if is_number(ids) and is_number(vectors) and vectors else None
    outcomes = [
        f"{number(count)} {name.replace('_', ' ')}" for name, count in (record.get("outcomes") or {}).items()
    ]
    cells = (
        Cell(text_of(record.get("target")), how),
        Cell(number(record.get("m"))),
        Cell(f"{number(record.get('finished'))} / {number(record.get('strings'))}"),
        Cell(n50, told),
        Cell(number(record.get("tokens_per_vector"))),
        Cell(number(record.get("bits_per_coordinate"))),
        Cell(number(ids)),
        Cell(number(vectors)),
        Cell(number(ratio)),
        Cell(number(reading.rms_over_inputs(record))),
        Cell(", ".join(outcomes) or NOT_KNOWN),
        Cell(number(record.get("smallest_gap"))),
        Cell(number(record.get("steps"))),
        Cell(number(record.get("seconds"))),
    )
    return Row(cells)


def points(results: Record) -> Table:
    """Strings reached at single lengths, one row per kind, m and length; no rows for reaches."""
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        Column("n", "tokens"),
        Column("Strings", "reached / tried"),
        Column("Share", "of strings"),
        Column("In words", numeric=False),
    )
    rows = tuple(row for record in reading.records(results, "accessibility") for row in _points(record))
    source = (
        "Each string and length is a trial of its own, from scratch. Share: with Clopper-Pearson's interval. "
        "In words, once per kind and m: n50 from the fitted curve, how sharply it falls, and below it n50 "
        "from Turnbull's estimate, which supposes no curve (each reach is known to lie between two lengths)."
    )
    return Table("points", "Success at single lengths", source, columns, rows)


def _points(record: Record) -> list[Row]:
    told = record.get("points") or {}
    columns = [told.get(name) or () for name in ("n", "reached", "tried", "share", "low", "high")]
    fit, n50 = record.get("fit") or {}, record.get("n50") or {}
    said = [str(one) for one in (n50.get("words"), fit.get("steepness")) if one]
    if words.is_published([record]):
        said.append(
            f"{number(record.get('decoded'))} of {number(record.get('solved'))} successes also decode"
        )
    free = str((record.get("intervals") or {}).get("words") or "")
    return [
        Row(
            (
                Cell(text_of(record.get("target"))),
                Cell(number(record.get("m"))),
                Cell(number(n)),
                Cell(f"{number(reached)} / {number(tried)}"),
                Cell(number(share), interval(low, high)),
                Cell("; ".join(said) if place == 0 else "", free if place == 0 else ""),
            )
        )
        for place, (n, reached, tried, share, low, high) in enumerate(zip(*columns, strict=True))
    ]


def _start(bos: Any) -> str:
    return {"none": "no start token", "before": "start token before", "after": "start token after"}.get(
        bos, text_of(bos)
    )


def ratios(results: Record) -> Table:
    """Each limit over the measured tokens per vector, per kind and m."""
    names = [str(limit.get("name")) for limit in reading.limits(results)]
    found = reading.records(results, "accessibility")
    columns = (
        Column("Target", numeric=False),
        Column("m", "vectors"),
        *(Column(name, "C / (n50 / m)") for name in names),
    )
    rows = tuple(
        Row(
            (
                Cell(text_of(record.get("target"))),
                Cell(number(record.get("m"))),
                *(Cell(number((record.get("ratio_to_limits") or {}).get(name))) for name in names),
            )
        )
        for record in found
    )
    source = "A limit’s tokens per vector over the measured n50 / m of that row."
    return Table("ratios", "Limits over what was reached, per kind of target and m", source, columns, rows)


def examples(results: Record) -> Table:
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
                Cell(text_of(example.get("target")), str(example.get("key") or "")),
                Cell(number(example.get("m"))),
                Cell(number(example.get("reach"))),
                Cell(str(example.get("text", NOT_KNOWN)), exact="text" in example),
                Cell(str(example.get("emitted", NOT_KNOWN)), exact="emitted" in example),
            )
        )
        for example in results.get("examples") or ()
    )
    source = (
        "Reach: the longest confirmed prefix. "
        "↵ and ⇥ mark line ends and tabs of the text itself, \\x.. other controls."
    )
    return Table("examples", "Examples of targets", source, columns, rows)
