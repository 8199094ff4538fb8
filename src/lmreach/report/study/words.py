"""What the run says, in sentences; every number in them stands in the results."""

import math
from collections.abc import Sequence

from lmreach.report.kit import reading
from lmreach.report.kit.format import NOT_KNOWN, interval, number, percent, power, prose
from lmreach.report.study.stepped import steps_told
from lmreach.results import AnyResults, Interval
from lmreach.results.limits import Limit
from lmreach.results.study import Accessibility

PAPER = (
    "Meyer, Michelessa, Chaux, Tan, “How Many Different Outputs Can a Transformer Generate?”, ICML "
    "2026, arXiv 2605.22223"
)
BALL_NOTE = "The paper’s ball bound carries no information about the model beyond d and V."
PREMISE_NOTE = (
    "A limit counts prompts. “Packing” says whether the counting step is proved for the region; "
    "“premise” says what is assumed about the vectors. Proved packing does not prove the premise. "
    "All limits speak about uniformly random targets: text of a likelier kind is a small part of all "
    "sequences and may reach further."
)
GLOSSARY = (
    (
        "prompt vector",
        "One position of a soft prompt: d free numbers handed to the first block in place of a token.",
    ),
    (
        "accessible",
        "A sequence is accessible with m vectors when some choice of them makes greedy decoding emit it.",
    ),
    (
        "accessibility",
        "The share of sequences of length n, of a stated kind, that are accessible. Here: the share of "
        "target strings that were reached, so it may be too low, never too high, apart from chance.",
    ),
    ("n50", "The length in tokens at which accessibility crosses one half."),
    ("slope", "Tokens by which n50 grows with each further vector."),
    (
        "packing number",
        "The most points of a region that are pairwise at least eps apart. ln P per vector bounds how "
        "many prompts can be told apart.",
    ),
    (
        "premise",
        "What a limit assumes. format: vectors are stored in a float dtype, nothing else. input: they "
        "lie in a stated region of the input space. hidden: prompts are told apart only through final "
        "hidden states, at a precision relative to their size (the paper’s practice).",
    ),
    (
        "packing: proved, convention, exact count",
        "proved: the packing number is bounded for this very region. convention: the paper’s formula, "
        "used as published. exact count: the representable vectors were counted.",
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


def headline(results: AnyResults) -> list[str]:
    """Say the outcome in a few sentences: first vector, each further one, the limit and what it leaves.

    Only values present in the results are used; where one is missing the sentence says so.
    """
    return [
        *protocol_notes(results),
        *_first_vector(results),
        *_further(results),
        *_steps(results),
        *_cut_short(results),
        *_limit(results),
    ]


def protocol_notes(results: AnyResults) -> list[str]:
    """Return what must be said before any number of a protocol that is there for comparison only."""
    found = [entry.protocol_note for entry in reading.entries(results)]
    return [f"{note[:1].upper()}{note[1:]}." for note in dict.fromkeys(found) if note]


def is_published(records: Sequence[Accessibility]) -> bool:
    """Say whether any of some records was measured under the published protocol."""
    return any(record.protocol == "published" for record in records)


PUBLISHED_LABEL = "published protocol, for comparison"


def _first_vector(results: AnyResults) -> list[str]:
    found = reading.entries(results)
    smallest = [
        min(reading.of_target(found, target), key=lambda record: record.m)
        for target in dict.fromkeys(record.target for record in found)
    ]
    if not smallest:
        return ["Nothing was measured in this run, so it does not say what can be reached."]
    said = []
    for m in dict.fromkeys(record.m for record in smallest):
        known = [record for record in smallest if record.m == m and _has_length(record)]
        if known:
            name, clauses = results.model.name, join(_clauses(known))
            if is_published(known):
                said.append(
                    f"Under that protocol {_vectors(m)} gave {name} {clauses}, the given one counted."
                )
            else:
                said.append(f"From {_vectors(m)}, {name} could be made to emit {clauses}.")
    return said + [_no_length(record) for record in smallest if not _has_length(record)]


def _clauses(known: Sequence[Accessibility]) -> list[str]:
    """Say each n50; what the first estimate and the first limit explain is not explained again."""
    said: list[str] = []
    seen: set[str] = set()
    for record in known:
        said.append(_clause(record, explained=verdict(record) in seen))
        seen.add(verdict(record))
    return said


def _vectors(m: int) -> str:
    return "one prompt vector" if m == 1 else f"{m} prompt vectors"


def _has_length(record: Accessibility) -> bool:
    return verdict(record) in {"estimated", "above_limit", "separated"}


def verdict(record: Accessibility) -> str:
    """Return the verdict of a record's n50; an estimate without a value is no answer."""
    n50 = record.n50
    missing = {"estimated": n50.value is None, "separated": n50.low is None or n50.high is None}
    return "no_data" if missing.get(n50.verdict) else n50.verdict


def _clause(record: Accessibility, explained: bool) -> str:
    n50, target = record.n50, record.target
    if verdict(record) == "separated":
        lead = "" if explained else "n50: all strings at one length tried, none at the next"
        between = f"between {number(n50.low, 3)} and {number(n50.high, 3)} {tokens_of(target)}"
        return f"{between} ({lead})" if lead else between
    if verdict(record) == "above_limit":
        reached = "which half of the strings or more reached"
        limit = f"this run’s length limit, {reached}"
        if record.points:
            limit = f"the longest length tried, {_at_every_length(record, 'every string was reached')}"
        why = "likewise" if explained else limit
        return f"at least {number(record.limit)} {tokens_of(target)} ({why})"
    told = interval(n50.low, n50.high, digits=2)
    known = n50.low is not None or n50.high is not None
    level = f"{percent(n50.confidence)} interval " if known else ""
    lead = "" if explained else f"n50; {level}"
    return f"{prose(n50.value)} {tokens_of(target)} ({lead}{told})"


def _no_length(record: Accessibility) -> str:
    kind, vectors = tokens_of(record.target), _vectors(record.m)
    if verdict(record) == "below_one":
        return f"With {kind}, fewer than half of the strings gave even their first token from {vectors}."
    told = record.n50.words
    if verdict(record) in {"below_first", "one_length", "curve_does_not_fit", "rises"} and told:
        return f"With {kind}, n50 from {vectors}: {told}."
    done, asked = number(record.finished), number(record.strings)
    return f"With {kind} there is no n50 for {vectors}: {done} of {asked} strings were finished."


def _further(results: AnyResults) -> list[str]:
    known: list[str] = []
    unknown: dict[str, list[str]] = {}
    for one in reading.slopes(results):
        kind, slope = tokens_of(one.target), one.slope
        if slope.value is not None:
            told = interval(slope.low, slope.high, digits=2)
            known.append(f"{prose(slope.value)} {kind} ({told})")
        else:
            reason = slope.words or slope.verdict.replace("_", " ")
            unknown.setdefault(reason.removeprefix("not known: ").rstrip("."), []).append(kind)
    if not known and not unknown:
        return ["How much a further vector adds was not estimated."]
    said = [f"Each further vector adds {join(known)}{_span(results)}."] if known else []
    return said + [
        f"How much a further vector adds in {join(k)} is not known: {why}." for why, k in unknown.items()
    ]


_LEVELLED = {
    "still growing": "n50 was still growing with the steps",
    "not tested": "whether more steps would reach further was not tested",
    "converged": "twice the steps had moved n50 by less than its interval (converged)",
}


def _steps(results: AnyResults) -> list[str]:
    """Say after how many steps the lengths stand, whether they had levelled off, and what was cut."""
    alike: dict[str, list[str]] = {}
    for target in reading.targets(results):
        own = reading.of_target(reading.entries(results), target)
        steps, verdicts = steps_told(own), {e.levelling for e in own}
        level = next((f"; {told}" for verdict, told in _LEVELLED.items() if verdict in verdicts), "")
        if steps:
            alike.setdefault(f"after {steps} a string{level}", []).append(tokens_of(target))
    said = [f"Lengths in {join(kinds)} are {told}." for told, kinds in alike.items()]
    for e in reading.entries(results):
        if e.cut and e.steps_taken is not None:
            said.append(
                f"Time was up for {e.cut} of {e.strings} {e.target} strings at m\u00a0=\u00a0{e.m}, "
                f"after {e.steps_taken[0]} steps: they count as they stood, as lower bounds."
            )
    for line in reading.slopes(results):
        if line.steps_taken is not None and line.steps_taken[0] < line.steps_taken[1]:
            least, most = line.steps_taken
            said.append(f"The line of {line.target} targets goes through points of {least} to {most} steps.")
    return said


def _cut_short(results: AnyResults) -> list[str]:
    """Say so where most strings still grew when their steps ended: their number is one of steps, not of m."""
    found = [(e.still_growing, e.strings) for e in reading.entries(results) if e.still_growing is not None]
    growing, strings = (sum(counts) for counts in zip(*found, strict=True)) if found else (0, 0)
    # The frontier closes in until then, so four to six in ten grow this late even where more bring little.
    if not strings or 4 * growing <= 3 * strings:
        return []
    return [
        f"{growing} of {strings} strings still grew in the last tenth of their steps: these lengths are set "
        "by the number of steps and would likely rise with more (--max-steps)."
    ]


def _span(results: AnyResults) -> str:
    counts = [m for slope in reading.slopes(results) for m in slope.m]
    return f", over m\u00a0=\u00a0{min(counts)} to {max(counts)}" if counts else ""


def _limit(results: AnyResults) -> list[str]:
    best = reading.tightest(results)
    if not best:
        return ["No limit was computed."]
    first = best[0]
    said = (
        f"The tightest limit under the premise “{first.premise}” ({first.name}, packing: "
        f"{first.packing}) is {prose(first.tokens_per_vector)} tokens per vector"
        f"{_compared(results, first)}."
    )
    others = [f"{prose(limit.tokens_per_vector)} under “{limit.premise}”" for limit in best[1:]]
    return [
        f"{said} {_share(first)}".rstrip(),
        *([f"Under other premises the tightest limits are {join(others)}."] if others else []),
        *_outside(results),
    ]


def _outside(results: AnyResults) -> list[str]:
    """Say whether the vectors that were used lie where the premise *input* wants them."""
    found = reading.extents(results)
    if not found or not any(limit.premise == "input" for limit in reading.limits(results)):
        return []
    inside, strings = sum(one.inside_input_box for one in found), sum(one.strings for one in found)
    if inside == strings:
        return ["All vectors that were found lie inside the box of real inputs, as the premise “input” asks."]
    most = max(one.median_rms_over_inputs for one in found)
    return [
        f"{number(inside)} of the {number(strings)} sets of vectors that were found lie inside the box of "
        f"real inputs. A typical set is up to {prose(most)} times as long as real inputs, and limits under "
        "“input” do not bind those outside."
    ]


def _compared(results: AnyResults, limit: Limit) -> str:
    for target in sorted(reading.targets(results), key=lambda name: name != "random"):
        ratio = reading.ratio_of(reading.slope_of(results, target), limit)
        if ratio is not None and ratio.value is not None:
            return _ratio_words(ratio, ratio.value, target)
    return ""


def _ratio_words(ratio: Interval, value: float, target: str) -> str:
    told = interval(ratio.low, ratio.high, digits=2)
    measured = f"the measured slope on {tokens_of(target)}"
    if value < 1:
        return (
            f", only {number(value)} times ({told}) {measured}: the measurement lies above "
            "this limit, so its premise does not hold for these vectors and targets"
        )
    return f": {prose(value)} times ({told}) {measured}"


def _share(limit: Limit) -> str:
    """Say what the limit leaves at twice its length (ln share = ln P - n ln V, Theorem 4.5)."""
    log_v = limit.log_vocabulary
    if log_v is None or log_v <= 0:
        return ""
    n = math.ceil(2 * limit.tokens_per_vector)
    left = limit.log_packing_nats - n * log_v
    convention = limit.packing == "convention"
    supposed = "that premise and the convention hold" if convention else "that premise holds"
    return (
        f"If {supposed}, one vector reaches at most a share of {power(left)} of all sequences of twice that "
        f"length, {number(n)} tokens."
    )


def vocabulary(results: AnyResults) -> str:
    """Say how many rows the head has, how many ids are usable, and which of the two entered the limits."""
    rows, usable = results.model.rows, results.model.usable
    said = f"{number(rows)} rows, {number(usable)} usable"
    log_v = next((v for v in (one.log_vocabulary for one in reading.limits(results)) if v), None)
    if log_v is None:
        return f"{said}; no limit was computed, so neither entered C"
    for count, name in ((usable, "usable ids"), (rows, "rows")):
        if count > 1 and math.isclose(math.log(count), log_v, rel_tol=1e-6):
            return f"{said}; V = {number(count)} ({name}) entered C"
    return f"{said}; ln V = {number(log_v, 6)} entered C, which is neither of the two"


def n50_cell(record: Accessibility) -> tuple[str, str]:
    """Return n50 and its interval, or the verdict that stands for it, as a table shows them."""
    n50, points = record.n50, record.points
    told = interval(n50.low, n50.high)
    limit = number(record.limit)
    every = "half or more reached the length limit"
    if points is not None:
        every = _at_every_length(record, "every string reached at every length tried")
    first, last = (number(points.n[end]) if points and points.n else NOT_KNOWN for end in (0, -1))
    ends = [number(end) for end in (n50.low, n50.high)]
    cells = {
        "estimated": (number(n50.value), told),
        "above_limit": (f"above {limit}", every),
        "below_one": ("below 1", "fewer than half gave one token"),
        "separated": (f"between {ends[0]} and {ends[1]}", "all reached up to one length, none beyond"),
        "below_first": (f"below {first}", "fewer than half reached at every length tried"),
        "rises": ("not known", "the share reached rises with length: no curve does"),
        "one_length": ("not known", f"one length alone, {last} tokens: no curve"),
        "curve_does_not_fit": (told, "from the points alone: no curve fits them"),
    }
    return cells.get(verdict(record), (number(n50.value), "no answer"))


def _at_every_length(record: Accessibility, every: str) -> str:
    """Say ``every`` where all were reached at all lengths, else that n50 lies beyond those."""
    whole = record.points is None or all(share == 1 for share in record.points.share)
    return every if whole else "the curve falls beyond it"


def _after(entries: Sequence[Accessibility]) -> str:
    """Say after how many steps; empty where that is not known."""
    steps = steps_told(entries)
    return f" after {steps}" if steps else ""


def describe_n50(results: AnyResults) -> str:
    """Describe the figure of n50 against m for readers who do not see it."""
    points = [
        f"{record.target}, m = {record.m}: {n50_cell(record)[0]} ({n50_cell(record)[1]})" + _after([record])
        for record in reading.entries(results)
    ]
    lines = [
        f"{line.name}: {prose(line.tokens_per_vector)} tokens per vector"
        for line in reading.tightest(results)
    ]
    return f"n50 in tokens. {'; '.join(points) or 'No points'}. Limit lines: {'; '.join(lines) or 'none'}."


def describe_curves(found: Sequence[Accessibility], target: str) -> str:
    """Describe one panel of accessibility curves for readers who do not see it."""
    parts = [f"m = {record.m}: n50 {n50_cell(record)[0]}{_after([record])}" for record in found]
    return (
        f"Share of {target} target strings emitted in full, falling with their length n. {'; '.join(parts)}."
    )
