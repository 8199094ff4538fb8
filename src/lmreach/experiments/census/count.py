"""How many distinct sequences there are, of every length at once, exactly, in bounded memory.

The n ids of a sequence are packed into 64-bit words, the first id in the highest bits. Packing loses
nothing, so no two sequences share a key and nothing needs to be hashed. Sorted keys put sequences with a
common start next to each other: one pass over them counts the distinct starts of every length. What does not
fit into memory is written to disk as sorted runs and merged in that pass.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, UInt64

from lmreach.errors import OutputError, problem

__all__ = ["Distinct", "LengthCounts", "Packing", "Popular", "measure"]

Keys = UInt64[np.ndarray, "rows words"]
Counts = Int[np.ndarray, " rows"]
Chunk = tuple[Keys, Counts]

_PENDING = 1 << 18  # rows gathered before they are sorted
_MERGED = 1 << 20  # rows merged at once from disk
_TOP = 10


@dataclass(frozen=True, slots=True)
class Packing:
    """How n ids below ``vocab`` become words: ``per_word`` ids in each, no id split between two."""

    vocab: int
    n: int

    @property
    def bits(self) -> int:
        """Bits of one id."""
        return max(1, (self.vocab - 1).bit_length())

    @property
    def per_word(self) -> int:
        """Ids in a word."""
        return 64 // self.bits

    @property
    def words(self) -> int:
        """Words of a sequence."""
        return -(-self.n // self.per_word)

    def pack(self, ids: Int[np.ndarray, "rows n"]) -> Keys:
        """Return the keys of some sequences; lexicographic order of ids is order of keys."""
        keys = np.zeros((len(ids), self.words), dtype=np.uint64)
        for k in range(self.n):
            keys[:, k // self.per_word] |= ids[:, k].astype(np.uint64) << self._shift(k)
        return keys

    def unpack(self, keys: Keys) -> Int[np.ndarray, "rows n"]:
        """Return the ids behind keys."""
        low = np.uint64((1 << self.bits) - 1)
        columns = [(keys[:, k // self.per_word] >> self._shift(k)) & low for k in range(self.n)]
        return np.stack(columns, axis=1).astype(np.int64)

    def start(self, keys: Keys, length: int) -> Keys:
        """Return the keys of the first ``length`` ids: the rest is set to zero."""
        whole, rest = divmod(length, self.per_word)
        cut = keys[:, : whole + (rest > 0)].copy()
        if rest:
            cut[:, -1] &= np.uint64(((1 << 64) - 1) ^ ((1 << (64 - self.bits * rest)) - 1))
        return cut

    def _shift(self, k: int) -> np.uint64:
        return np.uint64(64 - self.bits * (k % self.per_word + 1))


@dataclass(frozen=True, slots=True)
class Popular:
    """A sequence that many prompts lead to."""

    ids: tuple[int, ...]
    prompts: int


@dataclass(frozen=True, slots=True)
class LengthCounts:
    """What was seen of the sequences of one length.

    Attributes
    ----------
    length
        Tokens.
    distinct
        Distinct sequences, exactly.
    prompts
        Prompts decoded.
    entropy_nats
        Entropy of the distribution of outputs under a uniform draw from those prompts.
    frequencies
        Pairs (c, number of sequences that exactly c prompts lead to), c ascending.
    top
        The sequences with most prompts, at most 10; ties in order of ids.
    """

    length: int
    distinct: int
    prompts: int
    entropy_nats: float
    frequencies: tuple[tuple[int, int], ...]
    top: tuple[Popular, ...]

    def seen(self, times: int) -> int:
        """Return how many sequences exactly ``times`` prompts lead to."""
        return dict(self.frequencies).get(times, 0)


class Distinct:
    """Collects sequences with how often each came.

    Parameters
    ----------
    packing
        Of the sequences.
    memory_rows
        Distinct sequences held in memory; each takes 8 bytes per word and 8 for its count, and three times
        that while it is sorted. Beyond it runs go to disk.
    folder
        Where runs may be written, in a folder of their own that is removed at the end; None: the system's
        place for temporary files.
    """

    def __init__(self, packing: Packing, *, memory_rows: int = 1 << 23, folder: Path | None = None) -> None:
        self.packing = packing
        self.memory_rows = memory_rows
        self.runs: list[tuple[Path, Path]] = []
        self._folder = folder
        self._place: tempfile.TemporaryDirectory[str] | None = None
        self._pending: list[Keys] = []
        self._waiting = 0
        self._held: Chunk = _nothing(packing)

    def __enter__(self) -> "Distinct":
        return self

    def __exit__(self, *_: object) -> None:
        if self._place is not None:
            self._place.cleanup()

    def add(self, ids: Int[np.ndarray, "rows n"]) -> None:
        """Count some sequences."""
        self._pending.append(self.packing.pack(ids))
        self._waiting += len(ids)
        # As much is gathered as is held already, so that sorting costs N log N in all.
        if self._waiting >= max(min(_PENDING, self.memory_rows), len(self._held[0])):
            self._settle()

    def chunks(self) -> Iterator[Chunk]:
        """Return all distinct keys in order, with their counts, in pieces."""
        self._settle()
        if not self.runs:
            if len(self._held[0]):
                yield self._held
            return
        if len(self._held[0]):
            self._spill()
        yield from _merged([(np.load(k, mmap_mode="r"), np.load(c, mmap_mode="r")) for k, c in self.runs])

    def _settle(self) -> None:
        if not self._waiting:
            return
        keys = np.concatenate([self._held[0], *self._pending])
        counts = np.concatenate([self._held[1], np.ones(self._waiting, dtype=np.int64)])
        self._pending, self._waiting = [], 0
        self._held = _united(keys, counts)
        if len(self._held[0]) > self.memory_rows:
            self._spill()

    def _spill(self) -> None:
        try:
            if self._place is None:
                self._place = tempfile.TemporaryDirectory(prefix="census-", dir=self._folder)
            stem = Path(self._place.name) / f"{len(self.runs):04d}"
            paths = stem.with_suffix(".keys.npy"), stem.with_suffix(".counts.npy")
            for path, array in zip(paths, self._held, strict=True):
                np.save(path, array)
        except OSError as error:
            got = f"{error.strerror or error}"
            raise OutputError(
                problem("room on disk for sorted runs", got, "free space, or count fewer prompts")
            ) from error
        self.runs.append(paths)
        self._held = _nothing(self.packing)


def measure(chunks: Iterator[Chunk], packing: Packing) -> tuple[LengthCounts, ...]:
    """Count the distinct sequences of every length 1 .. n in one pass over sorted keys."""
    counters = [_Starts(packing, length) for length in range(1, packing.n + 1)]
    for keys, counts in chunks:
        for counter in counters:
            counter.add(keys, counts)
    return tuple(counter.finish() for counter in counters)


@dataclass(slots=True)
class _Starts:
    """Counts groups of sequences that share their first ``length`` ids."""

    packing: Packing
    length: int
    _distinct: int = 0
    _prompts: int = 0
    _c_ln_c: float = 0.0
    _frequencies: Counter[int] = field(default_factory=Counter)
    _best: list[Popular] = field(default_factory=list)
    _open: Chunk | None = None  # the last group, which the next chunk may go on with

    def add(self, keys: Keys, counts: Counts) -> None:
        starts = self.packing.start(keys, self.length)
        if self._open is not None:
            starts = np.concatenate([self._open[0], starts])
            counts = np.concatenate([self._open[1], counts])
        first = np.flatnonzero(_new(starts))
        sums = np.add.reduceat(counts, first)
        self._take(starts[first[:-1]], sums[:-1])
        self._open = starts[first[-1:]], sums[-1:]

    def finish(self) -> LengthCounts:
        if self._open is not None:
            self._take(*self._open)
        entropy = math.log(self._prompts) - self._c_ln_c / self._prompts if self._prompts else 0.0
        return LengthCounts(
            self.length,
            self._distinct,
            self._prompts,
            max(entropy, 0.0),
            tuple(sorted(self._frequencies.items())),
            tuple(self._best),
        )

    def _take(self, starts: Keys, sums: Counts) -> None:
        if not len(sums):
            return
        self._distinct += len(sums)
        self._prompts += int(sums.sum())
        self._c_ln_c += float((sums * np.log(sums)).sum())
        values, times = np.unique(sums, return_counts=True)
        self._frequencies.update(dict(zip(values.tolist(), times.tolist(), strict=True)))
        self._rank(starts, sums)

    def _rank(self, starts: Keys, sums: Counts) -> None:
        # Stable: of equal counts the smaller ids come first, and earlier chunks hold smaller ids.
        order = np.argsort(-sums, kind="stable")[:_TOP]
        if len(self._best) == _TOP and sums[order[0]] <= self._best[-1].prompts:
            return
        cut = Packing(self.packing.vocab, self.length)
        ids = cut.unpack(starts[order])
        found = [Popular(tuple(i), int(c)) for i, c in zip(ids.tolist(), sums[order], strict=True)]
        self._best = sorted([*self._best, *found], key=lambda one: (-one.prompts, one.ids))[:_TOP]


def _nothing(packing: Packing) -> Chunk:
    return np.empty((0, packing.words), dtype=np.uint64), np.empty(0, dtype=np.int64)


def _new(keys: Keys) -> Bool[np.ndarray, " rows"]:
    """Say of every sorted key whether it differs from the one before."""
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return new


def _united(keys: Keys, counts: Counts) -> Chunk:
    """Sort, and add up the counts of equal keys."""
    order = np.argsort(keys[:, 0]) if keys.shape[1] == 1 else np.lexsort(keys.T[::-1])
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(_new(keys))
    return keys[first], np.add.reduceat(counts, first)


def _merged(runs: Sequence[Chunk]) -> Iterator[Chunk]:
    """Merge sorted runs piece by piece: what lies at or below every run's next piece is complete."""
    places, size = [0] * len(runs), max(1, _MERGED // len(runs))
    while any(place < len(keys) for place, (keys, _) in zip(places, runs, strict=True)):
        limit = _limit([keys[place : place + size] for place, (keys, _) in zip(places, runs, strict=True)
                        if place + size < len(keys)])  # fmt: skip
        parts = []
        for i, (keys, counts) in enumerate(runs):
            part = np.asarray(keys[places[i] : places[i] + size])
            taken = len(part) if limit is None else int(_at_most(part, limit).sum())
            parts.append((part[:taken], np.asarray(counts[places[i] : places[i] + taken])))
            places[i] += taken
        yield _united(np.concatenate([k for k, _ in parts]), np.concatenate([c for _, c in parts]))


def _limit(pieces: Sequence[Keys]) -> UInt64[np.ndarray, " words"] | None:
    """Return the smallest last key of some pieces; None without pieces."""
    if not pieces:
        return None
    last = np.stack([piece[-1] for piece in pieces])
    smallest: UInt64[np.ndarray, " words"] = last[np.lexsort(last.T[::-1])[0]]
    return smallest


def _at_most(keys: Keys, limit: UInt64[np.ndarray, " words"]) -> Bool[np.ndarray, " rows"]:
    """Compare keys with one key, the first word first."""
    result = np.ones(len(keys), dtype=bool)
    for word in range(keys.shape[1] - 1, -1, -1):
        result = (keys[:, word] < limit[word]) | ((keys[:, word] == limit[word]) & result)
    return result
