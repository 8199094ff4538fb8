"""The exact census: all prompts of a finite grid are decoded, distinct outputs of every length counted.

Nothing is bounded and nothing is sampled. What the theory says of any model (Meyer et al. 2026) can be
looked at: the count never exceeds the number of prompts nor V^n (Theorem 4.5), every sequence is reachable
up to a length that grows linearly with m, and beyond it the share decays by a factor V per token (Corollary
4.6).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from lmreach.config import Bos
from lmreach.errors import InputError, problem
from lmreach.experiments.census.count import Distinct, LengthCounts, Packing, measure
from lmreach.experiments.census.decode import Block, decode_block, settle
from lmreach.experiments.census.grid import Grid
from lmreach.experiments.census.missing import Missing, Present, find_missing
from lmreach.experiments.census.sketch import Estimate, Sketches
from lmreach.models.loaded import LoadedModel

__all__ = ["GridCensus", "census_grid", "check_size", "input_extent"]

# Prompts decoded at once. Measured on tiny models: 4096 rows stay in cache (6 s per 10^6 prompts of 12
# tokens at d = 3, one layer, one thread), 65,536 take half as long again.
_BLOCK = 4096
_SETTLED_PER_BLOCK = 16  # close rows decoded again at batch 1; each costs as much as some hundred in a batch
_PRESENT_LIMIT = 1 << 22  # sequences of one length of which it is remembered whether each came


@dataclass(frozen=True, slots=True)
class GridCensus:
    """Counts over all prompts of one grid.

    Attributes
    ----------
    q, m, n, vocab, order, extent
        Values per coordinate, prompt vectors, tokens, V (all rows that can win), order of vectors, and the
        largest value of a coordinate.
    width
        d.
    prompts
        Decoded; all of the grid.
    lengths
        Exact counts for every length; empty for a sketch.
    estimates
        Estimates with their error; empty unless a sketch was asked for.
    tied, close, settled
        Prompts with a tie, with two logits within rounding, and how many of these were decoded again at
        batch 1.
    missing
        Of one length, which sequences never came; None for a sketch or where V^n is too large for every n.
    """

    q: int
    width: int
    m: int
    n: int
    vocab: int
    order: str
    extent: float
    prompts: int
    lengths: tuple[LengthCounts, ...]
    estimates: tuple[Estimate, ...]
    tied: int
    close: int
    settled: int
    missing: Missing | None
    seconds: float

    @property
    def exact(self) -> bool:
        """Whether the counts are exact."""
        return not self.estimates

    @property
    def fully_reachable(self) -> int:
        """Longest length at which every one of the V^n sequences came, 0 if not even every token does."""
        full = [one.length for one in self.lengths if one.distinct == self.vocab**one.length]
        return max(full, default=0)

    @property
    def half_reachable(self) -> int:
        """Longest length at which at least half of the V^n sequences came (n50 of this census), 0 if none."""
        half = [one.length for one in self.lengths if 2 * one.distinct >= self.vocab**one.length]
        return max(half, default=0)

    def log_bound(self, length: int) -> float:
        """Return ln min(prompts, V^length), in nats: what no census can exceed (Theorem 4.5)."""
        return min(math.log(self.prompts), length * math.log(self.vocab))


def input_extent(model: LoadedModel) -> float:
    """Return the largest |coordinate| of real input vectors."""
    return float(model.input_vectors(torch.from_numpy(model.usable_ids)).abs().max())


def check_size(grids: Sequence[Grid], most: int) -> None:
    """Refuse grids of more prompts than ``most`` in all, before anything is decoded.

    Raises
    ------
    InputError
        With the number, and what to do.
    """
    total = sum(grid.prompts for grid in grids)
    if total > most:
        parts = ", ".join(f"m = {g.m}: {g.prompts:,}" for g in grids)
        raise InputError(
            problem(
                f"at most {most:,} prompts",
                f"{total:,} ({parts})",
                "use fewer values or vectors, or allow more with --max-prompts",
            )
        )


def census_grid(
    model: LoadedModel,
    grid: Grid,
    n: int,
    *,
    bos: Bos = "none",
    sketch: bool = False,
    memory_rows: int = 1 << 23,
    folder: Path | None = None,
    missing: int = 1000,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> GridCensus:
    """Decode every prompt of a grid and count the distinct outputs of each length 1 .. n.

    Parameters
    ----------
    grid
        All prompts, see `Grid`.
    n
        Tokens decoded after each.
    bos
        Where a start token stands.
    sketch
        Estimate distinct counts in fixed memory instead of counting them.
    memory_rows, folder
        See `lmreach.experiments.census.count.Distinct`.
    missing
        Most missing sequences to list.
    on_progress
        Told prompts done and in all, after each block.

    Raises
    ------
    InputError
        For a grid of another width, n below 1, or m + n beyond the model's context.
    ModelError
        If a logit is not finite.
    """
    begun = time.monotonic()
    _check(model, grid, n, bos)
    packing = Packing(model.facts.rows, n)
    sketches = Sketches(packing) if sketch else None
    present = None if sketch else Present.longest(model.facts.rows, n, _PRESENT_LIMIT)
    tied = close = settled = 0
    with Distinct(packing, memory_rows=memory_rows, folder=folder) as distinct:
        for start in range(0, grid.prompts, _BLOCK):
            rows = min(_BLOCK, grid.prompts - start)
            block, again = _decoded(model, grid, start, rows, n, bos)
            settled += again
            tied, close = tied + int(block.tied.sum()), close + int(block.close.sum())
            (sketches or distinct).add(block.ids[:rows])
            if present is not None:
                present.add(block.ids[:rows])
            on_progress(start + rows, grid.prompts)
        lengths = () if sketch else measure(distinct.chunks(), packing)
    return GridCensus(
        q=grid.q,
        width=grid.width,
        m=grid.m,
        n=n,
        vocab=model.facts.rows,
        order=grid.order,
        extent=float(np.abs(grid.values).max()),
        prompts=grid.prompts,
        lengths=lengths,
        estimates=sketches.estimates() if sketches is not None else (),
        tied=tied,
        close=close,
        settled=settled,
        missing=None if present is None else find_missing(present, missing),
        seconds=time.monotonic() - begun,
    )


def _decoded(model: LoadedModel, grid: Grid, start: int, rows: int, n: int, bos: Bos) -> tuple[Block, int]:
    """Return what the prompts from ``start`` on give, and how many of them were decoded again one by one."""
    vectors = _full(torch.from_numpy(grid.block(start, _BLOCK)))
    block = decode_block(model, vectors.to(model.device), n, bos=bos)
    block.close[rows:] = block.tied[rows:] = False
    return block, settle(model, vectors, block, n, _SETTLED_PER_BLOCK, bos)


def _full(vectors: Float[torch.Tensor, "rows m d"]) -> Float[torch.Tensor, "block m d"]:
    """Fill the last block up with copies of its first row: every batch is of one size and rounds alike."""
    short = _BLOCK - len(vectors)
    return torch.cat([vectors, vectors[:1].expand(short, -1, -1)]) if short else vectors


def _check(model: LoadedModel, grid: Grid, n: int, bos: Bos) -> None:
    if grid.width != model.facts.width:
        got = f"one of width {grid.width}"
        raise InputError(problem(f"a grid of width {model.facts.width}", got, "make it for this model"))
    if n < 1:
        raise InputError(problem("n of at least 1", str(n), "ask for a token"))
    need, context = grid.m + n + (bos != "none"), model.facts.context
    if context is not None and need > context:
        got = f"{need} for m = {grid.m}, n = {n}"
        raise InputError(problem(f"at most {context} positions, the model's context", got, "lower m or n"))
