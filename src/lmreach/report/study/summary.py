"""The first screen of a study: one sentence, four numbers with their intervals, and what the run lacks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lmreach.report.kit import reading
from lmreach.report.kit.format import interval, number, percent, prose
from lmreach.report.kit.tile import Tile
from lmreach.report.study import stepped, words
from lmreach.results import Interval
from lmreach.results.limits import Limit
from lmreach.results.study import Accessibility, Slope, StudyResults

__all__ = ["FOR_AN_INTERVAL", "Notice", "Tile", "answer", "notices", "tiles"]

FOR_AN_INTERVAL = 6
"""Strings below which a 95 % interval of n50 has an open end, whatever the strings do."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a reader must know before the numbers: a bold beginning, the rest, and a command or nothing."""

    lead: str
    text: str
    command: str = ""


def answer(results: StudyResults) -> str:
    """Say the outcome in one sentence of plain words."""
    first = _first(results)
    if first is None:
        return f"This run did not measure what {results.model.name} can be made to emit."
    vectors = "One prompt vector" if first.m == 1 else f"{first.m} prompt vectors"
    enough = "is" if first.m == 1 else "are"
    name, kind = results.model.name, _strings(first.target)
    n50 = first.n50
    match words.verdict(first):
        case "estimated" if n50.value is not None:
            said = f"make {name} emit half of the {kind} of {prose(n50.value)} tokens exactly"
        case "above_limit":
            said = f"make {name} emit at least half of the {kind} of {number(first.limit)} tokens exactly"
        case "separated" | "curve_does_not_fit" if n50.low is not None and n50.high is not None:
            between = f"{number(n50.low, 3)} to {number(n50.high, 3)}"
            said = f"make {name} emit half of the {kind} of some length from {between} tokens exactly"
        case "below_one":
            return f"{vectors} made {name} emit even the first token of fewer than half of the {kind}."
        case _:
            return f"How long {kind} may be that {name} emits from {vectors.lower()} is not known."
    slope = reading.slope_of(results, first.target)
    more = "" if slope is None else f"; each further vector adds {prose(slope.slope.value)} tokens"
    return f"{vectors} {enough} enough to {said}{more}{_after(_line(results, first, slope))}."


def _after(entries: Sequence[Accessibility]) -> str:
    """Say after how many steps, and at a glance whether more would reach further."""
    steps, level = stepped.steps_told(entries), stepped.level(entries)
    return f" (after {', '.join(filter(None, (steps, level)))})" if steps else ""


def _line(results: StudyResults, first: Accessibility, slope: Slope | None) -> list[Accessibility]:
    """Return the first condition, and those that its kind's line goes through."""
    counts = () if slope is None else slope.m
    own = [e for e in reading.entries(results) if e.target == first.target and e.m in counts]
    return own if first in own else [first, *own]


def tiles(results: StudyResults) -> tuple[Tile, ...]:
    """Return the tiles: the first vector, each further one, what theory allows, how far apart they are."""
    first = _first(results)
    slope = None if first is None else reading.slope_of(results, first.target)
    limit = _limit(results)
    return tuple(
        tile
        for tile in (
            None if first is None else _first_tile(first),
            None if first is None else _slope_tile(results, first, slope),
            None if limit is None else _limit_tile(results, limit),
            None if limit is None or first is None else _ratio_tile(results, first, slope, limit),
        )
        if tile is not None
    )


def notices(results: StudyResults) -> tuple[Notice, ...]:
    """Return what must be known before the numbers: too few strings, or an early end of the run."""
    again = "lmreach resume RUN --budget 10m"
    said = []
    if results.provenance.interrupted:
        said.append(Notice("This run was interrupted.", "It shows what was finished by then.", again))
    thin = [entry for entry in reading.entries(results) if _is_thin(entry)]
    left = 0 if results.provenance.interrupted else _left_by_the_budget(results)
    if thin:
        fewest = min(entry.finished for entry in thin)
        noun = "string" if fewest == 1 else "strings"
        ended = ", where the budget ended this run" if left else ""
        text = f"{fewest} {noun} a point{ended}: an interval needs {FOR_AN_INTERVAL}. Hollow marks have none."
        said.append(Notice("Preliminary:", text, again))
    elif left:
        text = f"{left:,} of the strings that were asked for are left: see what was not done."
        said.append(Notice("The budget ended this run.", text, again))
    return tuple(said)


_STRINGS_LEFT = re.compile(r"(\d+) (?:strings|trials) of .+ m=\d+")


def _left_by_the_budget(results: StudyResults) -> int:
    """Return the strings that the budget left undone, without those that were not needed."""
    left = (_STRINGS_LEFT.fullmatch(one.what) for one in results.not_done)
    return sum(int(found[1]) for found in left if found)


def _is_thin(entry: Accessibility) -> bool:
    return entry.trials is None and 0 < entry.finished < FOR_AN_INTERVAL


def _first(results: StudyResults) -> Accessibility | None:
    """Return the condition to begin with: random targets before others, the fewest vectors."""
    measured = [entry for entry in reading.entries(results) if entry.finished]
    return min(measured, key=lambda entry: (entry.target != "random", entry.m), default=None)


def _limit(results: StudyResults) -> Limit | None:
    """Return the tightest limit that binds the vectors used, whatever they are: that of their format."""
    held = reading.tightest(results)
    return next((one for one in held if one.premise == "format"), held[0] if held else None)


def _strings(target: str) -> str:
    named = {
        "random": "random strings",
        "self": "strings of its own text",
        "words": "strings of random words",
    }
    return named.get(target, f"strings of {target}")


def _basis(entries: Sequence[Accessibility]) -> str:
    """Say how many strings a number rests on, and after how many steps."""
    strings = sorted({entry.finished for entry in entries})
    some = f"{strings[0]}" if len(strings) == 1 else f"{strings[0]} to {strings[-1]}"
    return ", ".join(filter(None, (f"{some} strings", stepped.steps_with_level(entries))))


def _first_tile(first: Accessibility) -> Tile:
    value, told = words.n50_cell(first)
    from_vectors = "one vector" if first.m == 1 else f"{first.m} vectors"
    level = percent(first.n50.confidence) if first.n50.confidence else ""
    shown = f"{level} interval {told}" if words.verdict(first) == "estimated" and level else told
    return Tile(f"From {from_vectors}", value, f"{first.target} tokens (n50)", shown, _basis([first]))


def _slope_tile(results: StudyResults, first: Accessibility, slope: Slope | None) -> Tile:
    label, unit = "Each further vector adds", f"{first.target} tokens (slope)"
    if slope is None:
        why = next((one.slope.words for one in reading.slopes(results) if one.target == first.target), "")
        return Tile(label, "not known", unit, "", why or "this needs two numbers of vectors with an n50")
    mine = _line(results, first, slope)
    counts = f"m = {', '.join(map(str, slope.m))}; {_basis(mine)}" if mine else ""
    return Tile(label, number(slope.slope.value), unit, _interval(slope.slope), counts)


def _limit_tile(results: StudyResults, limit: Limit) -> Tile:
    others = [one for one in reading.tightest(results) if one.premise != limit.premise]
    less = "; ".join(f"{prose(one.tokens_per_vector)} if “{one.premise}” holds" for one in others)
    basis = f"{less} (see Limits)" if less else f"premise: {limit.premise}"
    return Tile(
        "Theory allows at most", number(limit.tokens_per_vector), "tokens per vector", limit.name, basis
    )


def _ratio_tile(
    results: StudyResults, first: Accessibility, slope: Slope | None, limit: Limit
) -> Tile | None:
    ratio = reading.ratio_of(slope, limit)
    if ratio is not None and ratio.value is not None:
        basis = "; ".join(
            filter(None, (f"limit: {limit.name}", stepped.steps_told(_line(results, first, slope))))
        )
        return Tile("How far apart", f"{number(ratio.value)} ×", "limit over slope", _interval(ratio), basis)
    plain = first.ratio_to_limits.get(limit.name)
    if plain is None:
        return None
    basis = "; ".join(filter(None, (limit.name, stepped.steps_told([first]))))
    return Tile("How far apart", f"{number(plain)} ×", f"limit over n50 / m at m = {first.m}", "", basis)


def _interval(estimate: Interval) -> str:
    if estimate.low is None and estimate.high is None:
        return "no interval: too few strings"
    level = percent(estimate.confidence) if estimate.confidence else "95 %"
    return f"{level} interval {interval(estimate.low, estimate.high)}"
