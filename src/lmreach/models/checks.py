"""What every check of a model shares: how far passes may differ, and how one that fails says so."""

import torch
from torch import Tensor, nn

from lmreach.errors import ModelError, problem

__all__ = ["CALL_ERRORS", "distance", "failure", "tolerance"]

CALL_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the code of a family raises when it is called in a way that it does not know, or lacks a package."""

_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6, torch.float16: 1e-2, torch.bfloat16: 4e-2}


def failure(check: str, expected: str, got: str) -> ModelError:
    """Return the refusal of a model, naming the check that it does not pass."""
    remedy = "this model cannot be measured: use a causal language model whose inputs are plain vectors"
    return ModelError(f"check '{check}' failed: {problem(expected, got, remedy)}")


def tolerance(model: nn.Module) -> float:
    """Return how far two passes of this dtype may differ, relative to the largest number compared."""
    dtype = next(model.parameters()).dtype
    if dtype not in _TOLERANCE:
        raise ModelError(
            problem("weights in float32, float64, float16 or bfloat16", f"{dtype}", "load with dtype float32")
        )
    return _TOLERANCE[dtype]


def distance(a: Tensor, b: Tensor) -> float:
    """Return the largest difference relative to the largest number; NaN where one is not a number."""
    a, b = a.double(), b.double()
    return float((a - b).abs().max() / torch.maximum(a.abs().max(), b.abs().max()).clamp_min(1e-30))


def reason(error: BaseException) -> str:
    """Return what an error says, in one line."""
    words = str(error).split("\n", maxsplit=1)[0][:200]
    return f"{type(error).__name__}: {words}"
