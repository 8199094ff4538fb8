"""Tensors of a checkpoint read only where asked for, by the names of a model's modules."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from gguf.quants import dequantize
from jaxtyping import Int, Shaped
from torch import Tensor

from lmreach.models import checkpoint
from lmreach.models.gguf_header import Header

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
_CONTROL = 3  # type of a control token in GGUF files


class NeedsWhole(Exception):
    """Parts of a checkpoint are not enough; the message says why."""


@runtime_checkable  # for checks of shapes in tests
class Tensors(Protocol):
    """Stored tensors, read only when asked for."""

    def shape(self, module: str, leaf: str) -> tuple[int, ...] | None:
        """Return the shape of a module's tensor, or None where it is not stored."""

    def rows(self, module: str, leaf: str, start: int, stop: int) -> Shaped[Tensor, "rows *inner"]:
        """Return some rows (of a vector: entries)."""


class SafetensorsFiles:
    """Tensors of one or more safetensors files.

    Parameters
    ----------
    files
        Checked files.
    prefix
        Of the model's body (``base_model_prefix``): checkpoints store its tensors with or without it.
    """

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

    def rows(self, module: str, leaf: str, start: int, stop: int) -> Shaped[Tensor, "rows *inner"]:
        """Read some rows, and nothing else, from the file."""
        found = self._find(f"{module}.{leaf}")
        assert found is not None, "asked for its shape before"
        path, begin, entry = found
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise NeedsWhole(f"its weights are stored as {entry['dtype']}")
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


class GgufFile:
    """The three tensors of a GGUF file that are not in its layers.

    Attributes
    ----------
    names
        Name of the file's tensor for each module, without ``.weight``; filled once the modules are known.
    """

    def __init__(self, header: Header) -> None:
        self.names: dict[str, str] = {}
        self._header = header

    def shape(self, module: str, leaf: str) -> tuple[int, ...] | None:
        """Return the shape, outermost first, or None where it is not stored."""
        tensor = self._header.tensors.get(self._name(module, leaf))
        return None if tensor is None else tensor.shape

    def rows(self, module: str, leaf: str, start: int, stop: int) -> Shaped[Tensor, "rows *inner"]:
        """Dequantise some rows to float32.

        Raises
        ------
        NeedsWhole
            For a number format that the ``gguf`` package does not dequantise.
        """
        tensor = self._header.tensors[self._name(module, leaf)]
        with self._header.path.open("rb") as file:
            file.seek(tensor.begin + start * tensor.row_bytes)
            raw = np.frombuffer(file.read((stop - start) * tensor.row_bytes), dtype=np.uint8)
        try:
            # As one row: the package loops over groups of 16.
            values = dequantize(raw[None], tensor.kind)
        except NotImplementedError as error:
            raise NeedsWhole(f"its table is stored as {tensor.kind.name}") from error
        return torch.from_numpy(values.astype(np.float32)).reshape(stop - start, *tensor.shape[1:])

    def usable_and_special(self, rows: int) -> tuple[Int[np.ndarray, " usable"], Int[np.ndarray, " special"]]:
        """Return the ids that a tokenizer made from the file knows, and those of control tokens.

        Of two ids with the same text a tokenizer knows the later one. All rows without a list of tokens.
        """
        known = self._header.texts("tokenizer.ggml.tokens")
        last = dict(zip(known, range(len(known)), strict=True))
        ids = np.array(sorted(last.values()) if known else range(rows), dtype=np.int64)
        kinds = self._header.numbers("tokenizer.ggml.token_type")
        return ids[ids < rows], np.flatnonzero(kinds == _CONTROL)

    def _name(self, module: str, leaf: str) -> str:
        return f"{self.names[module]}.{leaf}"
