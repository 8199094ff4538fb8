"""Bring in a model folder: transformers does the work, nothing it says it filled in itself is accepted."""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from lmreach.config import DType, LoadConfig
from lmreach.errors import ModelError, problem
from lmreach.models import checkpoint, device_map, memory
from lmreach.models.adapter import base_alone, merge

LIBRARY_ERRORS = (
    ArithmeticError,
    OSError,
    ValueError,
    RuntimeError,
    KeyError,
    TypeError,
    AttributeError,
    ImportError,
    IndexError,
    SafetensorError,
    StrictDataclassError,
)
"""What transformers, tokenizers and safetensors raise for input they cannot use."""

_TOKENIZER_FILES = (
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "spiece.model",
    "*.tiktoken",
    "sentencepiece*.model",
)
_OVERHEAD = 1.1


@dataclass(frozen=True)
class BroughtIn:
    """A model as it came, before it was frozen and probed."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase | None
    stored_dtype: str
    revision: str | None = None
    notes: tuple[str, ...] = ()


def bring_in(folder: Path, name: str, config: LoadConfig, device: torch.device) -> BroughtIn:
    """Load a checked folder without opening a connection.

    Raises
    ------
    ModelError
        For anything missing, cut short, newly initialised or too large for the memory; one line, naming it.
    """
    found = checkpoint.inspect(folder, pickles=config.allow_pickle)
    dtype: torch.dtype = getattr(torch, config.dtype)
    if found.elements is not None and config.device_map is None:
        needed = int(found.elements * dtype.itemsize * _OVERHEAD)
        for place in {torch.device("cpu"), device}:  # weights are read into main memory first
            memory.require(needed, place, name)
    options = {"local_files_only": True, "trust_remote_code": config.trust_remote_code}
    try:
        settings = AutoConfig.from_pretrained(folder, **options)
        check_causal(settings, name)
        places: dict[str, Any] = {}
        if config.device_map is not None:
            places = device_map.offload_options(config.device_map, settings, name, dtype)
        with base_alone(folder) if found.adapter else nullcontext(folder) as whole:
            pair: Any = AutoModelForCausalLM.from_pretrained(
                whole, config=settings, dtype=dtype, output_loading_info=True, **options, **places
            )
        model, info = pair
        notes = check_complete(model, info, name)
        if found.adapter:
            model, note = merge(model, folder, found.adapter)
            notes = (*notes, note)
    except LIBRARY_ERRORS as error:
        raise cannot_load(name, error) from error
    tokenizer = load_tokenizer(folder, name, options)
    if config.device_map is None:
        model.to(device)
    device_map.check_spread(model, name)
    return BroughtIn(name, model, tokenizer, found.stored_dtype, notes=notes)


def check_causal(settings: Any, name: str) -> None:
    """Refuse settings of a model that is no causal language model, saying what it is.

    Raises
    ------
    ModelError
        transformers has no causal language model for them.
    """
    known = type(settings) in MODEL_FOR_CAUSAL_LM_MAPPING or "AutoModelForCausalLM" in _own_classes(settings)
    if known and not _reads_both_ways(settings):
        return
    made = ", ".join(getattr(settings, "architectures", None) or ()) or "no architecture named"
    raise ModelError(
        problem(
            "a causal language model (one that goes on with a text)",
            f"{name}, a {settings.model_type} ({made})",
            "give a decoder-only model such as a Llama, Gemma, Qwen or GPT-NeoX",
        )
    )


def _reads_both_ways(settings: Any) -> bool:
    """Whether settings are those of an encoder: many have a causal class, too, for weights trained to."""
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in settings.architectures or ()):
        return False
    one_way = getattr(settings, "is_decoder", False) or getattr(settings, "causal", False)
    encoder = type(settings) in MODEL_FOR_MASKED_LM_MAPPING or settings.is_encoder_decoder
    return encoder and not one_way


def _own_classes(settings: Any) -> dict[str, str]:
    """Return the classes that code shipped with a checkpoint brings for transformers' own names."""
    return getattr(settings, "auto_map", None) or {}


def placed(model: PreTrainedModel, device: torch.device, dtype: DType) -> PreTrainedModel:
    """Move a model to its device and its weights to a dtype.

    Only weights: buffers such as rotary frequencies stay as they are, as transformers leaves them.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.data = parameter.data.to(getattr(torch, dtype))
    on_device: Any = model
    on_device.to(device)
    return model


def cannot_load(name: str, error: BaseException) -> ModelError:
    """Say in one line what a library could not do."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Validators name the field in one line and the fault in the next.
    told = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    reason = told[:300] or type(error).__name__
    return ModelError(
        problem(
            "a causal language model that transformers can load",
            f"{name}: {reason}",
            "check its config and files",
        )
    )


def check_complete(model: PreTrainedModel, info: dict[str, Any], name: str) -> tuple[str, ...]:
    """Refuse weights that did not come from the file; return a note on tensors the model has no use for."""
    for kind in ("missing_keys", "mismatched_keys", "error_msgs"):
        if info.get(kind):
            first = ", ".join(sorted(str(key) for key in info[kind])[:3])
            raise ModelError(
                problem(
                    f"every weight of {name} in its files",
                    f"{len(info[kind])} {kind.split('_')[0]}, newly initialised instead: {first}",
                    "fetch or copy the model again; a frozen model is never filled up with random weights",
                )
            )
    unused = sorted(str(key) for key in info.get("unexpected_keys", ()))
    needed = [key for key in unused if _belongs(model, key)]
    if needed:
        raise ModelError(
            problem(
                f"a model that uses every weight stored for its parts in {name}",
                f"no place for {', '.join(needed[:3])}",
                "config.json does not match the weights: fetch the model again",
            )
        )
    return (f"{len(unused)} stored tensors have no place in this model, e.g. {unused[0]}",) if unused else ()


def _belongs(model: nn.Module, key: str) -> bool:
    """Whether a stored tensor nobody took is part of a module that takes others (a bias, a further block)."""
    parts = key.split(".")
    here: nn.Module | None = model
    for k, part in enumerate(parts):
        child = getattr(here, part, None)
        if not isinstance(child, nn.Module):
            is_list = isinstance(here, nn.ModuleList)
            return is_list or (k == len(parts) - 1 and k > 0 and _has_own(here))
        here = child
    return False


def _has_own(module: nn.Module | None) -> bool:
    return module is not None and next(module.parameters(recurse=False), None) is not None


def load_tokenizer(folder: Path, name: str, options: dict[str, Any]) -> PreTrainedTokenizerBase | None:
    """Return the folder's tokenizer, or None where no file of one is there."""
    if not any(_any_of(folder, _TOKENIZER_FILES)):
        return None
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder, **options)
    except LIBRARY_ERRORS as error:
        raise cannot_load(f"the tokenizer of {name}", error) from error
    return tokenizer


def _any_of(folder: Path, patterns: Iterable[str]) -> Iterable[Path]:
    return (path for pattern in patterns for path in folder.glob(pattern))
