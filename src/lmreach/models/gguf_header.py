"""What a GGUF file says before its tensors: metadata, and where each tensor lies.

The reader of the ``gguf`` package makes an array object of every string: measured, 6 s for a vocabulary of
49,152 tokens, against 0.05 s here, where strings are only stepped over.

Layout (specification of GGUF, versions 2 and 3): magic, u32 version, u64 number of tensors, u64 number of
metadata entries; entries of key, u32 type and value; tensor records of name, u32 number of dimensions, u64
dimensions with the innermost first, u32 number format and u64 offset behind the aligned end of the records.
Strings carry a u64 length, arrays a u32 type and a u64 length.
"""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from jaxtyping import Shaped

from lmreach.errors import ModelError, problem

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_LITTLE, _BIG = "<", ">"
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "u1",
    1: "i1",
    2: "u2",
    3: "i2",
    4: "u4",
    5: "i4",
    6: "f4",
    7: "u1",
    10: "u8",
    11: "i8",
    12: "f8",
}
_BOOL = 7
_U32 = 4  # bytes
_LONGEST = 1024  # longer arrays are tables of the tokenizer
_DIMENSIONS = 8  # more than any tensor has; a larger number means that something else was read


Value = str | int | float | bool | list[Any] | None
"""What a metadata entry may hold."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a metadata value stands: bytes [begin, end), from its type on, and the elements of an array."""

    begin: int
    end: int
    kind: int
    inner: int
    count: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor: number format, shape (outermost dimension first), and bytes [begin, end) in the file."""

    kind: GGMLQuantizationType
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the outermost dimension."""
        return (self.end - self.begin) // max(self.shape[0], 1)


@dataclass(frozen=True)
class Header:
    """Metadata entries and tensors by name.

    Attributes
    ----------
    path
        The file.
    order
        Byte order as `struct` writes it.
    entries, tensors
        In the file's order.
    """

    path: Path
    order: str
    entries: dict[str, Entry]
    tensors: dict[str, Stored]

    def length(self, key: str) -> int | None:
        """Return the number of elements of an array, or None without one of this name."""
        entry = self.entries.get(key)
        return entry.count if entry is not None and entry.kind == _ARRAY else None

    def numbers(self, key: str) -> Shaped[np.ndarray, " n"]:
        """Return the numbers of an array; an empty one without an array of numbers of this name."""
        entry = self.entries.get(key)
        if entry is None or entry.kind != _ARRAY or entry.inner not in _NUMBERS:
            return np.empty(0, dtype=np.int64)
        dtype = np.dtype(self.order + _NUMBERS[entry.inner])
        with self.path.open("rb") as file:
            file.seek(entry.end - entry.count * dtype.itemsize)
            return np.frombuffer(file.read(entry.count * dtype.itemsize), dtype=dtype)

    def texts(self, key: str) -> list[bytes]:
        """Return the strings of an array, undecoded; an empty list without one of this name."""
        entry = self.entries.get(key)
        if entry is None or entry.kind != _ARRAY or entry.inner != _STRING:
            return []
        with self.path.open("rb") as file:
            file.seek(entry.begin + 2 * _U32 + 8)
            raw = file.read(entry.end - entry.begin - 2 * _U32 - 8)
        unpack, found, at = struct.Struct(f"{self.order}Q").unpack_from, list[bytes](), 0
        for _ in range(entry.count):
            length = unpack(raw, at)[0]
            found.append(raw[at + 8 : at + 8 + length])
            at += 8 + length
        return found

    def value(self, key: str) -> Value:
        """Return what an entry holds, strings decoded; None without one of this name."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        if entry.inner == _STRING:
            return self.text(key) if entry.kind != _ARRAY else [t.decode("utf-8") for t in self.texts(key)]
        if entry.kind == _ARRAY:
            return list(self.numbers(key).tolist())
        dtype = np.dtype(self.order + _NUMBERS[entry.kind])
        with self.path.open("rb") as file:
            file.seek(entry.begin + _U32)
            number = np.frombuffer(file.read(dtype.itemsize), dtype=dtype)[0].item()
        return bool(number) if entry.kind == _BOOL else number

    def text(self, key: str) -> str | None:
        """Return a string, or None without one of this name."""
        entry = self.entries.get(key)
        if entry is None or entry.kind != _STRING:
            return None
        with self.path.open("rb") as file:
            file.seek(entry.begin + _U32 + 8)
            return file.read(entry.end - entry.begin - _U32 - 8).decode("utf-8")


def read_header(path: Path) -> Header:
    """Read what stands before the tensors, and check that every tensor lies within the file.

    Raises
    ------
    ModelError
        For a file that is cut short or no GGUF.
    """
    with _mapped(path) as data:
        try:
            header = _Cursor(path, data).header()
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise _cut_short(path, str(error)) from error
        beyond = [name for name, tensor in header.tensors.items() if tensor.end > len(data)]
        if beyond or not header.tensors:
            got = f"tensor {beyond[0]} beyond its {len(data)} bytes" if beyond else "no tensors"
            raise _cut_short(path, got)
    return header


def write_outline(header: Header, path: Path) -> None:
    """Write a small GGUF file with the same settings and tensor names, all tensors empty, no token tables.

    What readers take from the length of a token table they find as ``vocab_size``.
    """
    order = header.order
    wanted = {key: entry for key, entry in header.entries.items() if entry.count <= _LONGEST}
    extra, sized = b"", f"{header.text('general.architecture')}.vocab_size"
    tokens = header.length("tokenizer.ggml.tokens")
    if tokens is not None and sized not in wanted:
        extra = _string(order, sized) + struct.pack(f"{order}II", 4, tokens)
    with header.path.open("rb") as file, path.open("wb") as out:
        file.seek(len(_MAGIC))
        out.write(_MAGIC + file.read(_U32))
        out.write(struct.pack(f"{order}QQ", len(header.tensors), len(wanted) + bool(extra)))
        for key, entry in wanted.items():
            file.seek(entry.begin)
            out.write(_string(order, key) + file.read(entry.end - entry.begin))
        out.write(extra)
        for name in header.tensors:
            out.write(_string(order, name) + struct.pack(f"{order}IQIQ", 1, 0, 0, 0))
        out.write(bytes(1 << 16))  # covers the alignment


def _string(order: str, text: str) -> bytes:
    raw = text.encode("utf-8")
    return struct.pack(f"{order}Q", len(raw)) + raw


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
    except (OSError, ValueError) as error:
        raise _cut_short(path, str(error)) from error


def _cut_short(path: Path, reason: str) -> ModelError:
    return ModelError(problem(f"a whole GGUF file {path.name}", reason, "fetch or copy the file again"))


class _Cursor:
    """A position in the mapped file. Reading past the end raises `struct.error` or ValueError."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._at = len(_MAGIC)
        self._order = _LITTLE
        version = self._unpack("I")
        if version & 0xFFFF == 0:  # the other byte order
            self._order, self._at = _BIG, len(_MAGIC)
            version = self._unpack("I")
        if data[: len(_MAGIC)] != _MAGIC or version not in _VERSIONS:
            raise ValueError(f"version {version}, where 2 and 3 are known")

    def header(self) -> Header:
        tensors, entries = self._unpack("Q"), self._unpack("Q")
        table = dict(self._entry() for _ in range(entries))
        records = [self._record() for _ in range(tensors)]
        if len(table) != entries or len({name for name, *_ in records}) != tensors:
            raise ValueError("a name that occurs twice")
        alignment = 32
        if "general.alignment" in table:
            (alignment,) = struct.unpack_from(
                f"{self._order}I", self._data, table["general.alignment"].begin + _U32
            )
        if alignment <= 0:
            raise ValueError(f"an alignment of {alignment}")
        start = -(-self._at // alignment) * alignment
        return Header(
            self._path,
            self._order,
            table,
            {name: _stored(kind, shape, start + offset) for name, kind, shape, offset in records},
        )

    def _unpack(self, code: str) -> int:
        (value,) = struct.unpack_from(self._order + code, self._data, self._at)
        self._at += struct.calcsize(self._order + code)
        return int(value)

    def _text(self) -> str:
        length = self._unpack("Q")
        self._step(length)
        return self._data[self._at - length : self._at].decode("utf-8")

    def _step(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise ValueError(f"{len(self._data)} bytes, which end before its tensors begin")

    def _entry(self) -> tuple[str, Entry]:
        key, begin = self._text(), self._at
        kind = self._unpack("I")
        if kind != _ARRAY:
            self._skip(kind, 1)
            return key, Entry(begin, self._at, kind, kind, 1)
        inner, count = self._unpack("I"), self._unpack("Q")
        self._skip(inner, count)
        return key, Entry(begin, self._at, kind, inner, count)

    def _skip(self, kind: int, count: int) -> None:
        if kind in _NUMBERS:
            self._step(count * np.dtype(_NUMBERS[kind]).itemsize)
            return
        if kind != _STRING:
            raise ValueError(f"a value of type {kind}, which is not known")
        unpack, data, at = struct.Struct(f"{self._order}Q").unpack_from, self._data, self._at
        for _ in range(count):  # hundreds of thousands for the tables of a tokenizer
            at += 8 + unpack(data, at)[0]
        self._at = at
        self._step(0)

    def _record(self) -> tuple[str, int, tuple[int, ...], int]:
        name, dimensions = self._text(), self._unpack("I")
        if dimensions > _DIMENSIONS:
            raise ValueError(f"{dimensions} dimensions of {name[:60]}")
        shape = tuple(reversed([self._unpack("Q") for _ in range(dimensions)]))
        return name, self._unpack("I"), shape, self._unpack("Q")


def _stored(kind: int, shape: tuple[int, ...], begin: int) -> Stored:
    known = GGMLQuantizationType(kind)
    block, size = GGML_QUANT_SIZES[known]
    elements = 1
    for n in shape:
        elements *= n
    return Stored(known, shape, begin, begin + elements * size // block)
