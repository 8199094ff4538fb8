"""A copy of a model to take optimiser steps on: the number format and attention kernel that are fastest here.

Claims are never made on it: what a step on the copy proposes is checked on the model itself. On processors
with bfloat16 instructions and on GPUs its products run several times faster than float32's, and which
attention kernel is fastest depends on machine, lengths and format, so short timed steps choose.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lmreach.errors import InputError, problem
from lmreach.models.checks import CALL_ERRORS
from lmreach.models.device_map import is_spread
from lmreach.models.loaded import LoadedModel
from lmreach.models.memory import available_bytes

SearchDType = Literal["auto", "float32", "float16", "bfloat16"]

_ROWS, _POSITIONS = 8, 12
_TIMED, _PRODUCTS = 2, 5
# A change must be clearly faster: a choice on the edge would differ from run to run, and results with it.
_WORTH_A_FORMAT, _WORTH_A_KERNEL = 1.5, 1.2
# Where a step is this quick (seconds), overheads decide and there is nothing to gain.
_QUICK = 0.05
# Of slow models, no more steps are timed once so many seconds went into one format and kernel.
_ENOUGH = 1.0
_KERNELS = ("sdpa", "eager")


@dataclass(frozen=True, slots=True)
class SearchCopy:
    """What steps are taken on, and why.

    Attributes
    ----------
    model
        The copy, or the model itself.
    dtype, attention
        Its number format and attention kernel.
    seconds
        ``"dtype attention"`` -> seconds of one probing step; empty where nothing was to choose.
    """

    model: LoadedModel
    dtype: str
    attention: str
    seconds: dict[str, float]


def search_copy(model: LoadedModel, dtype: SearchDType = "auto") -> SearchCopy:
    """Choose number format and attention kernel by timed steps.

    Parameters
    ----------
    dtype
        Number format of the copy; ``auto``: the model's own, or bfloat16 for a float32 model if there is
        memory for it and its steps are at least 1.5 times faster.

    Notes
    -----
    A copy in the model's own format shares its weights; one in another holds its own. Steps of 8 rows by
    12 positions, the fastest of three, or of two where they take long; on a CPU in seconds of the
    processor. Models whose step takes under 0.05 s are left as they are: their runs are short, and
    results then never hang on a timing. Where the processor multiplies bfloat16 matrices no faster than
    float32 ones, no copy in bfloat16 is made.
    """
    plain = dtype in ("auto", _name(model.dtype))
    if is_spread(model.model) and plain:
        return untimed(model)
    seconds = {_label(model): step_seconds(model)} if plain else {}
    own = model if plain else _timed(lambda: twin(model, getattr(torch, dtype)), seconds)
    if own is None:
        wanted = f"a format for --search-dtype that {model.facts.name} runs in"
        raise InputError(problem(wanted, dtype, "leave --search-dtype out"))
    if seconds[_label(own)] < _QUICK:
        return _found(own, seconds)
    best = _quickest(own, seconds)
    if dtype == "auto" and model.dtype == torch.float32 and _has_room(model) and _multiplies_faster(model):
        rough = _timed(lambda: twin(model, torch.bfloat16), seconds)
        if rough is not None:
            rough = _quickest(rough, seconds)
            if _WORTH_A_FORMAT * seconds[_label(rough)] <= seconds[_label(best)]:
                best = rough
    return _found(best, seconds)


def _timed(made: Callable[[], LoadedModel], seconds: dict[str, float]) -> LoadedModel | None:
    """Return a copy and note what its step took; None where the family knows no such format or kernel."""
    try:
        found = made()
        seconds[_label(found)] = step_seconds(found)
    except CALL_ERRORS:
        return None
    return found


def untimed(model: LoadedModel) -> SearchCopy:
    """Return the model itself, where there is no time to choose."""
    return _found(model, {})


def _found(model: LoadedModel, seconds: dict[str, float]) -> SearchCopy:
    rounded = {label: round(value, 5) for label, value in seconds.items()}
    return SearchCopy(model, _name(model.dtype), _attention(model), rounded)


def twin(model: LoadedModel, dtype: torch.dtype, attention: str | None = None) -> LoadedModel:
    """Return a copy with the parameters in ``dtype`` (shared where they are already) and its own settings.

    Buffers keep their format: rotary frequencies in 16 bits would be other positions.

    Raises
    ------
    InputError
        The model is spread over several places.
    """
    if is_spread(model.model):
        got = f"{model.facts.name} spread by --device-map"
        remedy = f"use --dtype {_name(dtype)} for the whole of it, or no --device-map"
        raise InputError(problem("a model in one place to copy", got, remedy))
    memo: dict[int, Any] = {}
    for parameter in model.model.parameters():
        memo[id(parameter)] = (
            parameter
            if parameter.dtype == dtype
            else nn.Parameter(parameter.detach().to(dtype), requires_grad=False)
        )
    made = copy.copy(model)
    inner = copy.deepcopy({"model": model.model, "wiring": model.wiring}, memo)
    for name, value in inner.items():
        object.__setattr__(made, name, value)
    for of_the_original in ("input_rms", "cache_record"):
        made.__dict__.pop(of_the_original, None)
    if attention is not None and attention != _attention(model):
        made.model.set_attn_implementation(attention)
    return made


def _has_room(model: LoadedModel) -> bool:
    """Whether a copy of the weights in 16 bits fits beside the model, with as much again to work in."""
    numbers = sum(parameter.numel() for parameter in model.model.parameters())
    return available_bytes(model.device) > 4 * numbers


def _multiplies_faster(model: LoadedModel) -> bool:
    """Whether a product as large as those of a step is faster in bfloat16 than in float32."""
    width = model.facts.width
    rows = torch.ones(_ROWS * _POSITIONS, width, device=model.device)
    weight = torch.ones(4 * width, width, device=model.device)
    seconds = [
        _product_seconds(rows.to(dtype), weight.to(dtype)) for dtype in (torch.float32, torch.bfloat16)
    ]
    return seconds[1] < seconds[0]


def _product_seconds(rows: Tensor, weight: Tensor) -> float:
    """Return the seconds of the fastest of a few products."""
    times = []
    for _ in range(_PRODUCTS):
        begun = time.perf_counter()
        nn.functional.linear(rows, weight)
        if rows.device.type == "cuda":
            torch.cuda.synchronize(rows.device)
        times.append(time.perf_counter() - begun)
    return min(times)


def _quickest(model: LoadedModel, seconds: dict[str, float]) -> LoadedModel:
    """Return the model, timed already, or the same with a clearly quicker kernel; notes what each took."""
    own = seconds[_label(model)]
    if _attention(model) not in _KERNELS:
        return model
    kernel = next(k for k in _KERNELS if k != _attention(model))
    other = _timed(lambda: twin(model, model.dtype, kernel), seconds)
    if other is None:
        return model
    return other if _WORTH_A_KERNEL * seconds[_label(other)] <= own else model


def step_seconds(model: LoadedModel) -> float:
    """Return the seconds of one forward and backward pass of vectors through the blocks and the head.

    On a CPU those of the processor: what is chosen decides outcomes, and other programs must not decide it.
    """
    on_cpu = model.device.type == "cpu"
    return _least_seconds(model, time.process_time if on_cpu else time.perf_counter)


def step_wall_seconds(model: LoadedModel) -> float:
    """Return the seconds of one such pass by the clock on the wall."""
    return _least_seconds(model, time.perf_counter)


def _least_seconds(model: LoadedModel, now: Callable[[], float]) -> float:
    generator = torch.Generator().manual_seed(0)
    shape = (_ROWS, min(_POSITIONS, model.facts.context or _POSITIONS), model.facts.width)
    vectors = (model.input_rms * torch.randn(shape, generator=generator)).to(model.device)
    times: list[float] = []
    while len(times) < 2 or (len(times) < 1 + _TIMED and sum(times) < _ENOUGH):
        times.append(_timed_step(model, vectors, now))
    return min(times)


def _timed_step(model: LoadedModel, vectors: Tensor, now: Callable[[], float]) -> float:
    leaf = vectors.clone().requires_grad_(True)
    begun = now()
    hidden = model.hidden(leaf)
    logits = model.head_logits(hidden)
    torch.autograd.grad(torch.logsumexp(logits, dim=-1).sum(), leaf)
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    return now() - begun


def _attention(model: LoadedModel) -> str:
    return str(getattr(model.model.config, "_attn_implementation", None))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _label(model: LoadedModel) -> str:
    return f"{_name(model.dtype)} {_attention(model)}"
