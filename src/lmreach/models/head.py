"""From the final hidden state to the logits: matrix, bias, factor and soft cap, found by probing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from lmreach.models.trace import Trace

_FAR = 1e4  # far into saturation for every soft cap in use (30 to 50), and still a float16
_NEAR = 0.5
_ROWS = 1024  # of the head's rows are enough to see that it is a linear map


@dataclass(frozen=True)
class HeadShape:
    """What happens to z = W h + b: logits = scale * z, or cap * tanh(scale * z / cap)."""

    scale: float
    soft_cap: float | None

    def apply(self, z: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Map raw head outputs to logits in float32."""
        z = z.float()
        if self.scale != 1.0:
            z = z * self.scale
        return z if self.soft_cap is None else self.soft_cap * torch.tanh(z / self.soft_cap)


def find_head(seen: Trace) -> nn.Module | None:
    """Return the last module with a (rows, h) matrix whose output has one number per vocabulary row."""
    for call in reversed(seen.calls):
        weight = getattr(call.module, "weight", None)
        if call.result is None or call.given is None or not isinstance(weight, Tensor):
            continue
        if call.result.shape == seen.logits.shape and weight.shape == (
            seen.logits.shape[-1],
            call.given.shape[-1],
        ):
            return call.module
    return None


def is_linear(head: nn.Module, hidden: Float[Tensor, "batch length h"], tolerance: float) -> bool:
    """Whether the head is h -> W h + b on these states (some rows), relative to the largest output."""
    weight, bias = head_matrix(head), head_bias(head)
    rows = torch.arange(0, len(weight), max(1, len(weight) // _ROWS), device=weight.device)
    with torch.no_grad():
        got = head(hidden)[..., rows].double()
    expected = hidden.double() @ weight[rows].double().T
    if bias is not None:
        expected = expected + bias[rows].double()
    return bool((got - expected).abs().max() <= tolerance * expected.abs().max().clamp_min(1e-30))


def head_matrix(head: nn.Module) -> Float[Tensor, "rows h"]:
    """Return W, in the model's dtype."""
    weight: Tensor = head.weight  # type: ignore[assignment]
    return weight


def head_bias(head: nn.Module) -> Float[Tensor, " rows"] | None:
    """Return b, or None where the head adds nothing."""
    bias = getattr(head, "bias", None)
    return bias if isinstance(bias, Tensor) and bool((bias != 0).any()) else None


def find_shape(
    model: PreTrainedModel, head: nn.Module, vectors: Float[Tensor, "1 length d"], tolerance: float
) -> HeadShape | None:
    """Find factor and soft cap by putting known numbers in place of the head's output.

    Random weights give logits so small that a soft cap of 30 changes their sixth digit only, so looking at
    real logits cannot tell. Returns None where the logits are no such function of the head's output.
    """
    near, far, ramp = (
        torch.tensor(_NEAR),
        torch.tensor(_FAR),
        torch.linspace(-192, 192, head_matrix(head).shape[0]),
    )
    got_near, got_far, got = _logits_for(model, head, vectors, (near, far, ramp))
    shape = _solve(float(got_near[0]), float(got_far[0]), tolerance)
    expected = shape.apply(ramp.to(got.device)).double()
    fits = (got - expected).abs().max() <= 4 * tolerance * expected.abs().max()
    return shape if bool(fits) else None


def _solve(near: float, far: float, tolerance: float) -> HeadShape:
    slope = near / _NEAR
    if abs(far - slope * _FAR) <= 4 * tolerance * abs(far):
        return HeadShape(1.0 if abs(slope - 1) <= tolerance else slope, None)
    ratio = min(near / far, 1 - 1e-9) if far else 0.0
    slope = far * float(np.arctanh(ratio)) / _NEAR
    return HeadShape(1.0 if abs(slope - 1) <= 4 * tolerance else slope, far)


def _logits_for(
    model: PreTrainedModel, head: nn.Module, vectors: Float[Tensor, "1 length d"], values: tuple[Tensor, ...]
) -> list[Float[Tensor, " rows"]]:
    """Return the model's logits as if the head had put out ``values``, one of them at each position."""

    def replace(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        replaced = output.clone()
        for position, value in enumerate(values):
            replaced[0, position] = value.to(output)
        return replaced

    handle = head.register_forward_hook(replace)
    try:
        with torch.no_grad():
            logits: Tensor = model(inputs_embeds=vectors[:, : len(values)], use_cache=False).logits
    finally:
        handle.remove()
    return [row.double() for row in logits[0]]
