"""By how much tokens lead at given hidden states: as the decoder's scores and as the model's own head say."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

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
        Lead over the mean score of all tokens, shape (n,).
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
    longest
        Largest L2 norm of a row.
    largest_bias
        Largest |bias|.
    """

    rows: Float[Tensor, "U h"]
    bias: Float[Tensor, " U"]
    ids: Int[np.ndarray, " U"]
    judge: Judge | None
    longest: float
    largest_bias: float

    @classmethod
    def of(
        cls,
        rows: Float[Tensor, "U h"],
        bias: Float[Tensor, " U"],
        ids: Int[np.ndarray, " U"],
        judge: Judge | None,
    ) -> "Scores":
        """Measure rows and bias, too."""
        longest = float(torch.linalg.vector_norm(rows, dim=1).max())
        return cls(rows, bias, ids, judge, longest, float(bias.abs().max()))

    def judged(
        self, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]
    ) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Return the smallest lead in logits of the judge, and whether a padded row has a larger logit."""
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
        return (best - logits.amax(dim=1)).double().cpu().numpy(), beaten

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
            total += leads.sum(dim=1, dtype=torch.float64)
            here = (own >= start) & (own < start + step)
            leads[here, own[here] - start] = torch.inf
            value, place = leads.topk(min(keep, leads.shape[1]), dim=1, largest=False)
            values.append(value)
            places.append(place + start)
        value, order = torch.cat(values, dim=1).topk(keep, dim=1, largest=False)
        rivals = torch.cat(places, dim=1).gather(1, order)
        return Leads(rivals.cpu().numpy(), value.double().cpu().numpy(), (total / count).cpu().numpy())

    def largest(self, states: Float[Tensor, "n h"]) -> Float[Tensor, " n"]:
        """Return what no |score| exceeds at some states, float64."""
        lengths: Tensor = states.double().norm(dim=1)
        return self.longest * lengths + self.largest_bias

    def rounding(self, states: Float[Tensor, "n h"]) -> Float[np.ndarray, " n"]:
        """Return what rounding in float32 can add to a lead: sqrt(h) roundings of the largest product."""
        scale = 1.0 if self.judge is None else self.judge.scale
        width = states.shape[1]
        return np.asarray((max(scale, 1.0) * width**0.5 * 2.0**-23 * self.largest(states)).numpy())


def _take(logits: Float[Tensor, "n c"], columns: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    return logits.gather(1, columns[:, None])[:, 0]
