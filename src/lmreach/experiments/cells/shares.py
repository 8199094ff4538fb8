"""Which cell a hidden state lies in, counted over many states; nothing of size states x V is ever held.

Scores are computed in float32, a block of states by a chunk of rows at a time. Where the two largest come
closer than float32 can tell apart, the state is decided in float64, so that counts depend neither on blocks
nor on threads nor on the order of sums.

Symbols: V usable tokens, h hidden width, k states at once, z = W h + b scores.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.errors import InputError, ModelError, problem
from lmreach.experiments.cells.decoder import Decoder
from lmreach.experiments.states.measures import Measure
from lmreach.models.stopping import PassStopped

__all__ = ["CONVENTIONS", "CellCounts", "CellFinder", "Convention", "count_cells"]

Convention = Literal["argmax", "nearest-row"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)

# Measured on CPU: scores of this shape stay in cache between the product and the search for the largest.
_STATES = 1024
_ROWS = 1024
_QUEUE = 512  # states that wait to be decided in float64 together
_PAIRS = 1 << 12  # float64 scores at once
# A GPU wants larger pieces: the limit is the memory of one piece of scores.
_STATES_GPU, _ROWS_GPU = 4096, 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """How many states of a measure fell into each cell.

    Attributes
    ----------
    model, fingerprint
        Of the decoder.
    measure, independent
        Words of the measure, and whether its states are independent trials.
    convention
        ``argmax``: the cell of the token that greedy decoding takes. ``nearest-row``: the published
        convention, the cell of the row closest in L2, which is another partition.
    samples
        States counted.
    close
        States among them that float32 could not decide.
    seed
        Of the measure.
    ids, counts
        Token ids and their counts, shape (V,).
    """

    model: str
    fingerprint: str
    measure: str
    independent: bool
    convention: str
    samples: int
    close: int
    seed: int
    ids: Int[np.ndarray, " V"]
    counts: Int[np.ndarray, " V"]


class CellFinder:
    """Finds the cell of hidden states under one convention.

    Parameters
    ----------
    decoder
        Rows and bias.
    convention
        ``argmax`` or ``nearest-row``; for the latter argmin ||h - w_s|| = argmax of w_s.h - ||w_s||^2 / 2,
        and the bias of the head plays no part.

    Raises
    ------
    InputError
        For an unknown convention.
    """

    def __init__(self, decoder: Decoder, convention: str = "argmax") -> None:
        if convention not in CONVENTIONS:
            wanted = f"a convention: {' or '.join(CONVENTIONS)}"
            raise InputError(problem(wanted, repr(convention), "name one of these"))
        self.rows = decoder.rows.contiguous()
        self._exact_bias = _exact_bias(decoder, convention)
        self._bias = self._exact_bias.float()
        norms = torch.linalg.vector_norm(self.rows, dim=1, dtype=torch.float64)
        # |fl(w.h + b) - (w.h + b)| <= gamma (||w|| ||h|| + |b|) in any order of summation (Higham 2002, 3.1);
        # one step more for the rounding of b itself.
        steps = self.rows.shape[1] + 2
        unit = steps * torch.finfo(torch.float32).eps / 2
        self._gamma = unit / (1 - unit)
        self._norm, self._offset = float(norms.max()), float(self._exact_bias.abs().max())
        gpu = self.rows.device.type != "cpu"
        self.states_at_once = _STATES_GPU if gpu else _STATES
        self.rows_at_once = _ROWS_GPU if gpu else _ROWS

    def find(self, states: Float[Tensor, "k h"]) -> tuple[Int[Tensor, " k"], int]:
        """Return the index (not the id) of the winner of every state, and how many float32 left open.

        Of tokens that tie in float64 the first wins.
        """
        winners = torch.zeros(len(states), dtype=torch.int64, device=self.rows.device)
        least = torch.full((len(states),), torch.nan, device=self.rows.device, dtype=torch.float64)
        for start in range(0, len(states), self.states_at_once):
            part = states[start : start + self.states_at_once].to(self.rows.device)
            here = slice(start, start + len(part))
            winners[here], best, second = self._largest(part)
            floor = best.double() - self._tolerance(part)
            least[here] = torch.where(second.double() >= floor, floor, torch.nan)
        open_ones = (~least.isnan()).nonzero()[:, 0]
        for some in open_ones.split(_QUEUE) if len(open_ones) else ():
            given = states[some.to(states.device)].to(self.rows.device)
            winners[some] = self._decide(given, least[some])
        return winners, len(open_ones)

    def _tolerance(self, states: Float[Tensor, "k h"]) -> Float[Tensor, " k"]:
        """Return the largest gap that rounding of two float32 scores can make up."""
        allowed: Tensor = 2 * self._gamma * self._size(states)
        return allowed

    def _size(self, states: Float[Tensor, "k h"]) -> Float[Tensor, " k"]:
        norms: Tensor = torch.linalg.vector_norm(states, dim=1, dtype=torch.float64)
        return self._norm * norms + self._offset

    def _scores(self, states: Float[Tensor, "k h"]) -> Iterator[tuple[int, Float[Tensor, "k c"]]]:
        """Yield the first row and the float32 scores of one chunk of rows at a time, in the same memory."""
        k = len(states)
        scratch = torch.empty(k * min(self.rows_at_once, len(self.rows)), device=states.device)
        for start in range(0, len(self.rows), self.rows_at_once):
            rows = self.rows[start : start + self.rows_at_once]
            scores = scratch[: k * len(rows)].view(k, len(rows))
            if self._offset > 0:
                torch.addmm(self._bias[start : start + len(rows)], states, rows.T, out=scores)
            else:
                torch.mm(states, rows.T, out=scores)
            yield start, scores

    def _largest(
        self, states: Float[Tensor, "k h"]
    ) -> tuple[Int[Tensor, " k"], Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Return the index of the largest float32 score, that score, and the second largest."""
        best = torch.full((len(states),), -torch.inf, device=states.device)
        second = best.clone()
        index = torch.zeros(len(states), dtype=torch.int64, device=states.device)
        for start, scores in self._scores(states):
            top = scores.amax(1)
            # The place of a maximum is asked for only where it beats all chunks before: about ln(chunks)
            # times per state. Elsewhere the maximum itself may still be second.
            ahead = top > best
            torch.maximum(second, torch.where(ahead, best, top), out=second)
            which = ahead.nonzero()[:, 0]
            leading = scores[which]
            place = leading.argmax(1)
            leading.scatter_(1, place[:, None], -torch.inf)
            second[which] = torch.maximum(second[which], leading.amax(1))
            index[which] = start + place
            best = torch.where(ahead, top, best)
        return index, best, second

    def _decide(self, states: Float[Tensor, "k h"], least: Float[Tensor, " k"]) -> Int[Tensor, " k"]:
        """Return winners by float64 scores among all tokens whose float32 score is at least ``least``."""
        best = torch.full((len(states),), -torch.inf, dtype=torch.float64, device=states.device)
        for which, _, exact in self._contenders(states, least):
            best.scatter_reduce_(0, which, exact, "amax")
        # Within float64 rounding the first token wins.
        unit = torch.finfo(torch.float64).eps * (self.rows.shape[1] + 2)
        floor = best - unit * self._size(states)
        index = torch.full((len(states),), len(self.rows), dtype=torch.int64, device=states.device)
        for which, rows, exact in self._contenders(states, least):
            among = exact >= floor[which]
            index.scatter_reduce_(0, which[among], rows[among], "amin")
        return index

    def _contenders(
        self, states: Float[Tensor, "k h"], least: Float[Tensor, " k"]
    ) -> Iterator[tuple[Int[Tensor, " p"], Int[Tensor, " p"], Float[Tensor, " p"]]]:
        """Yield pairs of state and row that may win, and their float64 scores."""
        for start, scores in self._scores(states):
            for pairs in (scores.double() >= least[:, None]).nonzero().split(_PAIRS):
                which, rows = pairs[:, 0], start + pairs[:, 1]
                products = self.rows[rows].double() * states[which].double()
                yield which, rows, products.sum(1) + self._exact_bias[rows]


def _exact_bias(decoder: Decoder, convention: str) -> Float[Tensor, " V"]:
    if convention == "argmax":
        return decoder.bias.double()
    norms: Tensor = torch.linalg.vector_norm(decoder.rows, dim=1, dtype=torch.float64)
    return -norms.square() / 2


@torch.no_grad()
def count_cells(
    decoder: Decoder,
    measure: Measure,
    samples: int,
    *,
    convention: str = "argmax",
    blocks: range | None = None,
    say: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> CellCounts:
    """Count how many of the first ``samples`` states of a measure lie in each cell.

    Parameters
    ----------
    samples
        States, at least 1. The last block is cut to fit.
    convention
        See `CellCounts`.
    blocks
        Which blocks to count here; default: all of them. Counts of ranges that make up all blocks add up to
        the counts of one call.
    say
        Called with the number of states counted, after each block.
    stop
        Asked before each block; what was counted by then is returned, with its own ``samples``.

    Raises
    ------
    InputError
        For no samples, an unknown convention, or states whose width is not that of the rows.
    ModelError
        For a state that is not finite.
    """
    if samples < 1:
        raise InputError(problem("at least 1 sample", str(samples), "ask for more"))
    finder = CellFinder(decoder, convention)
    chosen = range(-(-samples // measure.block)) if blocks is None else blocks
    counts = torch.zeros(decoder.vocab, dtype=torch.int64)
    done = close = 0
    for block in chosen:
        if stop():
            break
        try:
            states = _states(decoder, measure, block)[: max(0, samples - block * measure.block)]
        except PassStopped:  # measures of real states run the model
            if done == 0:
                raise
            break
        winners, undecided = finder.find(states)
        counts += torch.bincount(winners.cpu(), minlength=decoder.vocab)
        done, close = done + len(states), close + undecided
        say(done)
    return CellCounts(
        decoder.name,
        decoder.fingerprint,
        measure.words,
        measure.independent,
        convention,
        done,
        close,
        measure.seed,
        decoder.ids,
        counts.numpy(),
    )


def _states(decoder: Decoder, measure: Measure, block: int) -> Float[Tensor, "k h"]:
    states = measure.draw(block)
    if states.shape[1] != decoder.width:
        got = f"states of width {states.shape[1]}"
        raise InputError(problem(f"a measure on width {decoder.width}", got, "measure the support again"))
    if not bool(states.isfinite().all()):
        raise ModelError(
            problem(f"finite hidden states ({measure.words})", "some that are not", "load in float32")
        )
    return states
