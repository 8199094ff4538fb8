"""What the header of a GGUF file means for a model: each entry used, applied here, or refused.

transformers reads some entries of a header and passes over the others; which positions are turned by which
angle, or by what queries are scaled, may then be another model's. What it passes over is applied here as
llama.cpp applies it (src/llama-model.cpp), and what neither knows is refused by name.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig
from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

from lmreach.errors import ModelError, problem
from lmreach.models import gguf_rotary
from lmreach.models.folder import LIBRARY_ERRORS, cannot_load, check_causal
from lmreach.models.gguf_header import Header, Value, write_outline

__all__ = ["Meaning", "meaning_of"]

# Names that transformers has for architectures of llama.cpp.
_OTHER_NAMES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "gpt-oss": "gpt_oss",
    "minimax-m2": "minimax_m2",
}
_EPS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
# Entry -> settings it may mean; the first that the family has is set. transformers may have set another.
_SETTINGS: dict[str, tuple[str, ...]] = {
    "context_length": ("n_positions", "max_position_embeddings"),
    "feed_forward_length": ("n_inner", "intermediate_size"),
    "attention.layer_norm_rms_epsilon": _EPS,
    "attention.layer_norm_epsilon": _EPS,
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
}
_HERE = {*_SETTINGS} - {"feed_forward_length", "attention.layer_norm_rms_epsilon"}
# Where a family has no such setting, shapes of tensors say the same: they are checked as weights are loaded.
_IN_SHAPES = {"feed_forward_length", "expert_feed_forward_length", "expert_shared_feed_forward_length"}
# A feature that 0 or false switches off.
_OFF = {
    "attention.clamp_kqv",
    "attention.max_alibi_bias",
    "attention.head_count",
    "attention.head_count_kv",
    "attn_logit_softcapping",
    "expert_count",
    "expert_shared_count",
    "expert_used_count",
    "feed_forward_length",
    "final_logit_softcapping",
    "nextn_predict_layers",
    "ssm.dt_b_c_rms",
}
_WINDOWED = {"gemma2", "gemma3_text", "gpt_oss", "mistral", "phi3", "starcoder2"}
# The largest Gemma of a generation scales queries by width over heads; llama.cpp knows it by its blocks.
_BY_WIDTH = {"gemma2": 46, "gemma3_text": 62}
_ABOUT_THE_FILE = ("general", "tokenizer", "quantize", "split", "imatrix")


@dataclass(frozen=True)
class Meaning:
    """What a header says of a model.

    Attributes
    ----------
    settings
        Its transformers config, every entry applied.
    rotary
        Coordinates of a head that are turned by position; None for models without.
    tensors
        Names of tensors that are part of the settings.
    note
        What was used, for the reader.
    """

    settings: Any
    rotary: int | None
    tensors: frozenset[str]
    note: str


def meaning_of(header: Header) -> Meaning:
    """Return the settings that a header means.

    Raises
    ------
    ModelError
        For a file that is no whole causal language model, or an entry that cannot be applied.
    """
    _check_kind(header)
    settings = _as_transformers_reads(header)
    check_causal(settings, header.path.name)
    reading = _Reading(header, settings)
    reading.apply()
    rotary, tensors = gguf_rotary.apply(header, reading.prefix, settings)
    return Meaning(settings, rotary, tensors, reading.note(tensors))


def _check_kind(header: Header) -> None:
    """Refuse what is not one whole model, saying what it is."""
    name, kind = header.path.name, header.text("general.type")
    architecture = header.text("general.architecture")
    if kind == "adapter" or "adapter.type" in header.entries:
        remedy = "merge it into its base model (llama-export-lora) and give the merged file"
        raise ModelError(problem("a model", f"{name}, a LoRA adapter", remedy))
    if kind == "mmproj" or architecture == "clip":
        got = f"{name}, the vision or audio part of one"
        raise ModelError(problem("a language model", got, "give the file of the language model beside it"))
    count, number = header.value("split.count"), header.value("split.no")
    if isinstance(count, int) and count > 1:
        part = f"part {int(number) + 1} of {count}" if isinstance(number, int) else f"one of {count} parts"
        remedy = "join them (llama-gguf-split --merge FIRST OUT) and give the joined file"
        raise ModelError(problem("a whole GGUF file", f"{name}, {part}", remedy))
    if architecture is None:
        raise ModelError(
            problem("general.architecture in the header", f"none in {name}", "convert the model again")
        )


def _as_transformers_reads(header: Header) -> Any:
    """Let transformers read the settings, from a copy without the token tables (with them: 14 s)."""
    with tempfile.TemporaryDirectory() as folder:
        write_outline(header, Path(folder) / header.path.name)
        try:
            return AutoConfig.from_pretrained(folder, gguf_file=header.path.name, local_files_only=True)
        except LIBRARY_ERRORS as error:
            raise cannot_load(header.path.name, error) from error


class _Reading:
    """Goes through the entries of a header and keeps count of what became of each."""

    def __init__(self, header: Header, settings: Any) -> None:
        self.header, self.settings = header, settings
        self.architecture = header.text("general.architecture") or ""
        self.prefix = f"{self.architecture}."
        mapping: Any = GGUF_CONFIG_MAPPING
        known = mapping.get(_OTHER_NAMES.get(self.architecture, self.architecture), {})
        self.read = {entry for entry, setting in known.items() if setting is not None}
        self.used: list[str] = []

    def apply(self) -> None:
        """Apply every entry, or refuse it."""
        self._heads()
        for key in self.header.entries:
            if key.startswith(self.prefix):
                entry = key.removeprefix(self.prefix)
                if not self._entry(entry, self.header.value(key)):
                    raise self._unknown(key)
                self.used.append(entry)
            elif key.partition(".")[0] not in _ABOUT_THE_FILE and not self._of_a_tool(key):
                raise self._unknown(key)
        self._query_scale()
        if self.settings.model_type == "mistral" and not self._has("attention.sliding_window"):
            self.settings.sliding_window = None  # transformers' default is that of the first Mistral

    def note(self, tensors: frozenset[str]) -> str:
        """Say what was used."""
        also = f", and {', '.join(sorted(tensors))}" if tensors else ""
        return f"of the GGUF header these settings were used: {', '.join(sorted(self.used))}{also}"

    def _entry(self, entry: str, value: Value) -> bool:
        """Apply an entry; False where it cannot be."""
        if entry.startswith(gguf_rotary.ENTRIES):
            return gguf_rotary.is_known(entry)
        if entry in _OFF and value == 0:
            return True
        own: dict[str, Callable[[], bool]] = {
            "attention.causal": lambda: value is True,
            "attention.key_length": lambda: self._head_size() == value,
            "attention.value_length": lambda: self._head_size() == value,
            "attention.scale": lambda: hasattr(self.settings, "query_pre_attn_scalar"),
            "attention.sliding_window": lambda: self._window(value),
            "attention.sliding_window_pattern": lambda: self._pattern(value),
            "use_parallel_residual": lambda: getattr(self.settings, "use_parallel_residual", None) == value,
            "tensor_data_layout": lambda: value == "Meta AI original pth",
            "attention.max_alibi_bias": lambda: self.settings.model_type == "bloom" and value == 8,
        }
        if entry in own:
            return own[entry]() or (entry in self.read and not entry.startswith("attention.key"))
        if entry in _HERE or entry not in self.read:
            return self._set(entry, value) or entry in self.read
        return True

    def _set(self, entry: str, value: Value) -> bool:
        names = [name for name in _SETTINGS.get(entry, ()) if hasattr(self.settings, name)]
        if names:
            setattr(self.settings, names[0], value)
        return bool(names) or entry in _IN_SHAPES

    def _has(self, entry: str) -> bool:
        return f"{self.prefix}{entry}" in self.header.entries

    def _heads(self) -> None:
        """Set the size of a head: as said, or width over heads, which is what llama.cpp takes."""
        if "head_dim" not in vars(self.settings) or self.settings.model_type == "gemma4_text":
            return
        size = self.header.value(f"{self.prefix}attention.key_length")
        self.settings.head_dim = (
            size if size is not None else self.settings.hidden_size // self.settings.num_attention_heads
        )

    def _head_size(self) -> int:
        size = getattr(self.settings, "global_head_dim", None) or getattr(self.settings, "head_dim", None)
        return int(size or self.settings.hidden_size // self.settings.num_attention_heads)

    def _window(self, value: Value) -> bool:
        if value == 0:
            return not getattr(self.settings, "sliding_window", None)
        if self.settings.model_type not in _WINDOWED:
            return False
        # Some families keep half of what they are given; transformers has done so where it reads the entry.
        if "attention.sliding_window" not in self.read:
            self.settings.sliding_window = value
        return True

    def _pattern(self, value: Value) -> bool:
        if not getattr(self.settings, "layer_types", None):
            return False
        blocks = range(self.settings.num_hidden_layers)
        if isinstance(value, list):
            windowed = [bool(one) for one in value]
        else:
            windowed = [bool((k + 1) % int(value)) for k in blocks] if isinstance(value, int) else []
        if len(windowed) != len(blocks):
            return False
        self.settings.layer_types = ["sliding_attention" if one else "full_attention" for one in windowed]
        return True

    def _query_scale(self) -> None:
        """Set what queries are scaled by: said in the header, or as llama.cpp sets it for Gemma."""
        kind, scale = self.settings.model_type, self.header.value(f"{self.prefix}attention.scale")
        if isinstance(scale, float):
            scalar = float(scale) ** -2
            near = round(scalar)
            self.settings.query_pre_attn_scalar = near if abs(scalar - near) < 1e-5 * scalar else scalar
        elif kind in _BY_WIDTH:
            by_width = self.settings.num_hidden_layers == _BY_WIDTH[kind]
            heads = self.settings.hidden_size // self.settings.num_attention_heads
            self.settings.query_pre_attn_scalar = heads if by_width else self.settings.head_dim

    def _of_a_tool(self, key: str) -> bool:
        """Whether an entry is a note of whoever made the file, e.g. ``mradermacher.quantized_by``."""
        return key.partition(".")[0] not in GGUF_CONFIG_MAPPING

    def _unknown(self, key: str) -> ModelError:
        got = f"{key} = {self.header.value(key)} in {self.header.path.name}"
        remedy = "give the model folder that the file was made from"
        return ModelError(problem("GGUF settings that can be applied exactly", got, remedy))
