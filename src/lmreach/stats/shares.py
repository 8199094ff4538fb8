"""Shares of cells from counts, with exact intervals: a cell without a hit has an upper limit, not share zero.

Symbols: V cells, N states, c_t hits of cell t, share v_t = c_t / N.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from lmreach.errors import InputError, problem
from lmreach.stats.accessibility import check_confidence
from lmreach.stats.held_out import concentration, halves
from lmreach.stats.survival import clopper_pearson

__all__ = ["CellShares", "Largest", "ShareSummary", "cell_shares", "unhit_limit"]

_RANKS = 60
# Splits of the draws are the same for the same counts.
_SPLIT_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class CellShares:
    """Share of every cell with its interval.

    Attributes
    ----------
    samples
        N.
    counts
        c_t, shape (V,).
    share, low, high
        c_t / N and its Clopper-Pearson interval, shape (V,); for a cell without a hit 0, 0 and the one-sided
        upper limit at the same confidence.
    confidence
        Of the intervals and of the limit.
    """

    samples: int
    counts: Int[np.ndarray, " V"]
    share: Float[np.ndarray, " V"]
    low: Float[np.ndarray, " V"]
    high: Float[np.ndarray, " V"]
    confidence: float

    def words(self, cell: int) -> str:
        """Return one share as a person would say it."""
        level = f"{self.confidence * 100:g} %"
        if self.counts[cell] == 0:
            return f"no hit in {self.samples:,}: below {self.high[cell]:.1e} ({level})"
        return f"{self.share[cell]:.3g} ({level} interval {self.low[cell]:.3g} to {self.high[cell]:.3g})"

    def log_words(self, cell: int) -> str:
        """Return ln v_t in nats, or "below" a limit where no hit says how small it is."""
        if self.counts[cell] == 0:
            return f"below {math.log(self.high[cell]):.2f}"
        return f"{math.log(self.share[cell]):.2f}"

    def summary(self) -> "ShareSummary":
        """Return the numbers about all cells together."""
        hit = int((self.counts > 0).sum())
        held = concentration(self.counts, np.random.default_rng(_SPLIT_SEED))
        singles, doubles = int((self.counts == 1).sum()), int((self.counts == 2).sum())
        return ShareSummary(
            cells=self.counts.size,
            samples=self.samples,
            hit=hit,
            coverage=hit / self.counts.size,
            hit_once=singles,
            hit_twice=doubles,
            unseen_mass=singles / self.samples,
            unhit_limit=unhit_limit(self.samples, self.confidence),
            gini=held.gini,
            holders_80=held.holders_80,
            share_holding_80=held.holders_80 / self.counts.size,
            confidence=self.confidence,
            ranks=_rank_plot(self),
        )

    def largest(self, most: int) -> "Largest | None":
        """Return the cells with the most hits in one half of the draws, with their shares in the other half.

        Cells are not picked and measured by the same draws: the luckiest would look larger than they are.
        None where a half has no draws.
        """
        picked, measured = halves(self.counts, np.random.default_rng(_SPLIT_SEED))
        if not (picked.any() and measured.any()):
            return None
        order = np.argsort(-picked, kind="stable")[:most]
        cells = order[picked[order] > 0]
        return Largest(cells, cell_shares(measured, confidence=self.confidence))


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """Cells that one half of the draws picked, the largest first, and their shares from the other half."""

    cells: Int[np.ndarray, " k"]
    shares: CellShares


@dataclass(frozen=True, slots=True)
class ShareSummary:
    """What the shares look like together.

    Attributes
    ----------
    cells, samples, hit
        V, N, and the number of cells with a hit.
    coverage
        hit / V.
    hit_once, hit_twice
        Cells with one and with two hits.
    unseen_mass
        Good-Turing estimate of the probability that the next state falls into a cell without a hit so far:
        cells hit once / N (Good 1953).
    unhit_limit
        One-sided upper limit of the share of a single cell without a hit: 1 - (1 - confidence)^(1/N).
    gini
        Of the shares, at least: 0 if all are equal, (V - 1) / V if one cell holds all.
    holders_80, share_holding_80
        Number of cells that hold 80 % of the measure, at most, and that number / V. Both from cells ranked
        by one half of the states and measured with the other (`stats.held_out`).
    ranks
        Log-spaced bands of ranks (1 is the largest cell) by the hits in one half, each at its middle rank,
        with the mean share of its cells and interval from the other half; for a plot.
    """

    cells: int
    samples: int
    hit: int
    coverage: float
    hit_once: int
    hit_twice: int
    unseen_mass: float
    unhit_limit: float
    gini: float
    holders_80: int
    share_holding_80: float
    confidence: float
    ranks: tuple[dict[str, float], ...]

    def words(self) -> str:
        """Return the result as a person would say it."""
        text = (
            f"{self.hit:,} of {_cells(self.cells)} {'was' if self.cells == 1 else 'were'} hit by "
            f"{self.samples:,} states; 80 % of the measure lies in at most {_cells(self.holders_80)} "
            f"({100 * self.share_holding_80:.3g} %); Gini at least {self.gini:.3f}"
        )
        if self.hit == self.cells:
            return text
        rest, mass = _cells(self.cells - self.hit), _mass(self.hit_once, self.samples)
        limit = f"{self.unhit_limit:.1e} ({self.confidence * 100:g} %)"
        return f"{text}; without a hit: {rest}, {mass} of the measure together, each below {limit}"


def cell_shares(counts: Int[np.ndarray, " V"], *, confidence: float = 0.95) -> CellShares:
    """Turn counts into shares with intervals.

    Parameters
    ----------
    counts
        Hits of every cell, those without any included, shape (V,).
    confidence
        Of each cell's own interval; no joint statement about all cells is made.

    Raises
    ------
    InputError
        For no cells, counts that are no whole numbers of at least 0, no hit at all, or a confidence outside
        (0, 1).
    """
    check_confidence(confidence)
    given = np.asarray(counts)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        got = f"shape {given.shape} of {given.dtype}"
        raise InputError(problem("whole counts of shape (V,)", got, "count one integer per cell"))
    if given.min() < 0 or given.sum() == 0:
        raise InputError(
            problem("counts of at least 0 with a hit among them", f"sum {given.sum()}", "draw some states")
        )
    whole = given.astype(np.int64)
    samples = int(whole.sum())
    # Most cells share their count with many others: one interval per distinct count.
    distinct, place = np.unique(whole, return_inverse=True)
    low, high = clopper_pearson(
        distinct.astype(np.float64), np.full(distinct.size, float(samples)), confidence
    )
    high = np.where(distinct == 0, unhit_limit(samples, confidence), high)
    return CellShares(samples, whole, whole / samples, low[place], high[place], confidence)


def unhit_limit(samples: int, confidence: float = 0.95) -> float:
    """Return the one-sided upper limit of a share that had no hit in N trials: 1 - (1 - confidence)^(1/N).

    Raises
    ------
    InputError
        For less than one trial or a confidence outside (0, 1).
    """
    check_confidence(confidence)
    if samples < 1:
        raise InputError(problem("at least 1 sample", str(samples), "draw some states"))
    return -math.expm1(math.log1p(-confidence) / samples)


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"


def _mass(singles: int, samples: int) -> str:
    # Without a cell hit once the estimate is 0, which says no more than "less than one in N".
    return f"about {_percent(singles / samples)} %" if singles else f"under {100 / samples:.1g} %"


def _rank_plot(shares: CellShares) -> tuple[dict[str, float], ...]:
    """Return the mean share of cells in bands of ranks, up to the first band without a hit."""
    picked, measured = halves(shares.counts, np.random.default_rng(_SPLIT_SEED))
    order = np.argsort(-picked, kind="stable")
    seen, states = int((picked > 0).sum()), int(measured.sum())
    if not (seen and states):
        return ()
    ends = np.unique(np.geomspace(1, seen, _RANKS).round().astype(np.int64))
    starts = np.append(0, ends[:-1])
    hits = np.array([measured[order[a:b]].sum() for a, b in zip(starts, ends, strict=True)])
    low, high = clopper_pearson(hits.astype(float), np.full(hits.size, float(states)), shares.confidence)
    cells = ends - starts
    kept = range(int((hits == 0).argmax()) if (hits == 0).any() else hits.size)
    return tuple(
        {
            "rank": round(math.sqrt((starts[k] + 1) * ends[k])),
            "share": float(hits[k] / states / cells[k]),
            "low": float(low[k] / cells[k]),
            "high": float(high[k] / cells[k]),
        }
        for k in kept
    )


def _percent(share: float) -> str:
    """Write a percentage with two significant figures, and 100 as 100."""
    return f"{100 * share:.2g}" if 100 * share < 99.5 else f"{100 * share:.0f}"
