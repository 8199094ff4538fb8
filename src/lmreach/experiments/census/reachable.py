"""Can the model be made to say this at all? Yes with a proof, no with a proof, or not found.

No needs a proof: a token of the text that no hidden state makes the largest. Yes needs vectors from which
greedy decoding emits the text, step by step at batch 1. Everything else is "not found within this budget".
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.config import Bos, OptimiserConfig
from lmreach.config.cramming import CramSettings
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.cram import CramResult, check_lengths, cram
from lmreach.experiments.reach.reachability import reachability_of
from lmreach.models.decode import emitted_prefix
from lmreach.models.frame import frame_of
from lmreach.models.loaded import LoadedModel
from lmreach.results import answers

__all__ = ["Answer", "Candidate", "check_search", "confirm", "search", "unreachable_token"]

_STARTS = 8  # starts optimised together
_STREAM = 22


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Vectors that are said to emit something: a certificate."""

    source: str
    vectors: Float[np.ndarray, "m d"]
    bos: Bos = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer and its ground.

    Attributes
    ----------
    verdict
        ``yes``, ``no`` or ``not found``.
    reason
        One sentence.
    m, vectors, smallest_gap, bos
        For ``yes``: the prompt that emits the text, and its smallest top-two gap.
    tried
        Pairs (m, longest start of the text that was emitted).
    seconds
        Spent.
    """

    verdict: Literal["yes", "no", "not found"]
    reason: str
    ids: Int[np.ndarray, " n"]
    m: int | None = None
    vectors: Float[np.ndarray, "m d"] | None = None
    smallest_gap: float | None = None
    bos: Bos = "none"
    tried: tuple[tuple[int, int], ...] = ()
    seconds: float = 0.0

    def written(self) -> answers.Answer:
        """Return what results hold of it: everything but the vectors."""
        return answers.Answer(
            verdict=self.verdict,
            reason=self.reason,
            ids=self.ids.tolist(),
            tokens=len(self.ids),
            m=self.m,
            bos=self.bos,
            smallest_gap=self.smallest_gap,
            tried=tuple(answers.Tried(m=m, longest_start=reach) for m, reach in self.tried),
            seconds=round(self.seconds, 3),
        )


def unreachable_token(model: LoadedModel, ids: Int[np.ndarray, " n"]) -> Answer | None:
    """Return "no" if a token is proved unreachable at every hidden state the final norm allows."""
    verdicts = reachability_of(model, tokens=np.unique(ids))
    bad = verdicts.having("unreachable")
    if not len(bad):
        return None
    # The first one in the text is named.
    token = int(next(i for i in ids.tolist() if i in set(bad.tolist())))
    reason = (
        f"token {token} ({model.text([token])}) can never be emitted: a mixture of other tokens scores at "
        f"least as high at every hidden state ({verdicts.support})"
    )
    return Answer("no", reason, ids)


def confirm(model: LoadedModel, ids: Int[np.ndarray, " n"], candidates: Iterable[Candidate]) -> Answer | None:
    """Return "yes" with the first candidate that emits the ids, fewest vectors first."""
    for one in sorted(candidates, key=lambda c: len(c.vectors)):
        vectors = torch.from_numpy(one.vectors).to(model.device)
        emission = emitted_prefix(model, vectors, ids, frame=frame_of(model, one.bos))
        if emission.reach == len(ids):
            m = len(one.vectors)
            reason = f"{_emitted_by(m)} from {one.source}, decoded again"
            return Answer("yes", reason, ids, m, one.vectors, emission.smallest_gap, one.bos)
    return None


def check_search(
    model: LoadedModel, ids: Int[np.ndarray, " n"], ms: Sequence[int], config: CramSettings
) -> list[int]:
    """Return the numbers of vectors in the order they are tried; errors as in `search`."""
    if not ms:
        raise InputError(problem("at least one number of vectors", "none", "pass -m 1 2 4"))
    order = sorted(set(ms))
    for m in order:
        check_lengths(model, m, len(ids), config)
    return order


def search(
    model: LoadedModel,
    ids: Int[np.ndarray, " n"],
    ms: Sequence[int],
    config: OptimiserConfig,
    *,
    budget_s: float,
    copy: LoadedModel | None = None,
    part: int = 0,
    why: str = "",
    stop: Callable[[], bool] = lambda: False,
    on_try: Callable[[int, int], None] = lambda m, reach: None,
) -> Answer:
    """Optimise vectors for the text, m by m, until one set is confirmed or the time is used.

    Every m gets an equal part of the time that is left, and starts anew as often as that allows.

    Parameters
    ----------
    ms
        Numbers of prompt vectors, tried in ascending order.
    copy
        A quicker copy of the model to take steps on, as in `lmreach.experiments.cramming.cram.cram`.
    why
        Why the length of the first vectors is not founded on a probe; said where nothing is found.
    part
        How many searches went before: each draws starts of its own.
    on_try
        Told m and the longest start of the text so far, after each start.

    Raises
    ------
    InputError
        No m, or one that does not fit the model.
    """
    order = check_search(model, ids, ms, config)
    begun = time.monotonic()
    tried: list[tuple[int, int]] = []
    for place, m in enumerate(order):
        left = begun + budget_s - time.monotonic()
        if left <= 0 or stop():
            break
        best = _search_one(model, ids, m, config, copy, left / (len(order) - place), part, stop, on_try)
        tried.append((m, 0 if best is None else best.reach))
        if best is not None and best.reach == len(ids):
            reason = f"{_emitted_by(m)} found by optimisation, confirmed step by step"
            seconds = time.monotonic() - begun
            gap = best.smallest_gap
            return Answer("yes", reason, ids, m, best.vectors, gap, config.bos, tuple(tried), seconds)
    seconds = time.monotonic() - begun
    furthest = max((reach for _, reach in tried), default=0)
    reason = (
        f"not found within this budget: at most {furthest} of {len(ids)} tokens came out; "
        "this proves nothing about whether it can be reached"
    )
    if why:
        reason += f". The length of the first vectors was not found by a probe: {why}"
    return Answer("not found", reason, ids, tried=tuple(tried), seconds=seconds)


def _search_one(
    model: LoadedModel,
    ids: Int[np.ndarray, " n"],
    m: int,
    config: OptimiserConfig,
    copy: LoadedModel | None,
    seconds: float,
    part: int,
    stop: Callable[[], bool],
    on_try: Callable[[int, int], None],
) -> CramResult | None:
    """Return the furthest start for one m."""
    ends, best, rounds = time.monotonic() + seconds, list[CramResult](), 0

    def take(result: CramResult) -> None:
        if not best or result.reach > best[0].reach:
            best[:] = [result]
        on_try(m, best[0].reach)

    def over() -> bool:
        found = bool(best) and best[0].reach == len(ids)
        return found or stop() or time.monotonic() > ends

    while not over():
        # The first search's seeds are what they were before there could be a second one.
        own = [] if part == 0 else [part]
        seeds = [[config.seed, _STREAM, m, rounds, k, *own] for k in range(_STARTS)]
        cram(
            model,
            np.repeat(ids[None], _STARTS, axis=0),
            m,
            config,
            generators=[np.random.default_rng(seed) for seed in seeds],
            batch_size=_STARTS,
            search=copy,
            on_result=take,
            stop=over,
        )
        rounds += 1
    return best[0] if best else None


def _emitted_by(m: int) -> str:
    return f"greedy decoding emits it from {'1 vector' if m == 1 else f'{m} vectors'}"
