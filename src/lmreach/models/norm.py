"""The last normalisation before the head, as applied: found among the watched modules, fitted, verified."""

import copy
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lmreach.models.facts import FinalNorm, NormKind
from lmreach.models.trace import Call

_EMPTY = np.empty(0)
_STATES = 128  # half to fit on, half to verify with
_SPREAD = 64.0  # inputs so large that the norm's epsilon (1e-8 to 1e-5) does not show
_FIT = 1e-4

Normalise = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n d"]]


def final_norm(
    calls: list[Call], head_input: Float[Tensor, "batch length h"], blocks: list[nn.Module]
) -> FinalNorm:
    """Describe what stands between the residual stream and the head.

    Parameters
    ----------
    calls
        All calls of a pass that finished before the head was called.
    head_input
        What the head was given in that pass.
    blocks
        The model's blocks: where the last block's output goes straight to the head, there is no norm.
    """
    feeding = [
        (call, factor) for call in calls if (factor := scale_between(call.result, head_input)) is not None
    ]
    for call, factor in feeding:
        fitted = fit(call, factor)
        if fitted is not None:
            return fitted
    stream = any(call.module is block for call, _ in feeding for block in blocks)
    return FinalNorm("none" if stream else "other", _EMPTY, _EMPTY)


def scale_between(result: Tensor | None, target: Tensor) -> float | None:
    """Return c with target = c * result up to rounding, or None where there is no such factor.

    Some models divide the normed state before the head.
    """
    if result is None or result.shape != target.shape or not result.is_floating_point():
        return None
    r, t = result.double(), target.double()
    square = (r * r).sum()
    if not bool(square > 0):
        return None
    c = float((r * t).sum() / square)
    allowed = max(1e-6, torch.finfo(target.dtype).eps)  # the head may be given a rounded copy
    if not bool((t - c * r).abs().max() <= allowed * t.abs().max()):
        return None
    return 1.0 if abs(c - 1) <= allowed else c


def fit(call: Call, factor: float) -> FinalNorm | None:
    """Return the norm that a module is, found by running a copy of it; None if it is none.

    Parameters
    ----------
    call
        A call of the module, which tells the width.
    factor
        Between what the module returns and what the head is given.
    """
    outputs = _outputs(call)
    if outputs is None:
        return None
    states, values = outputs
    kinds: tuple[tuple[NormKind, Normalise], ...] = (("rms", _rms), ("layer", _layer))
    for kind, normalise in kinds:
        parameters = _gain_and_bias(normalise(states), values)
        if parameters is not None:
            gain, bias = parameters
            return FinalNorm(kind, factor * gain, factor * bias)
    return None


def _outputs(call: Call) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]] | None:
    """Return random states and what a float32 copy of the module makes of them; None if it is no norm."""
    if call.given is None or call.given.ndim != 3 or call.given.shape != call.result_shape:
        return None
    width = call.given.shape[-1]
    if sum(p.numel() for p in call.module.parameters()) > 2 * width:
        return None  # a norm has a gain and a bias at most; anything larger may need more than one argument
    copied = copy.deepcopy(call.module).float()
    generator = torch.Generator().manual_seed(0)
    # Each state has a mean of its own: with a mean near 0 the two kinds of norm would look alike.
    means = torch.randn(1, _STATES, 1, generator=generator)
    states = _SPREAD * (means + torch.randn(1, _STATES, width, generator=generator))
    with torch.no_grad():
        values = copied(states.to(call.given.device))
    return states[0].double().numpy(), values[0].double().cpu().numpy()


def _rms(states: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    normed: Float[np.ndarray, "n d"] = states / np.sqrt(np.mean(states**2, axis=-1, keepdims=True))
    return normed


def _layer(states: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    return _rms(states - states.mean(axis=-1, keepdims=True))


def _gain_and_bias(
    normed: Float[np.ndarray, "n d"], values: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]] | None:
    """Fit values = gain * normed + bias coordinate by coordinate on one half, verify on the other."""
    half = len(normed) // 2
    x, y = normed[:half], values[:half]
    centred = x - x.mean(axis=0)
    gain = (centred * y).sum(axis=0) / (centred**2).sum(axis=0)
    bias = y.mean(axis=0) - gain * x.mean(axis=0)
    size = np.abs(values).max(axis=0)  # coordinate by coordinate: some models have gains in the hundreds
    error = np.abs(gain * normed[half:] + bias - values[half:])
    if not (error <= _FIT * size + 1e-7 * size.max()).all():
        return None
    if (np.abs(bias) <= 1e-5 * size).all():
        bias = np.zeros_like(bias)  # float noise of the fit
    return gain, bias
