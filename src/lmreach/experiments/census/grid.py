"""Every prompt of a finite grid, in numbered blocks: q values per coordinate, d coordinates, m vectors.

A prompt is a number in mixed radix: digit k of prompt i, in base q, says which value coordinate k has. So any
block can be made by itself, and a census can stop and go on anywhere.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from jaxtyping import Float

from lmreach.errors import InputError, problem
from lmreach.maths import checks

__all__ = ["Grid", "Order"]

Order = Literal["all", "sorted"]
_LARGEST = 2**62  # numbers of prompts are int64


@dataclass(frozen=True, eq=False)
class Grid:
    """The prompts of a census.

    Attributes
    ----------
    values
        The q values that a coordinate can take, shape (q,), distinct.
    width, m
        d and the number of prompt vectors.
    order
        ``all``: every sequence of vectors, q^(d m) prompts. ``sorted``: one order of every multiset of the
        vectors before the last, then the last, q^d C(q^d + m - 2, m - 1) prompts: all there is to see for a
        model of one block without positions, whose last position asks and whose others are averaged over.
    """

    values: Float[np.ndarray, " q"]
    width: int
    m: int
    order: Order = "all"

    @classmethod
    def even(cls, q: int, extent: float, width: int, m: int, order: Order = "all") -> Self:
        """Return the grid of q evenly spaced values from -extent to extent.

        Raises
        ------
        InputError
            For q below 2, an extent that is not above 0, m below 1, or more prompts than an int64 counts.
        """
        levels = np.linspace(-1.0, 1.0, checks.whole("values per coordinate", q, least=2))
        grid = cls(levels * checks.positive("extent", extent), width, checks.whole("m", m), order)
        if grid.prompts > _LARGEST:
            got = f"{q}^({width} x {m}), about 10^{math.log10(grid.prompts):.0f}"
            raise InputError(problem("prompts that can be counted", got, "use fewer values or vectors"))
        return grid

    @property
    def q(self) -> int:
        """Values per coordinate."""
        return len(self.values)

    @property
    def prompts(self) -> int:
        """How many prompts there are, exactly."""
        points: int = self.q**self.width
        return (
            points * math.comb(points + self.m - 2, self.m - 1) if self.order == "sorted" else points**self.m
        )

    def block(self, start: int, count: int) -> Float[np.ndarray, "count m d"]:
        """Return prompts ``start``, ``start`` + 1, ... in float32; fewer at the end of the grid."""
        count = max(0, min(count, self.prompts - start))
        points = self._points(start, count)
        digits = points[..., None] // self.q ** np.arange(self.width) % self.q
        return np.asarray(self.values[digits], dtype=np.float32)

    def _points(self, start: int, count: int) -> np.ndarray:
        """Return the number of each vector's grid point, shape (count, m)."""
        points = self.q**self.width
        if self.order == "all":
            numbers = np.arange(start, start + count, dtype=np.int64)
            return np.asarray(numbers[:, None] // points ** np.arange(self.m) % points)
        first, stop = start // points, -(-(start + count) // points)
        some = itertools.combinations_with_replacement(range(points), self.m - 1)
        flat = itertools.chain.from_iterable(itertools.islice(some, first, stop))
        sets = np.fromiter(flat, dtype=np.int64, count=(stop - first) * (self.m - 1))
        sets = sets.reshape(stop - first, self.m - 1).repeat(points, axis=0)
        last = np.tile(np.arange(points), stop - first)
        skipped = start - first * points
        return np.column_stack([sets, last])[skipped : skipped + count]
