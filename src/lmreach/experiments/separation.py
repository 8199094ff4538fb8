"""The search for proofs: whitened directions for all tokens, exact problems with growing rivals for the rest.

Scores are computed in float32 as a model would, for all tokens at once; a lead counts if it exceeds what
rounding can do, and if the model's own head shows it too. What float32 leaves open is looked at in
float64. Every certificate is checked in float64 apart from the solver that found it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.experiments.decoder import Decoder
from lmreach.experiments.whitening import Frame, Lead, frame_of
from lmreach.maths.cells import (
    RESOLUTION,
    TIE,
    Region,
    Verdict,
    WholeSpace,
    bounding_box,
    highest,
    largest_score,
    tie_region,
)
from lmreach.maths.supports import Box, Ellipsoid

__all__ = ["Certificate", "Judge", "Method", "Run"]

Method = Literal["direction", "separation", "same row", "certificate", "none"]
_BLOCK = 256  # tokens whose scores are held at once
_RIVALS = 64  # worst rivals that join a problem per round
_ROUNDS = 200  # of row generation, per token
_CHUNK = 1 << 14  # rows converted to float64 at once
_HAIR = 1 - 1e-12  # ties are judged in float64, and may lie on the boundary only
_NEAR_TIE = "it cannot lead; whether it ties is below the resolution"


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
class Certificate:
    """A convex combination of tokens that no hidden state lets the token lead.

    Attributes
    ----------
    ids, weights
        Other tokens and their weights, at least 0.
    uniform
        Weight spread evenly over all distinct rows. For ``unreachable`` it is above 0: where the token
        ties with all of ``ids`` it then ties with every token. 0 for ``tie-only``. All weights sum to 1.
    bound
        What they prove, checked in float64: no lead exceeds this share of the largest |score|. (On all of
        space with a head bias, ``unreachable``: the same, unless the bias is below 2^-10 of the scores.)
    """

    ids: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, " r"]
    uniform: float
    bound: float

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "ids": self.ids.tolist(),
            "weights": self.weights.tolist(),
            "uniform": self.uniform,
            "bound": self.bound,
        }


@dataclass(frozen=True, eq=False)
class _Bounded:
    """A head on a bounded region, as `lmreach.maths.cells.BoundedHead`, on tensors."""

    rows: Float[Tensor, "V e"]
    bias: Float[Tensor, " V"]
    region: Box | Ellipsoid
    lifted: bool


@dataclass(frozen=True, eq=False)
class _Leads:
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


class Run:
    """One run over the distinct rows of a decoder: tokens with the same row and bias share a verdict.

    Attributes
    ----------
    group
        Distinct row of each token, shape (V,).
    verdict, method, margin
        Per distinct row.
    reason, proof, vectors
        By distinct row, where there is one: why undetermined; certificate; witness.
    padded
        Witnesses at which a padded row has a larger logit than the token.
    """

    def __init__(
        self,
        decoder: Decoder,
        region: Region,
        judge: Judge | None,
        over: Callable[[], bool],
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._judge, self._over, self._on_progress = judge, over, on_progress
        first, self.group, self._members = _distinct(decoder.rows, decoder.bias)
        kept = torch.from_numpy(first).to(decoder.rows.device)
        differ = len(first) == decoder.vocab
        self._rows = decoder.rows if differ else decoder.rows[kept]
        self._bias = decoder.bias if differ else decoder.bias[kept]
        self._ids = decoder.ids[first]
        count = len(first)
        self.verdict: list[Verdict] = ["undetermined"] * count
        self.method: list[Method] = ["none"] * count
        self.margin = np.zeros(count)
        self.reason: dict[int, str] = {}
        self.proof: dict[int, Certificate] = {}
        self.vectors: dict[int, Float[np.ndarray, " h"]] = {}
        self.padded = 0
        if count > 1:
            self._prepare(region)

    def _prepare(self, region: Region) -> None:
        head = self._head = _bounded(self._rows, self._bias, region)
        self._bias_range = float(self._bias.max() - self._bias.min())
        self._size, self._mean_row, self._mean_bias = _size_and_mean(head)
        self._longest = float(torch.linalg.vector_norm(self._rows, dim=1).max())
        self._frame = frame_of(head.rows, head.bias, head.region)
        self._shrink = 1.0
        cap = None if self._judge is None else self._judge.soft_cap
        if self._judge is not None and cap is not None and not self._frame.projective:
            # A saturated soft cap makes logits equal that differ before it.
            self._shrink = min(1.0, cap / (2 * self._size * self._judge.scale))

    def verdict_of(self, token: int) -> tuple[Verdict, Method]:
        """Return verdict and method of a token (by its place among the usable ids)."""
        row = int(self.group[token])
        verdict = self.verdict[row]
        if self._members[row] == 1 or verdict == "undetermined":
            return verdict, self.method[row]
        return ("tie-only" if verdict == "reachable" else verdict), "same row"

    def direction_state(self, row: int) -> Float[np.ndarray, " h"]:
        """Return the state at the whitened direction of a distinct row, float32."""
        return np.asarray(self._direction_states(torch.tensor([row]))[0].numpy())

    def judge_all(self, rows: Int[np.ndarray, " n"]) -> None:
        """Judge distinct rows: the direction first, then exact problems, then ties."""
        if len(self.verdict) == 1:
            # All tokens are level everywhere, so none wins and none ties with the best but not with all.
            self.verdict[0] = "unreachable"
            return
        losers = self._directions(rows)
        stuck = self._separate(losers)
        if stuck:
            self._ties(stuck)

    # The whitened direction

    def _directions(self, rows: Int[np.ndarray, " n"]) -> list[Lead]:
        """Settle every token that leads at its direction; return the problems of the others."""
        losers: list[Lead] = []
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            if self._over():
                self._give_up(rows[start:].tolist(), "the run ended first")
                break
            states = self._direction_states(torch.from_numpy(block))
            lead, padded = self._judged(block, states)
            won = lead > self._rounding(states)
            for row, value in zip(block[won].tolist(), lead[won].tolist(), strict=True):
                self._settle(row, "reachable", "direction", value)
            self.padded += int(padded[won].sum())
            if not won.all():
                missed = torch.from_numpy(~won)
                near = self._leads(block[~won], states[missed])
                planes = self._frame.fixed_planes()
                losers += [
                    Lead(row, False, rivals, planes)
                    for row, rivals in zip(block[~won].tolist(), near.rivals, strict=True)
                ]
            self._on_progress("directions", start + len(block), len(rows))
        return losers

    def _direction_states(self, rows: Int[Tensor, " n"]) -> Float[Tensor, "n h"]:
        x = self._frame.directions(rows)
        over_mean = (x * self._frame.centred(rows)).sum(dim=1)
        return self._states(x, 0.4 * over_mean).float()

    def _states(self, x: Float[Tensor, "n x"], lead: Float[Tensor, " n"]) -> Float[Tensor, "n h"]:
        """Return hidden states of x, float64; where R^d was lifted, as far out as half of a lead allows."""
        if not self._head.lifted:
            return self._frame.states(x) * self._shrink
        return self._unlift(x, lead / (2 * self._bias_range))

    def _unlift(self, x: Float[Tensor, "n x"], least: Float[Tensor, " n"]) -> Float[Tensor, "n h"]:
        full = torch.zeros(len(x), self._head.rows.shape[1], dtype=torch.float64)
        full[:, self._frame.live] = x
        return full[:, :-1] / torch.maximum(full[:, -1], least.clamp_min(1e-300))[:, None]

    # Exact problems

    def _separate(self, problems: list[Lead]) -> dict[int, Certificate]:
        """Solve until each token leads all others or cannot; return those that cannot, with the proof."""
        stuck: dict[int, Certificate] = {}
        waiting, pool, total = deque(problems), list[Lead](), len(problems)
        while waiting or pool:
            while waiting and len(pool) < _BLOCK:
                pool.append(waiting.popleft())
            if self._over():
                self._give_up([one.token for one in [*pool, *waiting]], "the run ended first")
                break
            pool = self._look([(one, x) for one in pool if (x := self._solve(one, stuck)) is not None])
            self._on_progress("separation", total - len(pool) - len(waiting), total)
        return stuck

    def _solve(self, lead: Lead, stuck: dict[int, Certificate]) -> Float[np.ndarray, " x"] | None:
        """Return where the token leads all rivals met so far; None once it is settled or stuck."""
        solved = self._solved(lead, self._frame)
        if solved is None:
            return None
        x, weights, _ = solved
        certificate = self._certificate(lead, weights, 0.0, self._head.region)
        if certificate is not None and certificate.bound <= RESOLUTION:
            stuck[lead.token] = certificate
            return None
        if x is None:
            self._give_up([lead.token], "no state leads, but the proof does not reach the resolution")
        return x

    def _solved(
        self, lead: Lead, frame: Frame
    ) -> tuple[Float[np.ndarray, " x"] | None, Float[np.ndarray, " r"], float] | None:
        lead.rounds += 1
        if lead.rounds > _ROUNDS:
            self._give_up([lead.token], f"still open after {_ROUNDS} rounds")
            return None
        try:
            return lead.solve(frame)
        except RuntimeError:
            self._give_up([lead.token], "the least-squares solver gave up")
            return None

    def _look(self, tried: list[tuple[Lead, Float[np.ndarray, " x"]]]) -> list[Lead]:
        """Score the solutions against all tokens: settle winners, hand new rivals to the others."""
        if not tried:
            return []
        rows = np.array([lead.token for lead, _ in tried])
        x = torch.from_numpy(np.array([x for _, x in tried]))
        states = self._states(x, torch.ones(len(x), dtype=torch.float64)).float()
        near = self._leads(rows, states)
        slack = self._rounding(states)
        won: Bool[np.ndarray, " n"] = near.leads[:, 0] > slack
        still = []
        for k in np.flatnonzero(~won).tolist():
            lead, at = tried[k]
            close = near.rivals[k][near.leads[k] <= slack[k]]
            if lead.add(close, self._frame.planes(at)):
                still.append(lead)
                continue
            # Rounding is all that stands against it in float32.
            exact = self._leads(rows[k : k + 1], states[k : k + 1].double())
            if exact.leads[0, 0] > RESOLUTION * self._size * self._shrink:
                won[k] = True
            elif lead.add(exact.rivals[0], np.empty((0, len(at)))):
                still.append(lead)
            else:
                self._give_up(
                    [lead.token], "the best lead found is below the resolution, with no certificate"
                )
        if won.any():
            self._confirm(rows[won], states[torch.from_numpy(won)])
        return still

    def _confirm(self, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]) -> None:
        """Settle tokens whose states the model's own head agrees with."""
        lead, padded = self._judged(rows, states)
        for k, row in enumerate(rows.tolist()):
            if lead[k] > 0:
                self._settle(row, "reachable", "separation", float(lead[k]))
                self.vectors[row] = states[k].numpy().copy()
                self.padded += int(padded[k])
            else:
                self._give_up([row], "the weights let it lead, but not as the model's own head computes")

    # Ties

    def _ties(self, stuck: dict[int, Certificate]) -> None:
        """Tell tokens that tie somewhere from those that do not."""
        region = tie_region(self._head.region, lifted=self._head.lifted)
        frame = frame_of(self._head.rows, self._head.bias, region) if self._head.lifted else self._frame
        place = {int(token_id): row for row, token_id in enumerate(self._ids)}
        waiting = deque(
            Lead(row, True, np.array([place[i] for i in proof.ids.tolist()]), frame.fixed_planes())
            for row, proof in stuck.items()
        )
        self.proof.update(stuck)
        pool: list[Lead] = []
        while waiting or pool:
            while waiting and len(pool) < _BLOCK:
                pool.append(waiting.popleft())
            if self._over():
                self._give_up([one.token for one in [*pool, *waiting]], "it cannot lead; ties not looked at")
                break
            open_now = []
            for lead in pool:
                solved = self._solved(lead, frame)
                if solved is None or self._no_tie(lead, solved[1], solved[2], region):
                    continue
                if solved[0] is None:
                    self._give_up([lead.token], _NEAR_TIE)
                else:
                    open_now.append((lead, solved[0]))
            pool = self._look_for_ties(open_now, frame)
            self._on_progress("ties", len(stuck) - len(pool) - len(waiting), len(stuck))

    def _no_tie(
        self, lead: Lead, weights: Float[np.ndarray, " r"], mean: float, region: Box | Ellipsoid
    ) -> bool:
        """Settle as unreachable if the combination proves that a tie would be one of all tokens."""
        certificate = self._certificate(lead, weights, mean, region)
        if certificate is None:
            return False
        # Where the token trails no rival by more than TIE * m, with m its lead over the mean,
        # bound >= uniform * m - (1 - uniform) * TIE * m, so m is at most bound / room.
        room = certificate.uniform - TIE * (1 - certificate.uniform)
        if not (room > 0 and certificate.bound <= RESOLUTION * room):
            return False
        self.proof[lead.token] = certificate
        self._settle(lead.token, "unreachable", "certificate", 0.0)
        return True

    def _look_for_ties(self, tried: list[tuple[Lead, Float[np.ndarray, " x"]]], frame: Frame) -> list[Lead]:
        if not tried:
            return []
        rows = np.array([lead.token for lead, _ in tried])
        x = torch.from_numpy(np.array([x for _, x in tried]))
        if self._head.lifted:
            u = frame.states(x, inside=_HAIR)
            states = u[:, :-1] / u[:, -1:]
        else:
            states = frame.states(x, inside=_HAIR)
        near = self._leads(rows, states)
        still = []
        for k, (lead, at) in enumerate(tried):
            behind = near.leads[k] < -TIE * near.over_mean[k]
            outside = frame.planes(at)
            if not behind[0] and near.over_mean[k] > RESOLUTION * self._size_at(states[k]):
                self.vectors[lead.token] = states[k].numpy().copy()
                self._settle(lead.token, "tie-only", "certificate", 0.0)
            elif lead.add(near.rivals[k][behind], outside):
                still.append(lead)
            else:
                self._give_up([lead.token], _NEAR_TIE)
        return still

    def _size_at(self, state: Float[Tensor, " h"]) -> float:
        """Return the largest |score| in the units of unlifted states."""
        if not self._head.lifted:
            return self._size
        return self._longest * float(state.norm()) + float(self._bias.abs().max())

    # Scores

    def _judged(
        self, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]
    ) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Return the smallest lead in logits of the judge, and whether a padded row has a larger logit."""
        given = states.to(self._rows.device)
        own = torch.from_numpy(rows).to(given.device)
        if self._judge is None:
            logits, beaten = torch.addmm(self._bias, given, self._rows.T), np.zeros(len(rows), dtype=bool)
            best = _take(logits, own)
        else:
            logits = self._judge.logits(given).float()
            ids = torch.from_numpy(self._ids).to(given.device)
            best = _take(logits, ids[own])
            beaten = (logits.amax(dim=1) > best).cpu().numpy()
            if logits.shape[1] != len(ids):
                logits = logits[:, ids]
            # A usable rival with a larger logit is no padded row.
            beaten &= (logits.amax(dim=1) <= best).cpu().numpy()
        logits.scatter_(1, own[:, None], -torch.inf)
        return (best - logits.amax(dim=1)).double().cpu().numpy(), beaten

    def _leads(self, rows: Int[np.ndarray, " n"], states: Float[Tensor, "n h"]) -> _Leads:
        """Return the nearest rivals by the decoder's scores, in the dtype of the states."""
        given = states.to(self._rows.device)
        own = torch.from_numpy(rows).to(given.device)
        count = len(self._rows)
        keep = min(_RIVALS, count - 1)
        step = count if given.dtype == self._rows.dtype else _CHUNK
        best = ((given * self._rows[own].to(given.dtype)).sum(1) + self._bias[own].to(given.dtype))[:, None]
        total = torch.zeros(len(rows), dtype=torch.float64, device=given.device)
        values, places = list[Tensor](), list[Tensor]()
        for start in range(0, count, step):
            part, bias = (one[start : start + step].to(given.dtype) for one in (self._rows, self._bias))
            leads = best - torch.addmm(bias, given, part.T)
            total += leads.sum(dim=1, dtype=torch.float64)
            here = (own >= start) & (own < start + step)
            leads[here, own[here] - start] = torch.inf
            value, place = leads.topk(min(keep, leads.shape[1]), dim=1, largest=False)
            values.append(value)
            places.append(place + start)
        value, order = torch.cat(values, dim=1).topk(keep, dim=1, largest=False)
        rivals = torch.cat(places, dim=1).gather(1, order)
        return _Leads(rivals.cpu().numpy(), value.double().cpu().numpy(), (total / count).cpu().numpy())

    def _rounding(self, states: Float[Tensor, "n h"]) -> Float[np.ndarray, " n"]:
        """Return what rounding in float32 can add to a lead: sqrt(h) roundings of the largest product."""
        width = states.shape[1]
        size = self._longest * states.double().norm(dim=1) + float(self._bias.abs().max())
        scale = 1.0 if self._judge is None else self._judge.scale
        return np.asarray((max(scale, 1.0) * width**0.5 * 2.0**-23 * size).numpy())

    # Verdicts

    def _certificate(
        self, lead: Lead, weights: Float[np.ndarray, " r"], mean: float, region: Box | Ellipsoid
    ) -> Certificate | None:
        """Return the convex combination with what it proves, in float64 (None for no weight at all)."""
        used = np.flatnonzero(weights > 0)
        total = float(weights[used].sum()) + mean
        if not total > 0:
            return None
        share, uniform, rivals = weights[used] / total, mean / total, lead.rivals[used]
        chosen = torch.from_numpy(np.append(rivals, lead.token)).to(self._rows.device)
        rows = self._head.rows[chosen].double().cpu().numpy()
        bias = self._head.bias[chosen].double().cpu().numpy()
        normal = rows[-1] - share @ rows[:-1] - uniform * self._mean_row
        offset = bias[-1] - share @ bias[:-1] - uniform * self._mean_bias
        bound = (float(highest(normal[None], region)[0]) + float(offset)) / self._size
        return Certificate(self._ids[rivals], share, uniform, bound)

    def _settle(self, row: int, verdict: Verdict, method: Method, margin: float) -> None:
        self.verdict[row], self.method[row], self.margin[row] = verdict, method, margin

    def _give_up(self, rows: list[int], reason: str) -> None:
        for row in rows:
            self.reason[row] = reason


def _take(logits: Float[Tensor, "n c"], columns: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    return logits.gather(1, columns[:, None])[:, 0]


def _bounded(rows: Float[Tensor, "V d"], bias: Float[Tensor, " V"], region: Region) -> _Bounded:
    if not isinstance(region, WholeSpace):
        return _Bounded(rows, bias, region, False)
    lifted = bool((bias != bias[0]).any())
    both = torch.cat([rows, bias[:, None]], dim=1) if lifted else rows
    square = sum(
        (part.double().square().sum(0).cpu() for part in both.split(_CHUNK)),
        torch.zeros(both.shape[1], dtype=torch.float64),
    )
    box = bounding_box((square / len(rows)).sqrt().numpy(), lifted=lifted)
    return _Bounded(both, torch.zeros_like(bias), box, lifted)


def _size_and_mean(head: _Bounded) -> tuple[float, Float[np.ndarray, " e"], float]:
    """Return the largest |score| over the region, and the mean row and bias, in float64."""
    size, total = 0.0, np.zeros(head.rows.shape[1])
    for rows, bias in zip(head.rows.split(_CHUNK), head.bias.split(_CHUNK), strict=True):
        part = rows.double().cpu().numpy()
        size = max(size, largest_score(part, bias.double().cpu().numpy(), head.region))
        total += part.sum(axis=0)
    return size, total / len(head.rows), float(head.bias.double().mean())


def _distinct(
    rows: Float[Tensor, "V d"], bias: Float[Tensor, " V"]
) -> tuple[Int[np.ndarray, " U"], Int[np.ndarray, " V"], Int[np.ndarray, " U"]]:
    """Group tokens with the same row and bias: first of each group, group of each token, group sizes.

    0 and -0 are equal. Equal hashes are compared number by number.
    """
    odd = torch.from_numpy(np.random.default_rng(0).integers(-(2**62), 2**62, rows.shape[1] + 1) | 1)
    keys = torch.cat([_key(part.cpu(), odd[:-1]) for part in rows.split(_CHUNK)])
    hashes = (keys + _key(bias.cpu()[:, None], odd[-1:])).numpy()
    order = np.argsort(hashes, kind="stable")
    leader = np.arange(len(hashes))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(hashes[order])) + 1, [len(order)]])
    for group in np.flatnonzero(np.diff(starts) > 1):
        members = order[starts[group] : starts[group + 1]]
        for k, token in enumerate(members[1:].tolist(), start=1):
            for earlier in members[:k].tolist():
                if torch.equal(rows[earlier], rows[token]) and bool(bias[earlier] == bias[token]):
                    leader[token] = leader[earlier]
                    break
    return np.unique(leader, return_inverse=True, return_counts=True)


def _key(part: Float[Tensor, "n d"], odd: Int[Tensor, " d"]) -> Int[Tensor, " n"]:
    return ((part + 0.0).contiguous().view(torch.int32).long() * odd).sum(dim=1)
