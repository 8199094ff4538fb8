"""What the limits need of a model, read without its layers: sizes, final norm and range of its input vectors.

The wiring comes from a skeleton: the same config cut down to one narrow block and a few rows, built with
random weights and probed like any model. Only the tensors of the modules that turn out to be the final norm
and the token table are then read, the table a piece at a time. Where any of this does not work out, the whole
model is loaded and a note says so.
"""

import copy
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from lmreach.config import LoadConfig
from lmreach.errors import ModelError
from lmreach.models import builtin, checkpoint, gguf_file, norm, tokens
from lmreach.models.facts import FinalNorm
from lmreach.models.folder import LIBRARY_ERRORS, load_tokenizer
from lmreach.models.hub import fetch
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.probe import Probe, probe
from lmreach.models.quiet import quiet
from lmreach.models.resolve import find
from lmreach.models.trace import Call, trace

_ROWS = 1024  # of the skeleton's table: so many rows are read at once
_INNER = 64
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
_CONTROL = 3  # type of a control token in GGUF files


@dataclass(frozen=True, eq=False)
class Parts:
    """What the limits take from a model.

    Attributes
    ----------
    name
        As in `ModelFacts`.
    width, hidden_width, rows, usable
        d, width of final hidden states, rows of the head, V.
    final_norm
        As applied.
    low, high
        Smallest and largest value per coordinate over input vectors of usable, non-special ids, shape (d,).
    fingerprint
        Of all weights; None where they were not all read.
    notes
        What a reader should know, among it why the whole model had to be loaded.
    """

    name: str
    width: int
    hidden_width: int
    rows: int
    usable: int
    final_norm: FinalNorm
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    fingerprint: str | None = None
    notes: tuple[str, ...] = ()


class _NeedsWhole(Exception):
    """Why parts are not enough."""


class _Tensors(Protocol):
    """Stored tensors, read only when asked for."""

    def shape(self, module: str, leaf: str) -> tuple[int, ...] | None:
        """Return the shape of a module's tensor, or None where it is not stored."""

    def rows(self, module: str, leaf: str, start: int, stop: int) -> Tensor:
        """Return some rows (of a vector: entries)."""


def read_parts(spec: str | Path, config: LoadConfig = LoadConfig()) -> Parts:  # noqa: B008  (frozen)
    """Return what the limits need of a model, without reading its layers if that is possible.

    Parameters
    ----------
    spec
        A Hugging Face id, a folder, a ``.gguf`` file or ``builtin:NAME``.

    Raises
    ------
    ModelError
        As `load`: for files that are missing, cut short or of another kind.
    """
    with quiet():
        try:
            return _light(spec, config)
        except _NeedsWhole as why:
            reason = str(why)
    parts = whole_parts(load(spec, config))
    return dataclasses.replace(parts, notes=(*parts.notes, f"the whole model was loaded: {reason}"))


def whole_parts(model: LoadedModel) -> Parts:
    """Return the same of a loaded model."""
    plain = torch.from_numpy(model.plain_ids).to(model.device)
    low, high = _start(model.facts.width)
    for ids in plain.split(1 << 14):
        low, high = _widen(low, high, model.input_vectors(ids).cpu())
    facts = model.facts
    return Parts(
        facts.name,
        facts.width,
        facts.hidden_width,
        facts.rows,
        facts.usable,
        model.final_norm,
        low.numpy(),
        high.numpy(),
        facts.fingerprint,
        facts.notes,
    )


def _light(spec: str | Path, config: LoadConfig) -> Parts:
    found = find(spec)
    if found.kind == "builtin":
        inner = builtin.resolve(found.name)
        if isinstance(inner, PreTrainedModel):
            raise _NeedsWhole("it is built in memory")
        return _from_folder(inner, builtin.PREFIX + found.name, config)
    if found.kind == "hub":
        folder, _ = fetch(found.name, config, lambda line: None)
        return _from_folder(folder, found.name, config)
    assert found.path is not None, "find gives a path for files and folders"
    if found.kind == "gguf":
        # A converted copy has the tokenizer that every other command counts V with.
        kept = gguf_file._whole_entry(gguf_file._sha256(found.path))
        if kept is not None:
            return _from_folder(kept.folder, found.path.name, config)
        return _from_gguf(found.path, config)
    return _from_folder(found.path, found.name, config)


def _from_folder(folder: Path, name: str, config: LoadConfig) -> Parts:
    stored = checkpoint.inspect(folder)
    if stored.elements is None:
        raise _NeedsWhole("its weights are in the older pickle format")
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": config.trust_remote_code}
    try:
        settings = AutoConfig.from_pretrained(folder, **options)
    except LIBRARY_ERRORS as error:
        raise _NeedsWhole(f"its config was not understood ({type(error).__name__})") from error
    if getattr(settings, "quantization_config", None) is not None:
        raise _NeedsWhole("its weights are quantised")
    skeleton = _skeleton(settings, config)
    tensors = _Safetensors(stored.files, skeleton.model.base_model_prefix)
    tokenizer = load_tokenizer(folder, name, options)
    text = settings.get_text_config()
    rows = _table_rows(skeleton, tensors)
    usable = tokens.usable_ids(tokenizer, min(rows, int(text.vocab_size)))
    special = tokens.special_ids(tokenizer, text, rows)
    final = skeleton.probed.final_norm
    if skeleton.norm is not None:
        final = _load_norm(skeleton.norm, skeleton.factor, tensors)
    return _parts(name, skeleton, tensors, (rows, usable, np.setdiff1d(usable, special)), final)


def _from_gguf(path: Path, config: LoadConfig) -> Parts:
    gguf_file._check(path)
    tensors = _Gguf(GGUFReader(path))
    try:
        settings = AutoConfig.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    except LIBRARY_ERRORS as error:
        raise _NeedsWhole(f"its metadata was not understood ({type(error).__name__})") from error
    skeleton = _skeleton(settings, config)
    wiring = skeleton.probed.wiring
    tensors.names = {skeleton.name(wiring.head): "output", skeleton.name(wiring.embed): "token_embd"}
    if skeleton.norm is not None:
        tensors.names[skeleton.norm.name] = "output_norm"
    rows = _table_rows(skeleton, tensors)
    usable, special = tensors.usable_and_special(rows)
    final = skeleton.probed.final_norm
    if skeleton.norm is not None:
        # These files hold gains as applied (1 + g where the model multiplies by that); a fresh norm's is 1.
        factor, width = float(final.gain.mean()), skeleton.probed.hidden_width
        bias = tensors.shape(skeleton.norm.name, "bias")
        final = FinalNorm(
            final.kind,
            factor * _vector(tensors, skeleton.norm.name, "weight", width),
            np.zeros(width) if bias is None else factor * _vector(tensors, skeleton.norm.name, "bias", width),
        )
    return _parts(path.name, skeleton, tensors, (rows, usable, np.setdiff1d(usable, special)), final)


def _vector(tensors: _Tensors, module: str, leaf: str, width: int) -> Float[np.ndarray, " d"]:
    if tensors.shape(module, leaf) != (width,):
        raise _NeedsWhole("the tensors of its final norm were not found")
    return np.asarray(tensors.rows(module, leaf, 0, width).double().numpy())


@dataclass(frozen=True)
class _Skeleton:
    """A cut-down model, how it is wired, and the call of its final norm (None where it has none)."""

    model: PreTrainedModel
    probed: Probe
    names: dict[int, str]
    norm: Call | None
    factor: float

    def name(self, module: nn.Module) -> str:
        return self.names[id(module)]


def _skeleton(settings: Any, config: LoadConfig) -> _Skeleton:
    small = _cut(settings)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            dtype = getattr(torch, config.dtype)
            model: PreTrainedModel = AutoModelForCausalLM.from_config(small, dtype=dtype)
        model.eval().requires_grad_(False)
        probed = probe(model, np.arange(_ROWS, dtype=np.int64))
        seen = trace(model, inputs_embeds=probed.wiring.embed(torch.arange(6)[None]))
    except (*LIBRARY_ERRORS, ModelError) as error:
        raise _NeedsWhole(f"a one-block copy of it does not run ({type(error).__name__})") from error
    names = {id(module): name for name, module in model.named_modules()}
    given = seen.of(probed.wiring.head)[0].given
    assert given is not None, "the probe found the head"
    before = seen.calls[: next(k for k, c in enumerate(seen.calls) if c.module is probed.wiring.head)]
    for call in before:
        factor = norm._factor(call.result, given)
        if factor is not None and norm._fit(call, factor) is not None:
            return _Skeleton(model, probed, names, call, factor)
    return _Skeleton(model, probed, names, None, 1.0)


def _cut(settings: Any) -> Any:
    """Return the config with one narrow block and few rows; norms and scales hang on widths, which stay."""
    small = copy.deepcopy(settings)
    text = small.get_text_config()
    text.vocab_size, text.num_hidden_layers, text.pad_token_id = _ROWS, 1, None
    if isinstance(getattr(text, "intermediate_size", None), int):
        text.intermediate_size = _INNER
    if text.__dict__.get("layer_types"):
        text.layer_types = text.layer_types[-1:]
    return small


def _table_rows(skeleton: _Skeleton, tensors: _Tensors) -> int:
    """Return the number of rows of the head, whose matrix is the token table where it is not stored."""
    wiring = skeleton.probed.wiring
    shape = tensors.shape(skeleton.name(wiring.head), "weight")
    shape = shape or tensors.shape(skeleton.name(wiring.embed), "weight")
    if shape is None:
        raise _NeedsWhole("its token table was not found")
    return shape[0]


def _load_norm(call: Call, factor: float, tensors: _Tensors) -> FinalNorm:
    """Put the stored tensors into the skeleton's norm and fit it as any norm is."""
    for leaf, parameter in call.module.named_parameters():
        if tensors.shape(call.name, leaf) != tuple(parameter.shape):
            raise _NeedsWhole("the tensors of its final norm were not found")
        parameter.data.copy_(tensors.rows(call.name, leaf, 0, len(parameter)))
    fitted = norm._fit(call, factor)
    if fitted is None:
        raise _NeedsWhole("its final norm, filled with its own weights, fits no known form")
    return fitted


def _parts(
    name: str,
    skeleton: _Skeleton,
    tensors: _Tensors,
    ids: tuple[int, Int[np.ndarray, " usable"], Int[np.ndarray, " plain"]],
    final: FinalNorm,
) -> Parts:
    rows, usable, plain = ids
    low, high = _input_range(skeleton, tensors, plain)
    probed = skeleton.probed
    notes = (f"{rows} rows, {len(usable)} usable",) if len(usable) < rows else ()
    return Parts(name, probed.width, probed.hidden_width, rows, len(usable), final, low, high, notes=notes)


def _input_range(
    skeleton: _Skeleton, tensors: _Tensors, plain: Int[np.ndarray, " plain"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Run every row of the table through the skeleton's own input module, which may scale it."""
    embed = skeleton.probed.wiring.embed
    table: Tensor = embed.weight  # type: ignore[assignment]
    name = skeleton.name(embed)
    shape = tensors.shape(name, "weight")
    if shape is None or len(shape) != 2 or shape[1] != table.shape[1]:
        raise _NeedsWhole("its token table was not found")
    low, high = _start(skeleton.probed.width)
    for start in range(0, shape[0], _ROWS):
        stop = min(start + _ROWS, shape[0])
        here = plain[(plain >= start) & (plain < stop)] - start
        if len(here) == 0:
            continue
        table.data[: stop - start] = tensors.rows(name, "weight", start, stop).to(table.dtype)
        with torch.no_grad():
            low, high = _widen(low, high, embed(torch.from_numpy(here)).float())
    return low.numpy(), high.numpy()


def _start(width: int) -> tuple[Tensor, Tensor]:
    return torch.full((width,), torch.inf), torch.full((width,), -torch.inf)


def _widen(low: Tensor, high: Tensor, vectors: Float[Tensor, "n d"]) -> tuple[Tensor, Tensor]:
    return torch.minimum(low, vectors.amin(0)), torch.maximum(high, vectors.amax(0))


class _Safetensors:
    """Tensors of a checkpoint by the names of a model's modules."""

    def __init__(self, files: tuple[Path, ...], prefix: str) -> None:
        self._prefix = prefix
        self._entries: dict[str, tuple[Path, int, dict[str, Any]]] = {}
        for path in files:
            entries = checkpoint.header(path)
            with path.open("rb") as file:
                begin = 8 + int.from_bytes(file.read(8), "little")
            self._entries |= {name: (path, begin, entry) for name, entry in entries.items()}

    def shape(self, module: str, leaf: str) -> tuple[int, ...] | None:
        """Return the shape of a module's tensor, or None where it is not stored."""
        found = self._find(f"{module}.{leaf}")
        return None if found is None else tuple(found[2]["shape"])

    def rows(self, module: str, leaf: str, start: int, stop: int) -> Tensor:
        """Read some rows, and nothing else, from the file."""
        found = self._find(f"{module}.{leaf}")
        assert found is not None, "asked for its shape before"
        path, begin, entry = found
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise _NeedsWhole(f"its weights are stored as {entry['dtype']}")
        inner = [int(n) for n in entry["shape"][1:]]
        size = int(np.prod(inner, dtype=np.int64)) * dtype.itemsize
        with path.open("rb") as file:
            file.seek(begin + entry["data_offsets"][0] + start * size)
            raw = bytearray(file.read((stop - start) * size))
        return torch.frombuffer(raw, dtype=dtype).reshape(stop - start, *inner)

    def _find(self, name: str) -> tuple[Path, int, dict[str, Any]] | None:
        """Find a tensor with, without or behind the prefix of the model's body."""
        for wanted in (name, name.removeprefix(f"{self._prefix}."), f"{self._prefix}.{name}"):
            if wanted in self._entries:
                return self._entries[wanted]
        ending = [value for key, value in self._entries.items() if key.endswith(f".{name}")]
        return ending[0] if len(ending) == 1 else None


class _Gguf:
    """The three tensors of a GGUF file that are not in its layers, under the names the format gives them."""

    def __init__(self, reader: GGUFReader) -> None:
        self.names: dict[str, str] = {}
        self._reader = reader
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    def shape(self, module: str, leaf: str) -> tuple[int, ...] | None:
        """Return the shape, outermost first, or None where it is not stored."""
        tensor = self._tensors.get(self._name(module, leaf))
        return None if tensor is None else tuple(int(n) for n in reversed(tensor.shape))

    def rows(self, module: str, leaf: str, start: int, stop: int) -> Tensor:
        """Dequantise some rows."""
        tensor = self._tensors[self._name(module, leaf)]
        return torch.from_numpy(dequantize(tensor.data[start:stop], tensor.tensor_type).astype(np.float32))

    def usable_and_special(self, rows: int) -> tuple[Int[np.ndarray, " usable"], Int[np.ndarray, " special"]]:
        """Return the ids that have a token, and those of control tokens."""
        known = self._reader.get_field("tokenizer.ggml.tokens")
        types = self._reader.get_field("tokenizer.ggml.token_type")
        count = rows if known is None else min(rows, len(known.data))
        kinds = np.array([] if types is None else types.contents())
        return np.arange(count, dtype=np.int64), np.flatnonzero(kinds == _CONTROL)

    def _name(self, module: str, leaf: str) -> str:
        return f"{self.names[module]}.{leaf}"
