"""What a comparison says in sentences."""

from collections.abc import Sequence

from lmreach.report.compare.figures import by_kind
from lmreach.report.compare.stored import stored_of
from lmreach.report.compare.tables import grouped
from lmreach.report.kit.format import hundredths, interval, number, prose
from lmreach.report.study.words import join, tokens_of
from lmreach.results.compare import Comparison, ComparisonEntry, Difference
from lmreach.results.utilisation import utilisation

__all__ = ["headline", "title", "warning"]


def title(compared: Comparison) -> str:
    """Name what is compared."""
    studies = list(dict.fromkeys(entry.study for entry in compared.measured))
    return studies[0] if len(studies) == 1 else f"{len(studies)} studies beside one another"


def headline(compared: Comparison) -> list[str]:
    """Say the slopes, steepest first, in tokens and in bits, and how far the limits lie above them."""
    said = []
    for kind, series in by_kind(compared).items():
        entries = [one.entry for one in series if one.entry.slope.value is not None]
        entries.sort(key=lambda one: -(one.slope.value or 0.0))
        if entries:
            said += [_slopes(kind, entries), *_bits(entries), *_limits(entries)]
        else:
            said.append(f"No study has a slope with {tokens_of(kind)}: each has too few numbers of vectors.")
    said += _used(compared)
    published = list(dict.fromkeys(one.study for one in compared.entries if one.origin == "published"))
    if published:
        said.append(f"Published slopes of {number(len(published))} models stand beside, marked as published.")
    return said


def _slopes(kind: str, entries: Sequence[ComparisonEntry]) -> str:
    parts: list[str] = []
    for one in entries:
        low, high = one.slope.low, one.slope.high
        ends = "no interval" if low is None and high is None else interval(low, high)
        noun = "" if parts else f" {tokens_of(kind)}"
        parts.append(f"{number(one.slope.value)}{noun} in {one.study} ({ends})")
    steps = [entry.steps for entry in entries if entry.steps is not None]
    after = ""
    if steps:
        least, most = round(min(steps)), round(max(steps))
        after = f", after {number(most)} steps a string" if least == most else ""
        after = after or f", after {number(least)} to {number(most)} steps a string"
    return f"Each further vector adds {join(parts)}{after}."


def _used(compared: Comparison) -> list[str]:
    """Say which part of the stored bits comes back, at the fewest vectors, where sets differ."""
    found = stored_of(compared)
    fewest = [one for one in found if one.m == min(each.m for each in found) and one.n50.value is not None]
    fewest.sort(key=lambda one: one.counted)
    parts = []
    for one in fewest:
        bits = one.bits * one.free * one.m
        share = utilisation(one.n50, vocab=one.vocab, bits=bits).value or 0.0
        after = "" if one.steps is None else f", {number(one.steps)} steps"
        held = one.within.text or "any float32"
        parts.append(f"{hundredths(share)} of {number(round(bits))} within {held} ({one.group}{after})")
    vectors = (
        "" if not fewest else "one vector stores" if fewest[0].m == 1 else f"{fewest[0].m} vectors store"
    )
    return [f"Of the bits that {vectors}, n50 gives back {join(parts)}."] if parts else []


def _bits(entries: Sequence[ComparisonEntry]) -> list[str]:
    known = [one for one in entries if one.bits_per_coordinate is not None]
    if len(known) < 2:
        return []
    parts = [number(one.bits_per_coordinate) for one in known]
    return [
        f"That is {join(parts)} bits per coordinate of a vector, in this order; unlike tokens, bits compare "
        "across vocabularies."
    ]


def _limits(entries: Sequence[ComparisonEntry]) -> list[str]:
    ratios = [
        one.hidden.ratio.value
        for one in entries
        if one.hidden is not None and one.hidden.ratio is not None and one.hidden.ratio.value is not None
    ]
    if not ratios:
        return []
    times = join([prose(ratio) for ratio in ratios])
    return [f"The tightest limit under the premise “hidden” is {times} times the slope."]


def warning(one: Difference) -> str:
    """Say one difference, and which study has what."""
    return f"{one.words} {one.what[:1].upper()}{one.what[1:]}: {grouped(one)}."
