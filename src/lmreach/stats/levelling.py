"""Whether n50 had levelled off with the optimiser's steps."""

from typing import Literal

from lmreach.stats.accessibility import HalfLength

__all__ = ["Levelling", "levelling"]

Levelling = Literal["converged", "still growing", "not tested"]


def levelling(fewer: HalfLength | None, more: HalfLength) -> Levelling:
    """Say whether twice the steps moved n50 by less than it is known.

    Parameters
    ----------
    fewer
        n50 of the same strings at half the steps; None: they were not run.
    more
        n50 at the steps that count.

    Returns
    -------
    str
        ``converged``: n50 moved by less than half the width of its 95 % interval. ``still growing``: by
        more. ``not tested``: one of the two, or the interval's end, is not known.
    """
    if fewer is None or fewer.value is None or more.value is None or more.low is None or more.high is None:
        return "not tested"
    moved = abs(more.value - fewer.value)
    return "converged" if moved <= 0.5 * (more.high - more.low) else "still growing"
