"""Copying in sentences; every number in them stands in ``results.copying`` or beside it in the limits."""

from collections.abc import Sequence

from lmreach.report.kit.format import interval, number, percent, prose
from lmreach.results.base import Share
from lmreach.results.copying import Copying
from lmreach.results.limits import Limit, tightest

__all__ = ["BESIDE", "answer", "hidden_limit", "prompt_at", "sentences", "unit"]

BESIDE = (
    "What theory says of copying, and what not. The limit counts how many different outputs m prompt vectors "
    "can have: every output of up to C m tokens at most. A prompt that asks for n characters holds n vectors "
    "and more, so the limit for it is about C n tokens, C times what is asked for. Copying asks for one "
    "output per prompt, never for more outputs than there are prompts; no count forbids it at any length. "
    "Where it stops, the reason lies elsewhere: in how the model finds its place in the prompt. The two "
    "lengths are set side by side because both are falls, not because one explains the other."
)


def unit(copying: Copying, count: float = 2) -> str:
    """Name what strings are made of."""
    noun = "letter" if copying.alphabet.symbols == "letters" else "token"
    return noun if count == 1 else f"{noun}s"


def answer(copying: Copying) -> str:
    """Say the outcome in one sentence."""
    return _fall(copying)[0]


def sentences(copying: Copying, limits: Sequence[Limit] = ()) -> list[str]:
    """Say the result for readers who know no theory, in the order in which they would ask."""
    return [
        *_training(copying),
        *_fall(copying),
        *_symbols(copying),
        *_forced(copying),
        *_mistakes(copying),
        *_layouts(copying),
        *_attention(copying),
        *_checked(copying),
        *_beside(copying, limits),
    ]


def _training(copying: Copying) -> list[str]:
    training = copying.training
    if not training:
        return [f"Nothing was trained: the model was asked to copy in context, layout {copying.layout!r}."]
    who = f"{training.parent}, fine-tuned," if training.parent else f"A model of kind {training.kind}"
    task = "copy" if training.task == "copy" else f"answer {training.task} questions (n = {training.n}) on"
    text = (
        f"{who} ({_rough(training.parameters)} parameters) was trained to {task} strings of "
        f"{training.shortest} to {training.longest} {unit(copying)}"
    )
    curve = training.curve
    if not curve:
        return [f"{text}; training was stopped before its first test."]
    last, steps = curve[-1], f"{number(int(training.steps))} steps"
    right = f"{round(last.exact * last.strings)} of {number(int(last.strings))} held-out strings right"
    if training.reached:
        return [f"{text}, until all came out right: {right} after {steps}."]
    return [
        f"{text}. It has not reached the mark: {right} after {steps}. What follows is of a model that "
        "fails at the lengths it was trained on too."
    ]


def _fall(copying: Copying) -> list[str]:
    if not copying.lengths:
        return ["No length was measured."]
    n50, bracket = copying.n50, copying.fit.bracket
    if n50.verdict == "above_limit":
        return [_above(copying)]
    if n50.verdict == "below_first":
        return [_below(copying)]
    if n50.verdict == "separated" and bracket is not None:
        return [_between(copying, int(bracket[0]), int(bracket[1]))]
    if n50.verdict == "estimated" and n50.value is not None:
        return [_half(copying, n50.value)]
    return [f"n50 is {n50.words}."]


def _above(copying: Copying) -> str:
    lengths = copying.lengths
    every = all(one.counting(copying.counted).share == 1 for one in lengths)
    who = "All strings" if every else "At least half of the strings"
    return f"{who} {_whole(copying)} up to the longest tried, {_of(copying, lengths[-1].length)}."


def _below(copying: Copying) -> str:
    lengths = copying.lengths
    shortest = _of(copying, lengths[0].length)
    if any(one.counting(copying.counted).count for one in lengths):
        return f"Fewer than half of the strings come out whole, even of {shortest}."
    return f"No string comes out whole, not even of {shortest}."


def _whole(copying: Copying) -> str:
    return "come out whole" if copying.counted == "complete" else "are copied whole, end mark included,"


def _between(copying: Copying, low: int, high: int) -> str:
    text = f"Every string of {_of(copying, low)} is copied and none of {high}"
    to = copying.trained_to
    return f"{text}; the longest in training had {to}." if to else f"{text}."


def _half(copying: Copying, value: float) -> str:
    n50 = copying.n50
    text = (
        f"Half of the strings of {number(value)} {unit(copying)} {_whole(copying)} (n50; "
        f"{percent(n50.confidence)} interval {interval(n50.low, n50.high)})"
    )
    to = copying.trained_to
    if to:
        text += f", {prose(value / to)} times the longest in training"
    if copying.fit.width is not None:
        fall = f"{prose(copying.fit.width.value)} {unit(copying)}"
        text += f". The fall from nine in ten to one in ten takes {fall}"
    return f"{text}."


def _of(copying: Copying, count: int) -> str:
    return f"{count} {unit(copying, count)}"


def _symbols(copying: Copying) -> list[str]:
    alphabet = copying.alphabet
    if not alphabet.unseen:
        return []
    named = ", ".join(alphabet.unseen_letters)
    return [
        f"{alphabet.unseen} of {alphabet.tested} symbols unseen in training ({named}): where this "
        "fails, the symbols may be the reason, so it says nothing about length generalisation."
    ]


def _forced(copying: Copying) -> list[str]:
    if copying.decoding != "teacher_forced":
        return []
    return [
        "Teacher-forced: each character was predicted from the true answer so far, as in the published code. "
        "Exact match is what free-running decoding gives; per-character accuracy is higher."
    ]


def _mistakes(copying: Copying) -> list[str]:
    found = copying.mistakes
    if not found:
        return []
    strings = "1 string" if found.strings == 1 else f"{found.strings} strings"
    kinds = ", ".join(f"{_KINDS[kind]} {count}" for kind, count in found.kinds.items())
    low, middle, high = (prose(q) for q in found.place_quartiles)
    text = (
        f"In {strings} that went wrong, the first mistake comes after {middle} right {unit(copying)} (middle "
        f"half: {low} to {high}); what came out instead: {kinds}."
    )
    first = found.orders[0]
    if first.followed is None or first.near is None:
        return [text]
    return [
        text,
        _compared(
            first.followed,
            first.followed_by_chance or 0.0,
            "followed another occurrence of the preceding symbol in the prompt",
            "look-ups of what came before that found another place",
        ),
        _compared(
            first.near,
            first.near_by_chance or 0.0,
            "stood right beside the right one in the string",
            "slips by one place",
        ),
    ]


def _compared(seen: Share, chance: float, what: str, meaning: str) -> str:
    """Say how often wrong symbols did something, beside chance, and what follows from it."""
    text = (
        f"Of {seen.of} wrong symbols {seen.count} ({_part(seen.share)}) {what}; a random wrong "
        f"symbol does in {_part(chance)}"
    )
    if seen.low <= chance:
        return f"{text}: no sign of {meaning}."
    many = "most mistakes look like" if seen.share >= 0.5 else "some mistakes look like"
    return f"{text}: {many} {meaning}."


_KINDS = {
    "symbol": "another symbol",
    "ended early": "the end too early",
    "did not end": "more after the last one",
    "other token": "another token",
}


def _layouts(copying: Copying) -> list[str]:
    found = copying.layouts
    if len(found) < 2:
        return []
    usual, others = found[0], found[1:]
    prompts = [size for one in found for size in one.prompts[-1:]]
    length = usual.lengths[-1]
    differing = [one for one in others if one.p_value < 0.05 / len(others)]
    text = (
        f"The same strings were asked for in {len(found)} prompt layouts, with prompts of {min(prompts)} to "
        f"{max(prompts)} positions for strings of {length} {unit(copying)}."
    )
    if not differing:
        return [f"{text} None differs from {usual.layout!r} beyond chance (McNemar's test, 5 % over all)."]
    named = ", ".join(
        f"{one.layout!r} ({one.only_here} strings come out there alone, {one.only_usual} only in "
        f"{usual.layout!r})"
        for one in differing
    )
    same = len(others) - len(differing)
    rest = "" if not same else f" The other {same} {'does' if same == 1 else 'do'} not."
    return [
        f"{text} Beyond chance (McNemar's test, 5 % over all) these differ from {usual.layout!r}: "
        f"{named}.{rest}"
    ]


def _attention(copying: Copying) -> list[str]:
    said = []
    for one in copying.attention:
        text = (
            f"At {_of(copying, one.length)}, head {one.head + 1} of layer {one.layer + 1} has the "
            f"largest weight on the character to be copied: {prose(one.weight)} on average (equal "
            f"attention: {prose(one.uniform)})"
        )
        if one.at_mistakes is not None:
            text += f", and {prose(one.at_mistakes)} at the {_times(one.mistakes)} first wrong"
        said.append(f"{text}.")
    return said


def _times(count: int) -> str:
    return "character that came out" if count == 1 else f"{count} characters that came out"


def _checked(copying: Copying) -> list[str]:
    checked = copying.checked
    if not checked or checked.same == checked.strings:
        return []
    return [
        f"{checked.strings - checked.same} of {checked.strings} strings of {checked.length} came "
        "out differently at batch 1: two logits lie within rounding of each other."
    ]


def _beside(copying: Copying, limits: Sequence[Limit]) -> list[str]:
    per, at = hidden_limit(limits), copying.n50.value
    if per is None or at is None:
        return []
    prompt = prompt_at(copying, at)
    text = (
        f"Beside it, the limit from the weights: {prose(per)} tokens per vector (premise hidden), so "
        f"{_rough(per * prompt)} tokens for the {prose(prompt)} vectors of a prompt at n50"
    )
    crammed = [one for one in copying.cramming if one.n50.value is not None]
    if crammed:
        told = ", ".join(f"{prose(one.n50.value)} at m = {one.m}" for one in crammed)
        text += f". Optimised vectors make this very model emit random strings of {told} tokens"
    return [f"{text}."]


def hidden_limit(limits: Sequence[Limit]) -> float | None:
    """Return tokens per vector of the tightest proved limit with premise hidden, if there is one."""
    limit = tightest(limits, "hidden")
    return None if limit is None else limit.tokens_per_vector


def prompt_at(copying: Copying, n: float) -> float:
    """Return the prompt positions for strings of n, between measured lengths if need be."""
    known = sorted((one.length, one.prompt) for one in copying.lengths)
    before = [pair for pair in known if pair[0] <= n] or known[:1]
    after = [pair for pair in known if pair[0] > n] or known[-1:]
    (a, at), (b, to) = before[-1], after[0]
    return float(at + (to - at) * (n - a) / (b - a)) if b != a else float(at)


def _part(share: float) -> str:
    return f"{100 * share:.0f} %"


def _rough(value: float) -> str:
    return number(round(value)) if value < 1e6 else f"{value / 1e6:.3g} million"
