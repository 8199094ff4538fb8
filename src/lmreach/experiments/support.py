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
from lmreach.experiments.geometry import HiddenSupport, StateStream, state_blocks
from lmreach.experiments.targets import draw
from lmreach.models.loaded import LoadedModel

_PROMPTS = 32
_KEPT = 2048  # states in the uniform sample behind the smallest cosine and the axis of the narrow cone
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


def prompt_lengths(context: int | None, longest: int = 1024) -> tuple[int, ...]:
    """Return 4, 16, 64, ... and last the context limit (or ``longest`` if that is smaller), in tokens."""
    end = longest if context is None else min(context, longest)
    return tuple(sorted({*(n for n in (4, 16, 64, 256, 1024, 4096, 16384) if n < end), max(end, 1)}))


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
        States to measure, shared evenly by lengths and kinds; every position of a prompt gives one.
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
    share = positions / len(lengths) / len(kinds)
    stream, sample, growth = StateStream(model), _Sample(seed), list[Growth]()
    following, blocks = 256, 0
    for length in lengths:
        part = StateStream(model)
        for kind in kinds:
            say(f"{kind} prompts of {length} tokens")
            for ids in _prompts(model, kind, length, max(1, round(share / length)), seed):
                np.save(spool, ids.numpy())
                blocks += 1
                states = torch.cat(list(state_blocks(model, ids))).cpu()
                for target in (part, stream, sample):
                    target.add(states)
                if stream.samples >= following:
                    growth.append(Growth("samples", stream.samples, _result(stream, kinds, length)))
                    following = 4 * stream.samples
        growth.append(Growth("length", length, _result(part, kinds, length)))
    if following != 4 * stream.samples:
        growth.append(Growth("samples", stream.samples, _result(stream, kinds, max(lengths))))
    kept = sample.units
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
    smallest = _smallest_cosine(kept)
    return SupportReport(
        seen=_result(stream, kinds, max(lengths)),
        lengths=lengths,
        mean_direction=axes[0].numpy(),
        mean_angle=float(angles[0]),
        axis=axes[best].numpy(),
        half_angle=narrow,
        least_half_angle=math.acos(max(-1.0, min(1.0, smallest))) / 2,
        kept=len(kept),
        kept_min_cos=smallest,
        min_cos_bound=math.cos(2 * narrow) if narrow < math.pi / 2 else -1.0,
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
        raise InputError(problem(f"prompt lengths from 1 to {limit}", got, "choose other --lengths"))


def _result(stream: StateStream, kinds: tuple[str, ...], length: int) -> HiddenSupport:
    seen = stream.result(kinds, length)
    assert seen is not None, "asked for after states came in"
    return seen


def _prompts(
    model: LoadedModel, kind: str, length: int, count: int, seed: int
) -> Iterator[Int[Tensor, "prompts n"]]:
    """Yield the prompts; random and self-sampled ones are drawn a block at a time and not kept."""
    if kind == "self" and model.facts.context is not None:
        # A sampled prompt starts from one more position, which must fit too.
        length = min(length, model.facts.context - 1)
    if kind not in ("random", "self"):
        yield from torch.from_numpy(draw(model, kind, count, length, seed=seed).ids).split(_PROMPTS)
        return
    for block in range(-(-count // _PROMPTS)):
        here = min(_PROMPTS, count - block * _PROMPTS)
        own = int(np.random.SeedSequence([seed, length, block]).generate_state(1)[0])
        yield torch.from_numpy(draw(model, kind, here, length, seed=own).ids)


class _Sample:
    """A uniform sample of all states seen, as unit vectors: those with the smallest random keys."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 3])
        self._keys = np.empty(0)
        self.units: Float[Tensor, "k h"] = torch.empty(0)

    def add(self, states: Float[Tensor, "k h"]) -> None:
        """Take states in; at most a fixed number stays."""
        units = torch.nn.functional.normalize(states.cpu(), dim=1)
        keys = np.concatenate([self._keys, self._rng.random(len(units))])
        both = units if len(self.units) == 0 else torch.cat([self.units, units])
        chosen = np.argsort(keys)[:_KEPT]
        self._keys, self.units = keys[chosen], both[torch.from_numpy(chosen)]


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


def _smallest_cosine(units: Float[Tensor, "k h"]) -> float:
    """Return the smallest cosine between two rows, 256 rows at a time."""
    return min(float((block @ units.T).min()) for block in units.split(256))
