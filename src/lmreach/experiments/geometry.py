"""The support of final hidden states: how far they reach, measured on prompts of real tokens.

States are streamed: memory does not grow with the number of samples.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmreach.experiments.targets import draw
from lmreach.models.loaded import LoadedModel

__all__ = ["HiddenSupport", "StateStream", "hidden_support", "state_blocks"]


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
        Kinds of prompts, as in `lmreach.experiments.targets.draw`.
    stop
        Asked before every block.

    Returns
    -------
    HiddenSupport or None
        None if stopped before the first block.
    """
    if model.facts.context is not None:
        length = min(length, model.facts.context - 1)
    prompts = max(1, round(positions / length / len(kinds)))
    seen = StateStream(model)
    for kind in kinds:
        ids = torch.from_numpy(draw(model, kind, prompts, length, seed=seed).ids)
        for states in state_blocks(model, ids):
            if stop():
                break
            seen.add(states)
    return seen.result(kinds, length)


@torch.no_grad()
def state_blocks(model: LoadedModel, ids: Int[Tensor, "prompts n"]) -> Iterator[Float[Tensor, "k h"]]:
    """Yield the final hidden states of all positions in float64, a block of prompts at a time."""
    for block in ids.to(model.device).split(_PROMPTS_AT_ONCE):
        yield model.hidden(model.input_vectors(block)).flatten(0, 1).double()


class StateStream:
    """Running extremes and sums of states; its size depends on the width alone."""

    def __init__(self, model: LoadedModel) -> None:
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

    def add(self, states: Float[Tensor, "k h"]) -> None:
        """Take states in; they are not kept."""
        states = states.cpu()
        low, high = states.amin(0), states.amax(0)
        units = torch.nn.functional.normalize(states, dim=1).sum(0)
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
            ellipsoid_fraction=self._fraction if self._gain is not None else None,
        )
