"""One forward pass with every module watched: who was called, with what, and what came out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel


@dataclass(frozen=True)
class Call:
    """One module's call: the first activation it was given and the first tensor it returned (copies)."""

    name: str
    module: nn.Module
    given: Tensor | None
    result: Tensor | None

    @property
    def result_shape(self) -> torch.Size | None:
        """Shape of what came out, or None where no tensor did."""
        return None if self.result is None else self.result.shape


@dataclass(frozen=True)
class Trace:
    """A pass: final logits and all calls, in the order in which the modules finished (inner ones first)."""

    logits: Float[Tensor, "batch length rows"]
    calls: tuple[Call, ...]

    def of(self, module: nn.Module) -> list[Call]:
        """Return the calls of one module, in order."""
        return [call for call in self.calls if call.module is module]


def trace(model: PreTrainedModel, **inputs: Tensor) -> Trace:
    """Run ``model`` without cache and gradients, recording every module."""
    calls: list[Call] = []

    def record(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            given = _activation([*args, *kwargs.values()])
            calls.append(Call(name, module, given, _first_tensor(output)))

        return hook

    handles = [m.register_forward_hook(record(n), with_kwargs=True) for n, m in model.named_modules()]
    try:
        with torch.no_grad():
            # A pass may change its inputs in place, and the next one is to be given the same.
            output = model(**{name: each.clone() for name, each in inputs.items()}, use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    return Trace(output.logits.detach().clone(), tuple(calls))


def _activation(values: Iterable[Any]) -> Tensor | None:
    """Return a copy of the (batch, length, width) tensor among the arguments, or of the first tensor.

    Blocks are handed positions, masks and caches too, in an order that differs by family.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    wide = [t for t in tensors if t.is_floating_point() and t.ndim == 3]
    for tensor in [*wide, *tensors]:
        return tensor.detach().clone()
    return None


def _first_tensor(output: Any) -> Tensor | None:
    if isinstance(output, Tensor):
        return output.detach().clone()
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
        return output[0].detach().clone()
    return None
