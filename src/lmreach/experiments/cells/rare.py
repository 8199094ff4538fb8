"""How small the cell of a token is: ln of its share under the norm-shaped Gaussian, for any token.

Reference measure: h = bias + gain * z with z ~ N(0, I_h), gain and bias those of the final norm; after a
LayerNorm z loses its mean first. Where neither norm nor head adds a bias, cells are cones, so the radius of z
does not matter and shares equal those of the uniform measure on the norm ellipsoid and on its surface. Where
the final norm has no known gain, h ~ N(0, I_h), and the result says so.

Method: multilevel splitting as in `lmreach.maths.splitting` (pilot, then replicates on fixed levels), made
fit for hundreds of thousands of tokens. The levels only look at the rivals that came close to winning
somewhere in the pilot, a few thousand; the last factor is the share of particles, already ahead of those
rivals, that also beat all other tokens. That is again a nested event, so nothing is left out. And the
independent draws before the first level are the same for all tokens, which correlates tokens within a
replicate (see `lmreach.stats.refined`) but not the replicates of a token.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.errors import InputError, LmreachError, problem
from lmreach.experiments.cells.decoder import Decoder
from lmreach.experiments.cells.rare_moves import move
from lmreach.maths.splitting import LogProbability, Splitting, copies, lognormal_mean, next_level

__all__ = [
    "GaussianScores",
    "RareCells",
    "RareStopped",
    "TokenShare",
    "gaussian_scores",
    "plain_hits",
    "rare_cells",
]

DEFAULT = Splitting(particles=64, replicates=8, start=1024)
_FEWEST_BLOCKS, _MOST_BLOCKS = 2, 24  # subspaces visited per level
_FORGET = 0.85  # a level is left when particles keep this cosine to where they entered; measured on SmolLM2
_RIVALS = 4  # best tokens kept of a particle that was looked at among all tokens
_SCOUTS, _SCOUTED = 8, 16  # particles looked at per level on the way down, and best tokens kept of each
_LOOKS, _WINNING = 6, 0.7  # looks for rivals at the last level, until so large a share of particles wins
_PLANS, _ENOUGH = 4, 0.25  # new runs to find levels, until so large a share of their particles wins
_SCORES_AT_ONCE = 1 << 26  # numbers
_DOUBT = 1e-5  # of the size of the scores: margins closer to 0 are computed again in float64
_RETRIES = 2


class RareStopped(LmreachError):
    """Stopped before every token was through.

    Nothing is returned then: the smallest cells take longest, so the tokens that were finished would be no
    sample of those that were drawn.
    """


@dataclass(frozen=True, eq=False)
class GaussianScores:
    """Scores rows u + offset, u ~ N(0, I_h), with the same winners as the decoder under its measure.

    Attributes
    ----------
    ids
        Sorted usable token ids, shape (V,); row k belongs to ``ids[k]``.
    rows, offset
        float32, shapes (V, h) and (V,): the measure is folded in.
    measure
        The measure in words.
    """

    ids: Int[np.ndarray, " V"]
    rows: Float[Tensor, "V h"]
    offset: Float[Tensor, " V"]
    measure: str

    def of(self, u: Float[Tensor, "n h"]) -> Float[Tensor, "n V"]:
        """Return all scores."""
        return torch.addmm(self.offset, u, self.rows.T)

    def at_once(self) -> int:
        """Return how many particles are scored together, so that memory does not grow with V."""
        return max(1, _SCORES_AT_ONCE // len(self.ids))


def gaussian_scores(decoder: Decoder) -> GaussianScores:
    """Fold the norm-shaped Gaussian into a decoder; rows take as much memory again."""
    norm = decoder.norm
    if norm.kind not in ("rms", "layer"):
        words = "h ~ N(0, I): the final norm has no known gain"
        return GaussianScores(decoder.ids, decoder.rows, decoder.bias, words)
    gain, shift = (torch.as_tensor(part).to(decoder.rows) for part in (norm.gain, norm.bias))
    offset = torch.addmv(decoder.bias, decoder.rows, shift)
    rows = decoder.rows * gain
    if norm.kind == "layer":
        # w . (z - mean(z)) = (w - mean(w)) . z
        rows -= rows.mean(1, keepdim=True)
    return GaussianScores(decoder.ids, rows, offset, "norm-shaped Gaussian: h = bias + gain * N(0, I)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenShare:
    """The share of one token's cell.

    Attributes
    ----------
    id
        Token id.
    share
        ln v with its uncertainty; ``below`` where it lies under the floor or could not be reached.
    rivals
        Tokens the levels looked at; all others entered the last factor.
    twin
        Id of a token with the same row and at least the same bias, which this one never beats (it wins ties
        at most, so its share is 0), or None.
    seconds
        Wall time.
    """

    id: int
    share: LogProbability
    rivals: int
    twin: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RareCells:
    """Shares of the tokens asked for, each once, in the order of their ids.

    Attributes
    ----------
    model, fingerprint
        Whose decoder it was; None when scores were given instead.
    measure
        The reference measure in words.
    options
        Work spent per token.
    tokens
        One `TokenShare` per distinct token.
    seconds
        Wall time of everything.
    """

    model: str | None
    fingerprint: str | None
    measure: str
    options: Splitting
    tokens: tuple[TokenShare, ...]
    seconds: float

    def by_id(self) -> dict[int, LogProbability]:
        """Return the shares as `lmreach.stats.refined` takes them."""
        return {token.id: token.share for token in self.tokens}


@torch.no_grad()
def rare_cells(
    decoder: Decoder | GaussianScores,
    tokens: Sequence[int] | Int[np.ndarray, " n"],
    *,
    rng: np.random.Generator,
    options: Splitting = DEFAULT,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stop: Callable[[], bool] = lambda: False,
) -> RareCells:
    """Estimate ln v of the cells of some tokens.

    A token's result depends on the state of ``rng`` and its id, not on the other tokens.

    Parameters
    ----------
    tokens
        Token ids, at least one; repeats are estimated once.
    rng
        One number is drawn from it.
    options
        Work per token, see `Splitting`.
    progress
        Called with (tokens done, tokens in all).
    stop
        Asked often.

    Raises
    ------
    InputError
        For no tokens, or ids that are not usable.
    RareStopped
        If ``stop`` said so.
    """
    begun = time.monotonic()
    scores = decoder if isinstance(decoder, GaussianScores) else gaussian_scores(decoder)
    ids = np.unique(np.asarray(tokens, dtype=np.int64))
    at = _positions(scores, ids)
    root = int(rng.integers(2**63))
    start = _start(scores, at, options, torch.Generator(scores.rows.device).manual_seed(root))
    found = []
    for i, (token, k) in enumerate(zip(ids.tolist(), at.tolist(), strict=True)):
        progress(i, len(ids))
        own = np.random.default_rng([root, token])
        found.append(_token(scores, token, k, start.of(i), options, own, stop))
    progress(len(ids), len(ids))
    named = None if isinstance(decoder, GaussianScores) else decoder
    return RareCells(
        model=named.name if named else None,
        fingerprint=named.fingerprint if named else None,
        measure=scores.measure,
        options=options,
        tokens=tuple(found),
        seconds=time.monotonic() - begun,
    )


@torch.no_grad()
def plain_hits(
    decoder: Decoder | GaussianScores, draws: int, *, rng: np.random.Generator
) -> Int[np.ndarray, " V"]:
    """Return how often each usable token wins in plain draws of the measure (the lowest id wins ties)."""
    scores = decoder if isinstance(decoder, GaussianScores) else gaussian_scores(decoder)
    generator = torch.Generator(scores.rows.device).manual_seed(int(rng.integers(2**63)))
    hits = torch.zeros(len(scores.ids), dtype=torch.int64, device=scores.rows.device)
    for u in _draws(scores, draws, generator).split(scores.at_once()):
        hits += torch.bincount(scores.of(u).argmax(1), minlength=len(hits))
    return hits.cpu().numpy()


def _positions(scores: GaussianScores, ids: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    if not len(ids):
        raise InputError(problem("at least 1 token", "none", "name the tokens to measure"))
    at = np.searchsorted(scores.ids, ids).clip(max=len(scores.ids) - 1)
    bad = ids[scores.ids[at] != ids]
    if len(bad):
        got = f"id {bad[0]}"
        raise InputError(problem(f"ids among the {len(scores.ids)} usable ones", got, "drop unusable ids"))
    return at


@dataclass(frozen=True, eq=False)
class _TokenStart:
    """Draws before the first level, shape (1 + R, draws, h), the pilot's first, as one token sees them.

    ``margins`` of the pilot's draws against all tokens, shape (draws,), and their ``best`` tokens.
    """

    draws: Float[Tensor, "runs draws h"]
    margins: Float[np.ndarray, " draws"]
    best: Int[Tensor, "draws j"]


@dataclass(frozen=True, eq=False)
class _Start:
    """The same for all tokens: margins have shape (draws, tokens)."""

    draws: Float[Tensor, "runs draws h"]
    margins: Float[np.ndarray, "draws tokens"]
    best: Int[Tensor, "draws j"]

    def of(self, i: int) -> _TokenStart:
        return _TokenStart(self.draws, self.margins[:, i], self.best)


def _draws(scores: GaussianScores, n: int, generator: torch.Generator) -> Float[Tensor, "n h"]:
    return torch.randn(n, scores.rows.shape[1], generator=generator, device=scores.rows.device)


def _start(
    scores: GaussianScores, at: Int[np.ndarray, " n"], options: Splitting, generator: torch.Generator
) -> _Start:
    runs = 1 + options.replicates
    u = _draws(scores, runs * options.start, generator).view(runs, options.start, -1)
    wanted = torch.as_tensor(at, device=u.device)
    margins, best = [], []
    for part in u[0].split(scores.at_once()):
        z = scores.of(part)
        top = z.topk(min(_RIVALS + 1, z.shape[1]), dim=1)
        first, second = top.values[:, :1], top.values[:, 1:2]
        margins.append(z[:, wanted] - torch.where(top.indices[:, :1] == wanted, second, first))
        best.append(top.indices)
    return _Start(u, torch.cat(margins).double().cpu().numpy(), torch.cat(best))


class _Cell:
    """The cell of one token: levels look at its rivals only, ``look`` at all tokens."""

    def __init__(self, scores: GaussianScores, k: int) -> None:
        self._scores, self._k = scores, k
        self._rivals = torch.empty(0, dtype=torch.int64, device=scores.rows.device)
        self.rows = scores.rows[:0]
        self.offset = scores.offset[:0]

    def __len__(self) -> int:
        return len(self._rivals)

    def add(self, rivals: Int[Tensor, "*shape"]) -> None:
        """Take in more rivals."""
        more = torch.unique(torch.cat([self._rivals, rivals.flatten()]))
        self._rivals = more[more != self._k]
        self.rows = self._scores.rows[self._k] - self._scores.rows[self._rivals]
        self.offset = self._scores.offset[self._k] - self._scores.offset[self._rivals]

    def margins(self, u: Float[Tensor, "n h"]) -> Float[np.ndarray, " n"]:
        """Return how far each particle is ahead of the best rival."""
        size = max(1, _SCORES_AT_ONCE // max(len(self), 1) // 8)
        parts = [torch.addmm(self.offset, part, self.rows.T).amin(1) for part in u.split(size)]
        margins: Float[np.ndarray, " n"] = torch.cat(parts).double().cpu().numpy()
        return margins

    def look(
        self, u: Float[Tensor, "n h"], most: int = 1
    ) -> tuple[Bool[np.ndarray, " n"], Int[Tensor, "n j"]]:
        """Return which particles the token wins against all tokens, and the ``most`` best others of each."""
        parts = [self._look(part, most) for part in u.split(self._scores.at_once())]
        wins, best = zip(*parts, strict=True)
        return torch.cat(wins).cpu().numpy(), torch.cat(best)

    def _look(self, u: Float[Tensor, "n h"], most: int) -> tuple[Bool[Tensor, " n"], Int[Tensor, "n j"]]:
        z = self._scores.of(u)
        own = z[:, self._k].clone()
        z[:, self._k] = -math.inf
        top = z.topk(min(most, z.shape[1] - 1), dim=1)
        margin = own - top.values[:, 0]
        doubt = _DOUBT * (own.abs() + top.values[:, 0].abs())
        wins = margin > 0
        for i in (margin.abs() <= doubt).nonzero().flatten().tolist():
            close = (z[i] >= own[i] - doubt[i]).nonzero().flatten()
            wins[i] = self._exact_margin(u[i], close) > 0
        return wins, top.indices

    def _exact_margin(self, u: Float[Tensor, " h"], rivals: Int[Tensor, " c"]) -> float:
        rows, offset = self._scores.rows, self._scores.offset
        apart = rows[self._k].double() - rows[rivals].double()
        ahead = apart @ u.double() + (offset[self._k].double() - offset[rivals].double())
        return float(ahead.min()) if len(rivals) else math.inf

    def twin(self) -> int | None:
        """Return the position of a token that this one never beats, being the same but for the bias."""
        rows, offset, k = self._scores.rows, self._scores.offset, self._k
        same = (rows[:, 0] == rows[k, 0]).nonzero().flatten()
        same = same[(rows[same] == rows[k]).all(1) & (offset[same] >= offset[k]) & (same != k)]
        return int(same[0]) if len(same) else None


def _token(
    scores: GaussianScores,
    token: int,
    k: int,
    start: _TokenStart,
    options: Splitting,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> TokenShare:
    begun = time.monotonic()
    cell = _Cell(scores, k)
    twin = cell.twin()
    none = _below(options, options.floor, 0)
    share = none if twin is not None else _share(cell, start, options, rng, stop)
    return TokenShare(
        id=token,
        share=share,
        rivals=len(cell),
        twin=None if twin is None else int(scores.ids[twin]),
        seconds=time.monotonic() - begun,
    )


def _below(options: Splitting, at_most: float, levels: int) -> LogProbability:
    return LogProbability(
        verdict="below", confidence=options.confidence, levels=levels, at_most=max(at_most, options.floor)
    )


@dataclass(slots=True)
class _Level:
    """Margin to exceed, subspaces to visit inside, and ln of the share of the pilot's particles beyond it."""

    margin: float
    passed: float
    blocks: int = 0


def _share(
    cell: _Cell,
    start: _TokenStart,
    options: Splitting,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> LogProbability:
    generator = torch.Generator(start.draws.device).manual_seed(int(rng.integers(2**63)))
    chains = _Chains(cell, options.particles, rng, generator, stop)
    logs, passed = np.zeros(options.replicates), 0
    for _ in range(1 + _RETRIES):
        levels = _pilot(chains, start, options.floor)
        if levels is None:
            return _below(options, options.floor, 0)
        logs, passed = _runs(chains, start, levels)
        if passed == len(levels) + 1:
            return LogProbability.of(logs, passed, options.confidence)
        chains.particles *= 2
    return _below(options, min(lognormal_mean(logs)[0], 0.0), passed)


@dataclass(slots=True)
class _Chains:
    """How particles are copied and moved inside the cell of one token."""

    cell: _Cell
    particles: int
    rng: np.random.Generator
    generator: torch.Generator
    stop: Callable[[], bool]

    def copy(self, u: Float[Tensor, "n h"], alive: Bool[np.ndarray, "runs m"]) -> Float[Tensor, "p h"]:
        """Copy the survivors of each run."""
        first = np.arange(len(alive))[:, None] * alive.shape[1]
        chosen = (first + copies(alive, self.particles, self.rng)).ravel()
        return u[torch.as_tensor(chosen, device=u.device)]

    def move(
        self, u: Float[Tensor, "p h"], level: float, blocks: int
    ) -> tuple[Float[Tensor, "p h"], Float[np.ndarray, " p"]]:
        """Move particles inside the level; return them and their margins."""
        if self.stop():
            got = "stopped before all tokens were through"
            raise RareStopped(
                problem("the shares of all drawn tokens", got, "give it more time or draw fewer")
            )
        u, ahead = move(u, self.cell.rows, self.cell.offset - level, blocks, self.generator)
        margins: Float[np.ndarray, " p"] = ahead.double().cpu().numpy() + level
        return u, margins

    def forget(self, u: Float[Tensor, "p h"], level: float) -> tuple[Float[Tensor, "p h"], int]:
        """Move particles until they have turned far enough; return the number of subspaces that took."""
        first, blocks, cos = u, 0, 1.0
        while blocks < _FEWEST_BLOCKS or (cos > _FORGET and blocks < _MOST_BLOCKS):
            u, _ = self.move(u, level, 1)
            blocks += 1
            cos = float((first * u).sum() / (first * first).sum())
        return u, blocks


def _pilot(chains: _Chains, start: _TokenStart, floor: float) -> list[_Level] | None:
    """Find rivals, levels and moves; None if that ends below the floor."""
    if not _gather(chains, start, floor):
        return None
    for left in reversed(range(_PLANS)):
        planned = _plan(chains, start, floor)
        if planned is None:
            return None
        levels, u = planned
        # A run knows the rivals near its own particles; a new one shows whether others are missing.
        wins, best = chains.cell.look(u, _SCOUTED)
        if wins.mean() > _ENOUGH or not left:
            return levels
        chains.cell.add(best)
    raise AssertionError("the last plan is always returned")


def _gather(chains: _Chains, start: _TokenStart, floor: float) -> bool:
    """Find the rivals that matter by one adaptive run down to the cell; False if it ends below the floor."""
    cell, particles = chains.cell, chains.particles
    u, margins = start.draws[0], start.margins
    levels = [_level(margins, particles)]
    cell.add(start.best[torch.as_tensor(np.argsort(-margins)[:particles].copy())])
    keep, looks = round(particles / math.e), 0
    for _ in range(round(-4 * floor) + 8):
        level = levels[-1].margin
        alive = margins > level
        if sum(one.passed for one in levels) < floor or not alive.any():
            return False
        u, _ = chains.move(chains.copy(u, alive[None]), level, _FEWEST_BLOCKS)
        wins, best = cell.look(u, _RIVALS) if level == 0 else cell.look(u[:_SCOUTS], _SCOUTED)
        looks += level == 0
        if level == 0 and (wins.mean() > _WINNING or looks == _LOOKS):
            return True
        cell.add(best)
        margins = cell.margins(u)
        if level == 0 and (margins > 0).sum() >= keep:
            continue
        # With the new rivals the level may be out of reach again: fall back to one that is not.
        beyond = _level(margins, keep)
        while levels and levels[-1].margin >= beyond.margin:
            levels.pop()
        levels.append(beyond)
    return False


def _plan(
    chains: _Chains, start: _TokenStart, floor: float
) -> tuple[list[_Level], Float[Tensor, "p h"]] | None:
    """Fix levels and moves by one adaptive run among the rivals found; None if it ends below the floor."""
    u = start.draws[0]
    margins = chains.cell.margins(u)
    levels = [_level(margins, chains.particles)]
    while True:
        level = levels[-1]
        alive = margins > level.margin
        if sum(one.passed for one in levels) < floor or not alive.any():
            return None
        u, level.blocks = chains.forget(chains.copy(u, alive[None]), level.margin)
        if level.margin == 0:
            return levels, u
        margins = chains.cell.margins(u)
        levels.append(_level(margins, round(chains.particles / math.e)))


def _level(margins: Float[np.ndarray, " n"], keep: int) -> _Level:
    margin = next_level(margins, keep)
    return _Level(margin, math.log(max(float((margins > margin).mean()), 1 / len(margins))))


def _runs(chains: _Chains, start: _TokenStart, levels: list[_Level]) -> tuple[Float[np.ndarray, " r"], int]:
    """Run the replicates; return the log shares of the last event that all reached, and its number."""
    u = start.draws[1:].flatten(0, 1)
    r = len(start.draws) - 1
    margins = chains.cell.margins(u)
    logs = np.zeros(r)
    for k, level in enumerate(levels):
        alive = (margins > level.margin).reshape(r, -1)
        if not alive.any(axis=1).all():
            return logs, k
        logs += np.log(alive.mean(axis=1))
        u, margins = chains.move(chains.copy(u, alive), level.margin, level.blocks)
    wins, _best = chains.cell.look(u)
    shares = wins.reshape(r, -1).mean(axis=1)
    if not shares.all():
        return logs, len(levels)
    return logs + np.log(shares), len(levels) + 1
