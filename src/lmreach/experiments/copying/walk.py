"""Which length to measure next: up a grid until nothing comes out right any more, then into the fall.

The decision depends on what was measured alone, so a stopped run that goes on decides as one that was not.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

__all__ = ["Counts", "grid", "next_length", "skipped"]

Counts = Mapping[int, tuple[int, int]]
"""Length -> (answers right, strings)."""

_BEYOND = (1.125, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_PATIENCE = 2  # lengths in a row without any right answer before longer ones are left out


def grid(trained_to: int | None, longest: int) -> list[int]:
    """Return the lengths to begin with, ascending, up to ``longest``.

    Parameters
    ----------
    trained_to
        Longest string in training: lengths below it in quarters, above it in growing steps. None (nothing was
        trained on copying): powers of two.
    """
    if trained_to is None:
        found = {2**k for k in range(longest.bit_length())}
    else:
        inside = {1, *(max(1, round(trained_to * share)) for share in (0.25, 0.5, 0.75, 1.0))}
        found = inside | {math.ceil(trained_to * times) for times in _BEYOND}
    return sorted(n for n in found | {longest} if n <= longest)


def next_length(
    done: Counts, lengths: Sequence[int], *, trained_to: int | None, tolerance: float = 0.04
) -> int | None:
    """Return the length to measure next, or None when the fall is known well enough.

    Parameters
    ----------
    done
        What was measured.
    lengths
        The grid, ascending; a length that was measured before counts as done.
    trained_to
        Up to it every length of the grid is measured, whatever comes out, and so is the last length.
    tolerance
        The two lengths around n50 end up closer than this share of the longer one (or 1 apart), unless the
        share of right answers is within one over the root of the strings of 1/2 at both: then the fall is
        gradual, and more lengths would tell less than more strings.
    """
    for n in lengths:
        if n in done:
            continue
        if not (_hopeless(done, n) and (trained_to is None or n > trained_to)):
            return n
    last = lengths[-1]
    if trained_to is not None and last not in done:
        return last  # the far end is worth one look
    return _middle(done, tolerance)


def skipped(done: Counts, lengths: Sequence[int]) -> list[int]:
    """Return the lengths of the grid that were left out."""
    return [n for n in lengths if n not in done]


def _hopeless(done: Counts, n: int) -> bool:
    """Whether nothing came out right at the last lengths before ``n``."""
    before = [done[m][0] for m in sorted(done) if m < n][-_PATIENCE:]
    return len(before) == _PATIENCE and not any(before)


def _middle(done: Counts, tolerance: float) -> int | None:
    """Return a length inside the first fall through one half, None where it is narrow or there is none."""
    order = sorted(done)
    for left, right in pairwise(order):
        above, below = (2 * done[n][0] >= done[n][1] for n in (left, right))
        if above and not below:
            wide = right - left > max(1, tolerance * right)
            gradual = _near_half(*done[left]) and _near_half(*done[right])
            return (left + right) // 2 if wide and not gradual else None
    return None


def _near_half(count: int, strings: int) -> bool:
    return bool(abs(count / strings - 0.5) <= strings**-0.5)
