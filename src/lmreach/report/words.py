"""What the run says, in sentences; every number in them stands in the results."""

import math
from collections.abc import Sequence

from lmreach.report import reading
from lmreach.report.format import interval, is_number, number, percent, power, prose
from lmreach.report.reading import Record

PAPER = (
    "Meyer, Michelessa, Chaux, Tan, “How Many Different Outputs Can a Transformer Generate?”, ICML 2026, "
    "arXiv 2605.22223"
)
BALL_NOTE = "The paper’s ball bound carries no information about the model beyond d and V."
PREMISE_NOTE = (
    "A limit counts prompts. “Packing” says whether the counting step is proved for the region; “premise” says what is "
    "assumed about the vectors. Proved packing does not prove the premise. "
    "All limits speak about uniformly random targets: text of a likelier kind is a small part of all sequences and may "
    "reach further."
)
GLOSSARY = (
    (
        "prompt vector",
        "One position of a soft prompt: d free numbers handed to the first block in place of a token.",
    ),
    (
        "accessible",
        "A sequence is accessible with m vectors when some choice of them makes greedy decoding emit exactly it.",
    ),
    (
        "accessibility",
        "The share of sequences of length n, of a stated kind, that are accessible. Here: the share of target strings "
        "that were reached, so a lower bound.",
    ),
    ("n50", "The length in tokens at which accessibility crosses one half."),
    ("slope", "Tokens by which n50 grows with each further vector."),
    (
        "packing number",
        "The most points of a region that are pairwise at least eps apart; ln P per vector bounds how many prompts can "
        "be told apart.",
    ),
    (
        "premise",
        "What a limit assumes. format: vectors are stored in a float dtype, nothing else. input: they lie in a stated "
        "region of the input space. hidden: prompts are told apart only through final hidden states, at a precision "
        "relative to their size (the paper’s practice).",
    ),
    (
        "packing: proved, convention, exact count",
        "proved: the packing number is bounded for this very region. convention: the paper’s formula, used as published. "
        "exact count: the representable vectors were counted.",
    ),
    ("gap", "Difference of the two largest logits at a step; a string counts only if every gap is above 0."),
    ("censored", "A string that reached the length limit: its reach is at least that, not exactly that."),
)


def tokens_of(target: str, count: float = 2) -> str:
    """Name the tokens of a target kind inside a sentence (``random tokens``)."""
    noun = "token" if count == 1 else "tokens"
    if target == "random":
        return f"random {noun}"
    return f"{noun} of its own text" if target == "self" else f"{noun} of {target}"


def join(parts: Sequence[str]) -> str:
    """Join clauses as English does."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def headline(results: Record) -> list[str]:
    """Say the outcome in a few sentences: first vector, each further one, the limit, what it leaves.

    Only values present in the results are used; where one is missing the sentence says so.
    """
    return [*_first_vector(results), *_further(results), *_limit(results), *_share(results)]


def _first_vector(results: Record) -> list[str]:
    found = reading.records(results, "accessibility")
    smallest = [
        min(reading.of_target(found, target), key=lambda record: record.get("m") or math.inf)
        for target in dict.fromkeys(str(record.get("target")) for record in found)
    ]
    if not smallest:
        return ["Nothing was measured in this run, so it does not say what can be reached."]
    said = []
    for m in dict.fromkeys(record.get("m") for record in smallest):
        clauses = [_clause(record) for record in smallest if record.get("m") == m and _has_answer(record)]
        if clauses:
            name = results.get("model_name", "the model")
            said.append(f"From {_vectors(m)}, {name} could be made to emit {join(clauses)}.")
    return said + [_no_answer(record) for record in smallest if not _has_answer(record)]


def _vectors(m: object) -> str:
    return "one prompt vector" if m == 1 else f"{m} prompt vectors"


def _has_answer(record: Record) -> bool:
    return verdict(record) in {"estimated", "above_limit", "below_one"}


def verdict(record: Record) -> str:
    """Return the verdict of a record's n50; an estimate without a finite value is no answer."""
    n50 = record.get("n50") or {}
    given = str(n50.get("verdict", "no_data"))
    return "no_data" if given == "estimated" and not is_number(n50.get("value")) else given


def _clause(record: Record) -> str:
    n50, target = record["n50"], str(record.get("target"))
    match verdict(record):
        case "above_limit":
            return (
                f"at least {number(record.get('limit'))} {tokens_of(target)} (this run’s length limit, reached by half of "
                "the strings or more, so n50 is above it)"
            )
        case "below_one":
            return f"not even one of the {tokens_of(target)} in half of the cases (n50 is below 1)"
        case _:
            told = interval(n50.get("low"), n50.get("high"), digits=2)
            return f"{prose(n50['value'])} {tokens_of(target)} (n50; {percent(n50.get('confidence'))} interval {told})"


def _no_answer(record: Record) -> str:
    done, asked = record.get("finished"), record.get("strings")
    return (
        f"For {tokens_of(str(record.get('target')))} from {_vectors(record.get('m'))} there is no answer: "
        f"{number(done)} of {number(asked)} strings were finished."
    )


def _further(results: Record) -> list[str]:
    clauses, silent = [], []
    for slope in reading.records(results, "slopes"):
        target, points = str(slope.get("target")), slope.get("m") or []
        if is_number(slope.get("slope")):
            told = interval(slope.get("low"), slope.get("high"), digits=2)
            span = f", m = {min(points)} to {max(points)}" if points else ""
            clauses.append(f"{prose(slope['slope'])} {tokens_of(target)} (interval {told}{span})")
        else:
            reason = slope.get("words") or str(slope.get("verdict", "no reason given")).replace("_", " ")
            silent.append(
                f"How many {tokens_of(target)} a further vector adds is not known: {str(reason).rstrip('.')}."
            )
    if not clauses and not silent:
        return ["How much a further vector adds was not estimated."]
    return ([f"Each further vector adds {join(clauses)}."] if clauses else []) + silent


def _limit(results: Record) -> list[str]:
    best = reading.tightest(results)
    if not best:
        return ["No limit was computed."]
    first = best[0]
    said = (
        f"The tightest limit under the premise “{first.get('premise')}” ({first.get('name')}, packing: "
        f"{first.get('packing')}) is {prose(first['tokens_per_vector'])} tokens per vector{_compared(results, first)}."
    )
    others = [f"{prose(limit['tokens_per_vector'])} under “{limit.get('premise')}”" for limit in best[1:]]
    return [said, f"Under other premises it is {join(others)}."] if others else [said]


def _compared(results: Record, limit: Record) -> str:
    for target in sorted(reading.targets(results), key=lambda name: name != "random"):
        ratio = reading.ratio_of(reading.slope_of(results, target), limit)
        if ratio and is_number(ratio.get("ratio")):
            return _ratio_words(ratio, target)
    return ""


def _ratio_words(ratio: Record, target: str) -> str:
    told = interval(ratio.get("low"), ratio.get("high"), digits=2)
    measured = f"the measured slope on {tokens_of(target)}"
    if ratio["ratio"] < 1:
        return (
            f", only {number(ratio['ratio'])} times (interval {told}) {measured}: the measurement lies above this limit, so "
            "its premise does not hold for these vectors and targets"
        )
    return f": {prose(ratio['ratio'])} times (interval {told}) {measured}"


def _share(results: Record) -> list[str]:
    for limit in reading.tightest(results)[:1]:
        log_v = reading.log_vocabulary(limit)
        if log_v is not None and log_v > 0:
            n = math.ceil(2 * limit["tokens_per_vector"])
            left = limit["log_packing_nats"] - n * log_v
            return [
                f"If that premise holds, at most a share of {power(left)} of all sequences of {number(n)} tokens, twice "
                "that length, can be reached from one vector."
            ]
    return []


def vocabulary(results: Record) -> str:
    """Say how many rows the head has, how many ids are usable, and which of the two entered the limits."""
    model = results.get("model") or {}
    rows, usable = model.get("rows"), model.get("usable")
    said = f"{number(rows)} rows, {number(usable)} usable"
    log_v = next((v for v in map(reading.log_vocabulary, reading.limits(results)) if v is not None), None)
    if log_v is None:
        return f"{said}; no limit was computed, so neither entered C"
    for count, name in ((usable, "usable ids"), (rows, "rows")):
        if is_number(count) and count > 1 and math.isclose(math.log(count), log_v, rel_tol=1e-6):
            return f"{said}; V = {number(count)} ({name}) entered C"
    return f"{said}; ln V = {number(log_v, 6)} entered C, which is neither of the two"


def n50_cell(record: Record) -> tuple[str, str]:
    """Return n50 and its interval, or the verdict that stands for it, as a table shows them."""
    n50 = record.get("n50") or {}
    match verdict(record):
        case "estimated":
            return number(n50["value"]), interval(n50.get("low"), n50.get("high"))
        case "above_limit":
            return f"above {number(record.get('limit'))}", "half or more reached the length limit"
        case "below_one":
            return "below 1", "fewer than half gave one token"
        case _:
            return number(n50.get("value")), "no answer"


def describe_n50(results: Record) -> str:
    """Describe the figure of n50 against m for readers who do not see it."""
    points = [
        f"{record.get('target')}, m = {record.get('m')}: {n50_cell(record)[0]} ({n50_cell(record)[1]})"
        for record in reading.records(results, "accessibility")
    ]
    lines = [
        f"{line.get('name')}: {prose(line['tokens_per_vector'])} tokens per vector"
        for line in reading.tightest(results)
    ]
    return f"n50 in tokens. {'; '.join(points) or 'No points'}. Limit lines: {'; '.join(lines) or 'none'}."


def describe_curves(found: Sequence[Record], target: str) -> str:
    """Describe one panel of accessibility curves for readers who do not see it."""
    parts = [f"m = {record.get('m')}: n50 {n50_cell(record)[0]}" for record in found]
    return (
        f"Share of {target} target strings emitted in full, falling with their length n. {'; '.join(parts)}."
    )
