"""From the final hidden state to the logits: matrix, bias, factor and soft cap, found by probing."""

import dataclasses
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
_WIDEST = 192.0
_ROWS = 1024  # of the head's rows are enough to see that it is a linear map


@dataclass(frozen=True)
class HeadShape:
    """What happens to z = W h + b: logits = scale * z, or cap * tanh(scale * z / cap).

    Attributes
    ----------
    scale, soft_cap
        As in the formula; ``soft_cap`` is None where nothing is capped.
    divides
        Whether the model divides by 1 / scale instead of multiplying, which rounds differently.
    widens
        Whether it goes over to float32 first; otherwise every step is rounded to the format of z, and in 16
        bits logits that differ in float32 may tie.
    exact
        Whether `apply` gave the model's own logits to the last bit when the model was probed.
    """

    scale: float
    soft_cap: float | None
    divides: bool = False
    widens: bool = True
    exact: bool = True

    def apply(self, z: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Map raw head outputs to the logits, rounded as the model rounds them, in float32."""
        if self.widens:
            z = z.float()
        if self.scale != 1.0:
            z = z / _tidy(1 / self.scale) if self.divides else z * self.scale
        if self.soft_cap is not None:
            z = torch.tanh(z / self.soft_cap) * self.soft_cap
        return z.float()


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

    Notes
    -----
    Factor and cap are read off in float64, whatever the model's format. How the model rounds on the way is
    found by trying each way on numbers of its own format and keeping the one that gives the same bits.
    """
    rows, device = head_matrix(head).shape[0], vectors.device
    length = vectors.shape[1]
    known = torch.tensor([_NEAR, _FAR] * length, dtype=torch.float64, device=device)[:length, None]
    got_near, got_far = _logits_for(model, head, vectors, known.expand(length, rows))[:2, 0].tolist()
    scale, soft_cap = _solve(got_near, got_far, tolerance)
    values = _values(head_matrix(head).dtype, rows * length).to(device).reshape(-1, rows)
    got = _logits_for(model, head, vectors, values)
    ways = [
        HeadShape(scale, soft_cap, divides, widens) for widens in (False, True) for divides in (False, True)
    ]
    errors = [float((shape.apply(values).double() - got).abs().max()) for shape in ways]
    least = min(errors)
    if not least <= 4 * tolerance * float(got.abs().max()):
        return None
    return dataclasses.replace(ways[errors.index(least)], exact=least == 0)


def _values(dtype: torch.dtype, count: int) -> Tensor:
    """Return ``count`` numbers of a format, as they come out of heads: evenly spaced, or spread over all."""
    plain = torch.linspace(-_WIDEST, _WIDEST, count).to(dtype)
    if dtype not in (torch.float16, torch.bfloat16):
        return plain
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)
    every = every[every.abs() <= _WIDEST]  # NaN drops out too
    picked = torch.linspace(0, len(every) - 1, count - count // 2).long()
    return torch.cat([plain[: count // 2 * 2 : 2], every[picked]])


def _solve(near: float, far: float, tolerance: float) -> tuple[float, float | None]:
    slope = near / _NEAR
    if abs(far - slope * _FAR) <= 4 * tolerance * abs(far):
        return _tidy(slope), None
    ratio = min(near / far, 1 - 1e-9) if far else 0.0
    return _tidy(far * float(np.arctanh(ratio)) / _NEAR), _tidy(far)


def _tidy(value: float) -> float:
    """Return the number of six digits that a measured one stands for, or itself where it stands for none.

    A model that goes over to float32 shows its constants to seven digits only.
    """
    short = float(f"{value:.6g}")
    return short if abs(short - value) <= 2e-7 * abs(value) else value


def _logits_for(
    model: PreTrainedModel,
    head: nn.Module,
    vectors: Float[Tensor, "1 length d"],
    values: Float[Tensor, "length rows"],
) -> Float[Tensor, "length rows"]:
    """Return the model's logits, in float64, as if the head had put out ``values``."""

    def replace(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        return values[None].clone()  # later steps may work in place

    handle = head.register_forward_hook(replace)
    try:
        with torch.no_grad():
            logits: Tensor = model(inputs_embeds=vectors.clone(), use_cache=False).logits
    finally:
        handle.remove()
    return logits[0].double()
