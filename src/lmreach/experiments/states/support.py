"""The support of final hidden states in full: radii, box, enclosing cone, cosines, and how all of them grow.

Two passes over the same prompts: the first gathers extremes, the mean direction and a uniform sample of
states, the second the largest angle to two axes. Memory depends on the width, not on the number of states.
"""

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.errors import InputError, problem
from lmreach.experiments.states.stream import HiddenSupport, StateStream, cosine_bound, state_blocks
from lmreach.experiments.targets.draw import draw
from lmreach.models.decode import sample
from lmreach.models.loaded import LoadedModel

_PROMPTS = 32
_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Growth:
    """The support as it stood after some of the states.

    Attributes
    ----------
    what
        ``samples`` (all lengths so far) or ``length`` (prompts of this length alone).
    value
        Number of states, or prompt length in tokens.
    seen
        The support of those states.
    """

    what: str
    value: int
    seen: HiddenSupport


@dataclass(frozen=True, slots=True)
class SupportReport:
    """Everything measured of the final hidden states.

    Attributes
    ----------
    seen
        Radii, box, mean cosine (exact over all pairs) and the check against the norm ellipsoid.
    lengths
        Prompt lengths in tokens.
    mean_direction, mean_angle
        Unit vector along the sum of unit vectors, shape (h,); largest angle of a state to it, radians.
    axis, half_angle
        Axis and half-angle of the narrowest cone found that holds every state: the better of the one about
        the mean direction and of the one about the axis of the smallest cap around the uniform sample.
    least_half_angle
        No cone that holds every state is narrower: half of the largest pairwise angle in the sample.
    kept, kept_min_cos
        Size of the uniform sample, and the smallest cosine between two of it, exact. The smallest cosine over
        all states lies in [min_cos_bound, kept_min_cos].
    min_cos_bound
        cos(2 half_angle), or -1 from a right angle on: no two states in the cone are further apart.
    growth
        How the support grew, see `Growth`.
    """

    seen: HiddenSupport
    lengths: tuple[int, ...]
    mean_direction: Float[np.ndarray, " h"]
    mean_angle: float
    axis: Float[np.ndarray, " h"]
    half_angle: float
    least_half_angle: float
    kept: int
    kept_min_cos: float
    min_cos_bound: float
    growth: tuple[Growth, ...]


def prompt_lengths(context: int | None, positions: int, kinds: int = 1) -> tuple[int, ...]:
    """Return 4, 16, 64, ... and last the context limit, or the longest length that the positions afford.

    Parameters
    ----------
    context
        Context limit in tokens; None: no limit.
    positions, kinds
        States to measure, and kinds of prompts that share them. One prompt of each kind of the longest length
        takes half of the states at most: 32,768 tokens and two kinds need 131,072 positions.
    """
    end = max(positions // (2 * kinds), 1)
    end = end if context is None else min(context, end)
    shorter = (4**k for k in range(1, end.bit_length()) if 4**k < end)
    return (*shorter, end)


def prompt_counts(positions: int, lengths: tuple[int, ...]) -> dict[int, int]:
    """Return how many prompts there are of each length: states are shared evenly, but none goes without."""
    counts, left = dict[int, int](), positions
    for k, length in enumerate(sorted(lengths, reverse=True)):
        counts[length] = max(1, round(left / (len(lengths) - k) / length))
        left -= counts[length] * length
    return counts


def measure_support(
    model: LoadedModel,
    *,
    positions: int,
    lengths: tuple[int, ...],
    kinds: tuple[str, ...] = ("random", "self"),
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> SupportReport:
    """Measure the support over prompts of real tokens.

    Parameters
    ----------
    positions
        States to measure, shared evenly by lengths and kinds; every position of a prompt gives one. There is
        at least one prompt of each length and kind, so long prompts may take more.
    lengths
        Prompt lengths in tokens, each within the context.
    kinds
        ``random``, ``self``, ``text:FILE`` or ``ids:FILE``.
    say
        Called with a line before each part.

    Raises
    ------
    InputError
        For no positions, or a length outside the context.
    """
    _check(model, positions, lengths)
    # Prompts wait on disk for the second pass: sampling them again would take longer than all the rest.
    with tempfile.TemporaryFile() as spool:
        return _two_passes(model, positions, lengths, kinds, seed, say, spool)


def _two_passes(
    model: LoadedModel,
    positions: int,
    lengths: tuple[int, ...],
    kinds: tuple[str, ...],
    seed: int,
    say: Callable[[str], None],
    spool: IO[bytes],
) -> SupportReport:
    counts = prompt_counts(positions // len(kinds), lengths)
    rng = np.random.default_rng([seed, 3])
    stream, growth = StateStream(model, rng), list[Growth]()
    following, blocks = 256, 0
    for length in lengths:
        part = StateStream(model, rng)
        for kind in kinds:
            say(f"{kind} prompts of {length} tokens")
            for ids in _prompts(model, kind, length, counts[length], seed):
                np.save(spool, ids.numpy())
                blocks += 1
                states = torch.cat(list(state_blocks(model, ids))).cpu()
                for target in (part, stream):
                    target.add(states)
                if stream.samples >= following:
                    growth.append(Growth("samples", stream.samples, _result(stream, kinds, length)))
                    following = 4 * stream.samples
        growth.append(Growth("length", length, _result(part, kinds, length)))
    if following != 4 * stream.samples:
        growth.append(Growth("samples", stream.samples, _result(stream, kinds, max(lengths))))
    kept = stream.sample.units
    axes = torch.stack([stream.mean_direction, _cap_axis(kept)])
    least = torch.ones(2, dtype=torch.float64)
    say("angles to the axes of two cones")
    spool.seek(0)
    for _ in range(blocks):
        for states in state_blocks(model, torch.from_numpy(np.load(spool))):
            units = torch.nn.functional.normalize(states.cpu(), dim=1)
            least = torch.minimum(least, (units @ axes.T).amin(0))
    angles = torch.arccos(least.clamp(-1, 1))
    best, narrow = int(angles.argmin()), float(angles.min())
    seen = _result(stream, kinds, max(lengths))
    assert seen.min_cos is not None, "at least two positions"
    return SupportReport(
        seen=seen,
        lengths=lengths,
        mean_direction=axes[0].numpy(),
        mean_angle=float(angles[0]),
        axis=axes[best].numpy(),
        half_angle=narrow,
        least_half_angle=math.acos(max(-1.0, min(1.0, seen.min_cos))) / 2,
        kept=seen.kept,
        kept_min_cos=seen.min_cos,
        min_cos_bound=max(seen.min_cos_bound, cosine_bound(narrow)),
        growth=tuple(growth),
    )


def _check(model: LoadedModel, positions: int, lengths: tuple[int, ...]) -> None:
    if positions < 2:
        raise InputError(problem("at least 2 positions", str(positions), "ask for more, such as 8192"))
    context = model.facts.context
    end = math.inf if context is None else context
    bad = [n for n in lengths if not 1 <= n <= end]
    if bad or not lengths:
        limit = "no limit" if context is None else f"the context of {context}"
        got = f"{bad[0]}" if bad else "none"
        raise InputError(problem(f"prompt lengths from 1 to {limit}", got, "choose other --prompt-tokens"))


def _result(stream: StateStream, kinds: tuple[str, ...], length: int) -> HiddenSupport:
    seen = stream.result(kinds, length)
    assert seen is not None, "asked for after states came in"
    return seen


def _prompts(
    model: LoadedModel, kind: str, length: int, count: int, seed: int
) -> Iterator[Int[Tensor, "prompts n"]]:
    """Yield the prompts; random and self-sampled ones are drawn a block at a time and not kept."""
    if kind not in ("random", "self"):
        yield from torch.from_numpy(draw(model, kind, count, length, seed=seed).ids).split(_PROMPTS)
        return
    for block in range(-(-count // _PROMPTS)):
        here = min(_PROMPTS, count - block * _PROMPTS)
        own = int(np.random.SeedSequence([seed, length, block]).generate_state(1)[0])
        if kind == "random":
            yield torch.from_numpy(draw(model, kind, here, length, seed=own).ids)
        else:
            # Not by `draw`, which always samples whole blocks: one long prompt would cost as much as many.
            yield _self_sampled(model, here, length, own)


def _self_sampled(model: LoadedModel, count: int, length: int, seed: int) -> Int[Tensor, "prompts n"]:
    """Sample prompts from the model. The start token takes a position too, so none fills the context."""
    if model.facts.context is not None:
        length = min(length, model.facts.context - 1)
    start = torch.empty((count, 0), dtype=torch.int64)
    return sample(model, start, length, generator=torch.Generator().manual_seed(seed))


def _cap_axis(units: Float[Tensor, "k h"]) -> Float[Tensor, " h"]:
    """Return the axis of nearly the smallest cap around unit vectors.

    The smallest ball around them has its center on that axis wherever they fit into half a sphere; the center
    is found by stepping towards the furthest point (Badoiu and Clarkson 2003).
    """
    center = units.mean(0)
    for step in range(1, _ROUNDS + 1):
        # All have length 1, so the furthest is the one with the smallest inner product.
        furthest = units[int((units @ center).argmin())]
        center = center + (furthest - center) / (step + 1)
    return torch.nn.functional.normalize(center, dim=0)
