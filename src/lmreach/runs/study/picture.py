"""The first complete picture of a study: which kinds, how many m and how many steps fit into a time.

All of a picture takes the same steps, so that its points make a line. Where everything fits into a part of
the time, the rest is for doubling the steps: only that tells whether n50 had levelled off. Where it does not,
m goes, then further kinds, since three m of one kind still have a slope. Steps stay at 60 to 100 as long as
anything else can go: a block of tokens is won in some 60 steps whatever its length, so with 50 steps hardly
anything is reached (SmolLM2-135M, m = 1: 1 token with 50 steps, 24 with 100).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lmreach.runs.study.conditions import Condition

__all__ = ["STEPS", "Picture", "first_picture"]

STEPS = (20, 30, 40, 50, 60, 80, 100, 120, 150, 200, 240, 300, 400, 480, 600, 800, 1200)
"""Numbers of steps that are chosen among."""

ALL = 0


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a picture is to have at least (`ALL`: all that was asked for), in which part of the time."""

    share: float
    kinds: int
    vectors: int
    steps: int


_WISHES = (
    _Wish(0.5, ALL, ALL, 100),
    _Wish(1.0, ALL, ALL, 100),
    _Wish(1.0, ALL, 4, 60),
    _Wish(1.0, ALL, 3, 80),
    _Wish(1.3, 1, 3, 80),
    _Wish(1.5, 1, 2, 80),
    _Wish(1.3, 1, 1, 100),
    _Wish(1.3, 1, 1, 40),
    _Wish(1.8, 1, 1, 20),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """What is measured first.

    Attributes
    ----------
    conditions
        In the order in which they are run.
    seconds
        How long they are expected to take.
    """

    conditions: tuple[Condition, ...]
    seconds: float

    @property
    def steps(self) -> int:
        """Steps per string, the same throughout."""
        return self.conditions[0].steps


def first_picture(
    kinds: Sequence[str],
    ms: Sequence[int],
    cost: Callable[[Condition], float],
    seconds: float,
    *,
    most_steps: int,
    steps: int | None = None,
) -> Picture:
    """Return the picture that a time allows, at least the first kind at the smallest m.

    Parameters
    ----------
    kinds, ms
        All that was asked for; m in rising order.
    cost
        Seconds of a condition's first strings.
    seconds
        Time for the picture.
    most_steps
        Steps beyond which a first picture does not go.
    steps
        Steps that were asked for: then kinds and m alone are chosen.
    """
    choices = [one for one in STEPS if one <= most_steps] or [most_steps]
    for wish in _WISHES:
        for count in range(len(ms), (wish.vectors or len(ms)) - 1, -1):
            own = kinds[: wish.kinds or len(kinds)]
            enough = [s for s in choices if s >= wish.steps]
            whole = len(own) == len(kinds) and count == len(ms)
            # What is missing comes next, and then the doubling: a picture that lacks something has few steps.
            for each in [steps] if steps else enough[::-1] if whole else enough[:1]:
                picture = _picture(own, ms[:count], each, cost)
                if picture.seconds <= wish.share * seconds:
                    return picture
    return _picture(kinds[:1], ms[:1], steps or choices[0], cost)


def _picture(
    kinds: Sequence[str], ms: Sequence[int], steps: int, cost: Callable[[Condition], float]
) -> Picture:
    conditions = in_order([Condition(kind, m, steps) for kind in kinds for m in ms])
    return Picture(tuple(conditions), sum(map(cost, conditions)))


_FOR_A_LINE = 3


def in_order(conditions: Sequence[Condition]) -> list[Condition]:
    """Return conditions as they are served: of each kind three m first, for a slope, then the larger m."""
    kinds = list(dict.fromkeys(condition.target for condition in conditions))
    rank = {m: place for place, m in enumerate(sorted({condition.m for condition in conditions}))}

    def place(condition: Condition) -> tuple[bool, int, int]:
        late = rank[condition.m] >= _FOR_A_LINE
        own = kinds.index(condition.target)
        return (late, rank[condition.m], own) if late else (late, own, rank[condition.m])

    return sorted(conditions, key=place)
