"""By how much tokens lead at given hidden states: as the decoder's scores and as the model's own head say."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.maths.cells import sum_of_terms

__all__ = ["Judge", "Leads", "Scores"]

_RIVALS = 64  # worst rivals that join a problem per round
_CHUNK = 1 << 14  # rows converted to float64 at once


@dataclass(frozen=True, eq=False)
class Judge:
    """The model's own head, asked for logits at a witness before the token counts as reachable.

    Attributes
    ----------
    logits
        Hidden states (k, h) -> logits (k, rows), padded rows included.
    scale
        |logits / scores| before any soft cap.
    soft_cap
        c of c * tanh(x / c), or None: witnesses are kept where no logit exceeds c / 2.
    """

    logits: Callable[[Float[Tensor, "k h"]], Float[Tensor, "k rows"]]
    scale: float = 1.0
    soft_cap: float | None = None


@dataclass(frozen=True, eq=False)
class Leads:
    """Leads of n tokens at a state each.

    Attributes
    ----------
    rivals, leads
        The nearest rivals and the leads over them, smallest lead first, shape (n, r).
    over_mean
        Lead over the mean score of ordinary tokens, shape (n,).
    """

    rivals: Int[np.ndarray, "n r"]
    leads: Float[np.ndarray, "n r"]
    over_mean: Float[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Distinct rows of a decoder, and who judges them.

    Attributes
    ----------
    rows, bias
        float32, shapes (U, h) and (U,).
    ids
        Token id of each row, shape (U,).
    judge
        The model's own head; None: scores in float32 are taken as logits.
    lengths
        L2 norm of each row, shape (U,).
    ordinary
        Which rows are of ordinary size, see `lmreach.maths.cells.ordinary`; shape (U,).
    """

    rows: Float[Tensor, "U h"]
    bias: Float[Tensor, " U"]
    ids: Int[np.ndarray, " U"]
    judge: Judge | None
    lengths: Float[Tensor, " U"]
    ordinary: Bool[Tensor, " U"]

    @classmethod
    def of(
        cls,
        rows: Float[Tensor, "U h"],
        bias: Float[Tensor, " U"],
        ids: Int[np.ndarray, " U"],
        judge: Judge | None,
    ) -> "Scores":
        """Measure rows, too."""
        every = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        return cls(rows, bias, ids, judge, torch.linalg.vector_norm(rows, dim=1), every)

    def judged(
        self, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Return the smallest lead in logits of the judge, what of it rounding cannot take away from any
        rival, and whether a padded row has a larger logit.
        """  # noqa: D205
        given = states.to(self.rows.device)
        own = torch.from_numpy(rows).to(given.device)
        if self.judge is None:
            logits, beaten = torch.addmm(self.bias, given, self.rows.T), np.zeros(len(rows), dtype=bool)
            best = _take(logits, own)
        else:
            logits = self.judge.logits(given).float()
            ids = torch.from_numpy(self.ids).to(given.device)
            best = _take(logits, ids[own])
            beaten = (logits.amax(dim=1) > best).cpu().numpy()
            if logits.shape[1] != len(ids):
                logits = logits[:, ids]
            # A usable rival with a larger logit is no padded row.
            beaten &= (logits.amax(dim=1) <= best).cpu().numpy()
        logits.scatter_(1, own[:, None], -torch.inf)
        lead = best - logits.amax(dim=1)
        far = self._share_lost(given.shape[1]) * given.norm(dim=1)
        logits.addr_(far, self.lengths).add_(self._share_lost(given.shape[1]) * self.bias.abs())
        lost = far * self.lengths[own] + self._share_lost(given.shape[1]) * self.bias[own].abs()
        sure = best - lost - logits.amax(dim=1)
        return lead.double().cpu().numpy(), sure.double().cpu().numpy(), beaten

    def nearest(self, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]) -> Leads:
        """Return the nearest rivals by the decoder's scores, in the dtype of the states."""
        given = states.to(self.rows.device)
        own = torch.from_numpy(rows).to(given.device)
        count = len(self.rows)
        keep = min(_RIVALS, count - 1)
        step = count if given.dtype == self.rows.dtype else _CHUNK
        best = ((given * self.rows[own].to(given.dtype)).sum(1) + self.bias[own].to(given.dtype))[:, None]
        total = torch.zeros(len(rows), dtype=torch.float64, device=given.device)
        values, places = list[Tensor](), list[Tensor]()
        for start in range(0, count, step):
            part, bias = (one[start : start + step].to(given.dtype) for one in (self.rows, self.bias))
            leads = best - torch.addmm(bias, given, part.T)
            total += leads[:, self.ordinary[start : start + step]].sum(dim=1, dtype=torch.float64)
            here = (own >= start) & (own < start + step)
            leads[here, own[here] - start] = torch.inf
            value, place = leads.topk(min(keep, leads.shape[1]), dim=1, largest=False)
            values.append(value)
            places.append(place + start)
        value, order = torch.cat(values, dim=1).topk(keep, dim=1, largest=False)
        rivals = torch.cat(places, dim=1).gather(1, order)
        return Leads(
            rivals.cpu().numpy(), value.double().cpu().numpy(), (total / self.ordinary.sum()).cpu().numpy()
        )

    def largest(self, states: Float[Tensor, "n h"]) -> Float[Tensor, " n"]:
        """Return what no |score| of an ordinary row exceeds at some states, float64."""
        longest, bias = self.lengths[self.ordinary].max(), self.bias[self.ordinary].abs().max()
        return torch.as_tensor(float(longest) * states.double().norm(dim=1) + float(bias))

    def rounding(
        self, rows: Int[np.ndarray, " n"], rivals: Int[np.ndarray, "n r"], states: Float[Tensor, "n h"]
    ) -> Float[np.ndarray, "n r"]:
        """Return what rounding in float32 can add to leads over rivals: that of the two scores compared."""
        far = states.double().norm(dim=1)[:, None]

        def size(tokens: Int[Tensor, "n k"]) -> Float[Tensor, "n k"]:
            chosen = tokens.to(self.rows.device)
            sizes = self.lengths[chosen].double().cpu() * far + self.bias[chosen].double().abs().cpu()
            return torch.as_tensor(sizes)

        pair = size(torch.from_numpy(rows)[:, None]) + size(torch.from_numpy(rivals))
        return np.asarray((self._share_lost(states.shape[1]) * pair).numpy())

    def terms(
        self, row: int, rivals: Int[np.ndarray, " r"], state: Float[Tensor, " h"]
    ) -> Float[np.ndarray, " r"]:
        """Return the larger sum of |terms| of a token's score and of each rival's, float64."""
        chosen = torch.from_numpy(np.append(rivals, row)).to(self.rows.device)
        rows, bias = (one[chosen].double().cpu().numpy() for one in (self.rows, self.bias))
        found = sum_of_terms(rows, bias, state.double().cpu().numpy())
        return np.asarray(np.maximum(found[:-1], found[-1]))

    def _share_lost(self, width: int) -> float:
        """Return the share of a score's size that is lost in float32: sqrt(h) roundings of a product."""
        scale = 1.0 if self.judge is None else self.judge.scale
        return float(max(scale, 1.0) * width**0.5 * 2.0**-23)


def _take(logits: Float[Tensor, "n c"], columns: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    return logits.gather(1, columns[:, None])[:, 0]
