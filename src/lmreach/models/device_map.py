"""A model spread over several devices, memory and disk, by accelerate: which part goes where.

What is read directly (embeddings, head, norms outside the blocks) stays on a device. Blocks may be offloaded:
their weights are brought in for each pass, and lie on no device in between.
"""

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from accelerate import dispatch_model, infer_auto_device_map, init_empty_weights
from accelerate.utils import get_max_memory
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from lmreach.errors import InputError, problem

__all__ = ["DeviceMap", "check_spread", "is_spread", "offload_options", "read_map", "real", "spread"]

DeviceMap = dict[str, int | str]
_OFFLOADED = ("cpu", "disk")


def read_map(text: str, name: str) -> DeviceMap | None:
    """Return the map that was asked for: JSON, or a file of it; None for ``auto``.

    Raises
    ------
    InputError
        Neither, or one that is no map of names to devices.
    """
    if text == "auto":
        return None
    try:
        given = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        got = f"{text[:60]!r} ({error})"
        remedy = 'write auto, {"": "cuda:0"} or the name of a file'
        raise InputError(problem("a map of parts to devices for --device-map", got, remedy)) from error
    if not isinstance(given, dict) or not all(isinstance(place, int | str) for place in given.values()):
        remedy = f'name parts of {name}, e.g. {{"model.layers.0": "cpu"}}'
        raise InputError(problem("a map of parts to devices for --device-map", repr(given)[:60], remedy))
    return given


def offload_options(text: str, settings: Any, name: str, dtype: torch.dtype) -> dict[str, Any]:
    """Return what transformers loads a folder with so that it comes as asked."""
    return {"device_map": read_map(text, name) or _auto(settings, dtype), "offload_folder": _scratch()}


def _auto(settings: Any, dtype: torch.dtype) -> DeviceMap:
    """Fill devices in their order; what is read directly goes where no weight leaves."""
    with init_empty_weights():
        model = AutoModelForCausalLM.from_config(settings, dtype=dtype)
    model.tie_weights()
    return _filled(model)


def _filled(model: PreTrainedModel) -> DeviceMap:
    memory = get_max_memory()
    main = next(iter(memory))
    outside = {
        id(p): p.numel() * p.element_size() for name, p in model.named_parameters() if not _in_block(name)
    }
    memory[main] = max(memory[main] - sum(outside.values()), 0)
    kept_whole = list(getattr(model, "_no_split_modules", None) or ())
    found: DeviceMap = infer_auto_device_map(model, max_memory=memory, no_split_module_classes=kept_whole)
    offloaded = _OFFLOADED if main != "cpu" else ("disk",)
    return {
        part: main if place in offloaded and not _in_block(f"{part}.") else place
        for part, place in found.items()
    }


def spread(model: PreTrainedModel, text: str, name: str) -> PreTrainedModel:
    """Spread a model that stands in memory.

    Raises
    ------
    InputError
        The map does not cover the model, or names a device that is none here.
    """
    try:
        done: PreTrainedModel = dispatch_model(
            model, device_map=read_map(text, name) or _filled(model), offload_dir=_scratch()
        )
    except (ValueError, RuntimeError, KeyError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = "cover every part of it, with devices of this machine"
        raise InputError(problem(f"a map for all of {name}", reason, remedy)) from error
    return done


def check_spread(model: PreTrainedModel, name: str) -> None:
    """Refuse a model of which something that is read directly lies on no device.

    Raises
    ------
    InputError
        Naming it.
    """
    lost = [part for part, weight in model.named_parameters() if weight.is_meta and not _in_block(part)]
    if lost:
        got = f"{lost[0]} offloaded" if is_spread(model) else f"{lost[0]} nowhere"
        remedy = "offload blocks only (parts such as model.layers.7)"
        raise InputError(problem(f"embeddings, norms and head of {name} on a device", got, remedy))


def is_spread(model: nn.Module) -> bool:
    """Say whether a model lies in more than one place: it can be moved and copied no more."""
    return len(set((getattr(model, "hf_device_map", None) or {}).values())) > 1


def real(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Give all stored tensors by name, those that are offloaded as they were put away."""
    for name, tensor in model.state_dict(keep_vars=True).items():
        if not tensor.is_meta:
            yield name, tensor
            continue
        owner, _, own = name.rpartition(".")
        hook = getattr(model.get_submodule(owner), "_hf_hook", None)
        weights = getattr(hook, "weights_map", None)
        if weights is None:
            raise InputError(problem(f"weights for {name}", "none on any device", "load the model again"))
        yield name, weights[own]


def _in_block(name: str) -> bool:
    """Say whether a part lies in a list of modules, which has numbers for names."""
    return any(word.isdecimal() for word in name.split("."))


@cache
def _scratch() -> str:
    """Return the folder of what is offloaded to disk, which goes with the process."""
    folder = tempfile.TemporaryDirectory(prefix="lmreach-offload-")
    _KEPT.append(folder)
    return folder.name


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
