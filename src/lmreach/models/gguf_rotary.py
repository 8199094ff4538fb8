"""Rotary positions of a GGUF file: base, turned coordinates, scaling, and factors kept as tensors."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from lmreach.errors import ModelError, problem
from lmreach.models.gguf_header import Header

__all__ = ["ENTRIES", "apply", "is_known"]

ENTRIES = "rope."
_FREQS, _LONG, _SHORT = "rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"
_SCALING = "rope.scaling."
_KNOWN = {
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    f"{_SCALING}type",
    f"{_SCALING}factor",
    f"{_SCALING}attn_factor",
    f"{_SCALING}original_context_length",
    f"{_SCALING}finetuned",
    f"{_SCALING}yarn_attn_factor",
    f"{_SCALING}yarn_beta_fast",
    f"{_SCALING}yarn_beta_slow",
}


def is_known(entry: str) -> bool:
    """Whether an entry that begins with `ENTRIES` is one that `apply` applies."""
    return entry in _KNOWN


def apply(header: Header, prefix: str, settings: Any) -> tuple[int | None, frozenset[str]]:
    """Set the rotary positions of ``settings``; returns the turned coordinates and the tensors used.

    Parameters
    ----------
    prefix
        Of the architecture's entries, with its dot.

    Raises
    ------
    ModelError
        For a scaling that cannot be applied exactly.

    Notes
    -----
    llama.cpp turns pair i by position x base^(-2i/n) / (factor x f_i), f from the tensor ``rope_freqs``
    where there is one (src/llama-graph.cpp, ggml_rope_ext). With such factors this is transformers' scaling
    "longrope" with the same factors for short and long sequences, and an attention factor of 1.
    """
    said: dict[str, Any] = {
        key.removeprefix(prefix): header.value(key) for key in header.entries if key.startswith(prefix)
    }
    tensors = frozenset({_FREQS, _LONG, _SHORT} & set(header.tensors))
    if getattr(settings, "rope_parameters", None) is None:
        scaled = float(said.get(f"{_SCALING}factor") or 1) != 1 or bool(tensors)
        if scaled:
            raise _refused(header, "scaled rotary positions", "a model of a kind that has none")
        return None, tensors
    nested = settings.rope_parameters.get("full_attention")
    place: dict[str, Any] = dict(settings.rope_parameters if nested is None else nested)
    base = said.get("rope.freq_base", place["rope_theta"])
    place = {"rope_theta": float(base), **_scaling(header, said, settings)}
    turned = _turned(said, settings, place)
    if nested is None:
        settings.rope_parameters = place
    else:
        local = dict(settings.rope_parameters["sliding_attention"])
        local["rope_theta"] = float(said.get("rope.freq_base_swa") or local["rope_theta"])
        settings.rope_parameters = {"full_attention": place, "sliding_attention": local}
    if nested is None and "rope.freq_base_swa" in said:
        raise _refused(header, "one base of rotary positions", "a second one for windows")
    return turned, tensors


def _turned(said: dict[str, Any], settings: Any, place: dict[str, Any]) -> int:
    """Set the share of a head that is turned where it is not all of it; returns the coordinates."""
    size = int(getattr(settings, "head_dim", None) or settings.hidden_size // settings.num_attention_heads)
    turned = int(said.get("rope.dimension_count") or size)
    if turned != size or getattr(settings, "partial_rotary_factor", None) is not None:
        place["partial_rotary_factor"] = turned / size
        if hasattr(settings, "partial_rotary_factor"):
            settings.partial_rotary_factor = turned / size
    return turned


def _scaling(header: Header, said: dict[str, Any], settings: Any) -> dict[str, Any]:
    kind = str(said.get(f"{_SCALING}type", "linear"))  # llama.cpp's default
    factor = float(said.get(f"{_SCALING}factor") or said.get("rope.scale_linear") or 1.0)
    original = int(said.get(f"{_SCALING}original_context_length") or settings.max_position_embeddings)
    attention = float(said.get(f"{_SCALING}attn_factor") or said.get(f"{_SCALING}yarn_attn_factor") or 1.0)
    if kind == "longrope" or (_LONG in header.tensors and _SHORT in header.tensors):
        if not {_LONG, _SHORT} <= set(header.tensors) or _FREQS in header.tensors:
            raise _refused(header, "both factors of longrope as tensors", "not both")
        long, short = _factors(header, _LONG), _factors(header, _SHORT)
        return _longrope(long, short, attention, original, settings.max_position_embeddings / original)
    if {_LONG, _SHORT} & set(header.tensors):
        raise _refused(header, "both factors of longrope as tensors", "one of them")
    if kind == "yarn" and _FREQS not in header.tensors:
        return _yarn(said, factor, attention, original)
    if kind not in ("none", "linear") or attention != 1:
        raise _refused(header, "rotary scaling none, linear, yarn or longrope", f"{kind!r}")
    factor = 1.0 if kind == "none" else factor
    if _FREQS in header.tensors:
        both = factor * _factors(header, _FREQS)
        return _longrope(both, both, 1.0, settings.max_position_embeddings, 1.0)
    return {"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}


def _longrope(
    long: Float[np.ndarray, " k"],
    short: Float[np.ndarray, " k"],
    attention: float,
    original: int,
    factor: float,
) -> dict[str, Any]:
    return {
        "rope_type": "longrope",
        "long_factor": [float(one) for one in long],
        "short_factor": [float(one) for one in short],
        "attention_factor": attention,
        "original_max_position_embeddings": original,
        "factor": factor,
    }


def _yarn(said: dict[str, Any], factor: float, attention: float, original: int) -> dict[str, Any]:
    # llama.cpp multiplies what it is given by 1 + 0.1 ln(factor), the factor of the YaRN paper.
    return {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": original,
        "attention_factor": attention * (1 + 0.1 * math.log(factor)),
        "beta_fast": float(said.get(f"{_SCALING}yarn_beta_fast") or 32.0),
        "beta_slow": float(said.get(f"{_SCALING}yarn_beta_slow") or 1.0),
    }


def _factors(header: Header, name: str) -> Float[np.ndarray, " k"]:
    tensor = header.tensors[name]
    if tensor.kind.name != "F32":
        raise _refused(header, f"{name} as F32", tensor.kind.name)
    with header.path.open("rb") as file:
        file.seek(tensor.begin)
        return np.frombuffer(file.read(tensor.end - tensor.begin), dtype=f"{header.order}f4")


def _refused(header: Header, expected: str, got: str) -> ModelError:
    remedy = "give the model folder that the file was made from"
    return ModelError(problem(expected, f"{got} in {header.path.name}", remedy))
