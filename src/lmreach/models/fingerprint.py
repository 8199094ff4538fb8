"""One short name for a model: its weights, and the settings that they are computed with."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lmreach.models.device_map import real

__all__ = ["fingerprint", "settings_of", "weights_fingerprint"]

_CHUNK = 1 << 24  # elements copied from the device at once

# Settings that no logit depends on; everything else counts, whether this version of a family reads it or not.
_NO_LOGIT = {
    "_attn_implementation",
    "_attn_implementation_internal",
    "_commit_hash",
    "_name_or_path",
    "architectures",
    "auto_map",
    "bos_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "id2label",
    "initializer_range",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "problem_type",
    "return_dict",
    "sep_token_id",
    "task_specific_params",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}


def fingerprint(model: nn.Module) -> str:
    """Return ``WEIGHTS-SETTINGS``: 16 hex digits of `weights_fingerprint`, 8 of the settings' sha256.

    Two models of one fingerprint give the same logits up to rounding; another value of any setting that
    could change one gives another fingerprint, also where the weights are the same.
    """
    return f"{weights_fingerprint(model)}-{_settings_fingerprint(model)}"


def weights_fingerprint(model: nn.Module) -> str:
    """Return sha256 over names, shapes, dtypes and bytes of all stored tensors, first 16 hex digits.

    A tensor under two names (a tied head) is read once; under the second name only the tie counts.
    """
    digest = hashlib.sha256()
    # What is read back from where it was put away is gone after its turn, and the next may have its place.
    staying = {id(tensor) for tensor in model.state_dict(keep_vars=True).values() if not tensor.is_meta}
    seen: dict[int, str] = {}
    for name, tensor in real(model):
        digest.update(f"{name}|{tuple(tensor.shape)}|{tensor.dtype}|".encode())
        first = seen.setdefault(id(tensor), name) if id(tensor) in staying else name
        if first == name:
            _update(digest, tensor)
        else:
            digest.update(f"={first}".encode())
    return digest.hexdigest()[:16]


def settings_of(model: nn.Module) -> dict[str, Any]:
    """Return the settings in the model's config that its logits may depend on, JSON-ready.

    What is null or false is left out: a setting that a newer version of a family brings with it, switched
    off, names no other model. Numbers that JSON has no word for (Mamba's steps go up to infinity) are words.
    """
    found = _finite(_settings(model))
    assert isinstance(found, dict)
    return found


def _settings(model: nn.Module) -> dict[str, Any]:
    config = getattr(model, "config", None)
    if config is None:
        return {}
    whole = json.loads(json.dumps(config.to_dict(), sort_keys=True, default=str))
    kept = _kept(whole)
    assert isinstance(kept, dict)
    return kept


def _settings_fingerprint(model: nn.Module) -> str:
    text = json.dumps(_settings(model), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _kept(value: Any) -> Any:
    if isinstance(value, Mapping):
        pairs = ((name, _kept(one)) for name, one in value.items() if name not in _NO_LOGIT)
        return {name: one for name, one in pairs if one is not None and one is not False and one != {}}
    return [_kept(one) for one in value] if isinstance(value, list) else value


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _update(digest: "hashlib._Hash", tensor: Tensor) -> None:
    flat = tensor.detach().contiguous().reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        piece = flat[start : start + _CHUNK].cpu().contiguous()
        digest.update(piece.view(torch.uint8).numpy().data)
