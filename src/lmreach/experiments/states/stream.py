"""The support of final hidden states: how far they reach, measured on prompts of real tokens.

States are streamed: memory does not grow with the number of samples.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.experiments.targets.draw import draw
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped, stoppable

__all__ = [
    "HiddenSupport",
    "StateStream",
    "UniformSample",
    "cosine_bound",
    "hidden_support",
    "state_blocks",
]

_KEPT = 2048  # states in the uniform sample behind the smallest cosine


@dataclass(frozen=True, slots=True)
class HiddenSupport:
    """What was seen of the final hidden states (after the final norm, as the head reads them).

    Attributes
    ----------
    samples
        Number of states: every position of every prompt is one.
    kinds, length
        Kinds of prompts and their length in tokens.
    l1_max, l2_max, linf_max
        Largest norms.
    low, high
        Box: smallest and largest value per coordinate, shape (h,).
    mean_cos
        Mean cosine over all pairs of distinct states, from the sum of unit vectors (no N x N matrix).
    kept, min_cos
        Size of a uniform sample of the states, and the smallest cosine between two of it, exact (None for a
        single state). The smallest cosine over all states lies in [min_cos_bound, min_cos].
    min_cos_bound
        cos(2 phi), or -1 from a right angle on: all states lie within an angle phi of one axis, and no two of
        them are further apart than 2 phi.
    ellipsoid_fraction
        Largest ||(h - b) / g||_2 / sqrt(h): 1 is the surface of the norm ellipsoid, which no state may
        leave; None where the final norm has no known gain.
    """

    samples: int
    kinds: tuple[str, ...]
    length: int
    l1_max: float
    l2_max: float
    linf_max: float
    low: Float[np.ndarray, " h"]
    high: Float[np.ndarray, " h"]
    mean_cos: float
    kept: int
    min_cos: float | None
    min_cos_bound: float
    ellipsoid_fraction: float | None


_PROMPTS_AT_ONCE = 32


def hidden_support(
    model: LoadedModel,
    *,
    positions: int,
    length: int = 64,
    kinds: tuple[str, ...] = ("random", "self"),
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> HiddenSupport | None:
    """Measure the support of final hidden states over prompts of real tokens.

    Parameters
    ----------
    positions
        States to measure over all kinds; rounded up to whole blocks of prompts.
    length
        Prompt length in tokens, cut to the model's context.
    kinds
        Kinds of prompts, as in `lmreach.experiments.targets.draw.draw`.
    stop
        Asked before every block of prompts, and within one before every block of the model.

    Returns
    -------
    HiddenSupport or None
        None if stopped before the first block.
    """
    if model.facts.context is not None:
        length = min(length, model.facts.context - 1)
    prompts = max(1, round(positions / length / len(kinds)))
    seen = StateStream(model, np.random.default_rng([seed, 3]))
    with suppress(PassStopped), stoppable(stop):
        for kind in kinds:
            ids = torch.from_numpy(draw(model, kind, prompts, length, seed=seed).ids)
            for states in state_blocks(model, ids):
                seen.add(states)
    return seen.result(kinds, length)


@torch.no_grad()
def state_blocks(model: LoadedModel, ids: Int[Tensor, "prompts n"]) -> Iterator[Float[Tensor, "k h"]]:
    """Yield the final hidden states of all positions in float64, a block of prompts at a time."""
    for block in ids.to(model.device).split(_PROMPTS_AT_ONCE):
        yield model.hidden(model.input_vectors(block)).flatten(0, 1).double()


def cosine_bound(half_angle: float) -> float:
    """Return the smallest cosine that two vectors in a cone of this half-angle (radians) can have."""
    return math.cos(2 * half_angle) if half_angle < math.pi / 2 else -1.0


class UniformSample:
    """A uniform sample of all states seen, as unit vectors: those with the smallest random keys.

    Attributes
    ----------
    units
        Shape (k, h), k at most ``size``.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size = size
        self._rng = rng
        self._keys = np.empty(0)
        self.units: Float[Tensor, "k h"] = torch.empty(0, 0, dtype=torch.float64)

    def add(self, units: Float[Tensor, "n h"]) -> None:
        """Take unit vectors in; at most ``size`` of all that ever came stay."""
        keys = np.concatenate([self._keys, self._rng.random(len(units))])
        both = units if len(self.units) == 0 else torch.cat([self.units, units])
        chosen = np.argsort(keys)[: self._size]
        self._keys, self.units = keys[chosen], both[torch.from_numpy(chosen)]

    def smallest_cosine(self) -> float | None:
        """Return the smallest cosine between two of the sample (256 rows at a time), None for fewer."""
        if len(self.units) < 2:
            return None
        return min(float((block @ self.units.T).min()) for block in self.units.split(256))


class StateStream:
    """Running extremes, sums and a uniform sample of states; its size depends on the width alone.

    Parameters
    ----------
    rng
        Chooses the sample.
    """

    def __init__(self, model: LoadedModel, rng: np.random.Generator) -> None:
        norm = model.final_norm
        self._gain = (
            torch.from_numpy(np.asarray(norm.gain)).double() if norm.kind in ("rms", "layer") else None
        )
        self._bias = torch.from_numpy(np.asarray(norm.bias)).double()
        self.samples = 0
        self._norms = torch.zeros(3, dtype=torch.float64)
        self._fraction = 0.0
        self._low: Tensor | None = None
        self._high: Tensor | None = None
        self._units: Tensor | None = None
        self._axis: Tensor | None = None
        self._least = 1.0
        self.sample = UniformSample(_KEPT, rng)

    def add(self, states: Float[Tensor, "k h"]) -> None:
        """Take states in; they are not kept."""
        states = states.cpu()
        low, high = states.amin(0), states.amax(0)
        unit = torch.nn.functional.normalize(states, dim=1)
        units = unit.sum(0)
        self.sample.add(unit)
        if self._axis is None:
            # Any axis will do for a bound; the mean of the first block is near that of all.
            self._axis = torch.nn.functional.normalize(units, dim=0)
        self._least = min(self._least, float((unit @ self._axis).min()))
        self._low = low if self._low is None else torch.minimum(self._low, low)
        self._high = high if self._high is None else torch.maximum(self._high, high)
        self._units = units if self._units is None else self._units + units
        norms = torch.stack([torch.linalg.vector_norm(states, p, dim=1).max() for p in (1, 2, float("inf"))])
        self._norms = torch.maximum(self._norms, norms)
        self.samples += states.shape[0]
        if self._gain is not None:
            live = self._gain.abs() > 0
            inner = (states - self._bias)[:, live] / self._gain[live]
            self._fraction = max(self._fraction, float(inner.norm(dim=1).max()) / states.shape[1] ** 0.5)

    @property
    def mean_direction(self) -> Float[Tensor, " h"]:
        """Unit vector along the sum of unit vectors (zeros before any state)."""
        if self._units is None:
            return torch.zeros(0, dtype=torch.float64)
        return torch.nn.functional.normalize(self._units, dim=0)

    def result(self, kinds: tuple[str, ...], length: int) -> HiddenSupport | None:
        """Return what was seen so far, or None before any state."""
        if self._low is None or self._high is None or self._units is None:
            return None
        count = self.samples
        pairs = max(count * (count - 1), 1)
        smallest = self.sample.smallest_cosine()
        return HiddenSupport(
            samples=count,
            kinds=kinds,
            length=length,
            l1_max=float(self._norms[0]),
            l2_max=float(self._norms[1]),
            linf_max=float(self._norms[2]),
            low=self._low.numpy().copy(),
            high=self._high.numpy().copy(),
            mean_cos=(float(self._units.square().sum()) - count) / pairs,
            kept=len(self.sample.units),
            min_cos=smallest,
            min_cos_bound=cosine_bound(math.acos(max(-1.0, min(1.0, self._least)))),
            ellipsoid_fraction=self._fraction if self._gain is not None else None,
        )
