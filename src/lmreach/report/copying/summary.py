"""The first screen of copying: how long a string may be, how sharp the fall is, and the limit beside it."""

from collections.abc import Sequence

from lmreach.report.copying.words import hidden_limit, unit
from lmreach.report.kit.format import interval, number, percent, prose
from lmreach.report.kit.tile import Tile
from lmreach.results.copying import Copying
from lmreach.results.limits import Limit

__all__ = ["tiles"]


def tiles(copying: Copying, limits: Sequence[Limit]) -> tuple[Tile, ...]:
    """Return the tiles: n50, the width of the fall, training, and the limit beside it."""
    found = [_half(copying)]
    width = copying.fit.width
    if width is not None and width.value is not None:
        told = interval(width.low, width.high)
        found.append(
            Tile("The fall takes", prose(width.value), unit(copying), told, "from nine in ten to one in ten")
        )
    if copying.trained_to is not None:
        found.append(Tile("Longest in training", number(copying.trained_to), unit(copying), "", ""))
    per = hidden_limit(limits)
    if per is not None:
        basis = "premise hidden; it bounds what vectors can choose, not how far a copy goes"
        found.append(Tile("Theory allows at most", prose(per), "tokens per vector", "", basis))
    return tuple(found)


def _half(copying: Copying) -> Tile:
    n50, lengths = copying.n50, copying.lengths
    strings = sorted({one.counting(copying.counted).of for one in lengths})
    basis = f"{strings[0]} to {strings[-1]} strings a length" if len(strings) > 1 else ""
    basis = f"{strings[0]} strings a length" if len(strings) == 1 else basis
    label = f"Half of the strings of so many {unit(copying)}"
    if n50.value is not None:
        told = f"{percent(n50.confidence)} interval {interval(n50.low, n50.high)}" if n50.confidence else ""
        return Tile(label, number(n50.value), "are copied whole (n50)", told, basis)
    if n50.low is not None and n50.high is not None:
        between = f"{number(n50.low)} to {number(n50.high)}"
        return Tile(label, between, "are copied whole (n50)", "all of the shorter, none of the longer", basis)
    longest = number(lengths[-1].length) if lengths else "no length"
    value = {"above_limit": f"above {longest}", "below_first": "below the shortest tried"}
    return Tile(label, value.get(n50.verdict, "not known"), "are copied whole (n50)", "", basis)
