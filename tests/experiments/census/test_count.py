"""Packing, counting and sketching of sequences, against Python sets."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import OutputError
from lmreach.experiments.census import count as census_count
from lmreach.experiments.census.count import Distinct, Packing, measure
from lmreach.experiments.census.sketch import Sketches


def counted(ids: np.ndarray, vocab: int, *, memory_rows: int = 1 << 20, parts: int = 3, folder=None):
    packing = Packing(vocab, ids.shape[1])
    with Distinct(packing, memory_rows=memory_rows, folder=folder) as distinct:
        for part in np.array_split(ids, parts):
            distinct.add(part)
        return measure(distinct.chunks(), packing)


def slow(ids: np.ndarray) -> list[Counter]:
    """Count the starts of every length with tuples and a dictionary."""
    return [Counter(map(tuple, ids[:, :k].tolist())) for k in range(1, ids.shape[1] + 1)]


sequences = st.tuples(
    st.sampled_from([2, 3, 8, 9, 49152, 2**31]),
    st.integers(1, 30),
    st.integers(1, 60),
    st.integers(0, 2**32 - 1),
)


def drawn(vocab: int, n: int, rows: int, seed: int) -> np.ndarray:
    """Draw ids near both ends of the vocabulary, few enough that sequences repeat."""
    rng = np.random.default_rng(seed)
    few = np.unique(np.clip(np.array([0, 1, vocab // 2, vocab - 1]), 0, vocab - 1))
    base = rng.choice(few, size=(max(1, rows // 3), n))
    return base[rng.integers(len(base), size=rows)]


@given(sequences)
@settings(deadline=None)
def test_packing_loses_nothing_and_keeps_the_order(asked: tuple[int, int, int, int]) -> None:
    ids = drawn(*asked)
    packing = Packing(asked[0], asked[1])
    keys = packing.pack(ids)
    assert np.array_equal(packing.unpack(keys), ids)
    assert sorted(map(tuple, keys.tolist())) == [
        tuple(k) for k in packing.pack(np.array(sorted(ids.tolist()))).tolist()
    ]


@given(sequences, st.integers(1, 12))
@settings(deadline=None)
def test_counts_of_every_length_are_those_of_a_dictionary(
    asked: tuple[int, int, int, int], parts: int
) -> None:

    ids = drawn(*asked)
    for got, want in zip(counted(ids, asked[0], parts=parts), slow(ids), strict=True):
        assert (got.distinct, got.prompts) == (len(want), len(ids))
        assert dict(got.frequencies) == Counter(want.values())
        shares = np.array(list(want.values())) / len(ids)
        assert got.entropy_nats == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-12)
        best = sorted(want.items(), key=lambda item: (-item[1], item[0]))[:10]
        assert [(one.ids, one.prompts) for one in got.top] == best


@pytest.mark.parametrize(("vocab", "n"), [(3, 9), (50_000, 6)])
def test_runs_on_disk_give_what_memory_gives(
    vocab: int, n: int, rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census_count, "_MERGED", 64)
    ids = rng.integers(3, size=(4000, n))
    memory, disk = counted(ids, vocab), counted(ids, vocab, memory_rows=50, parts=40, folder=tmp_path)
    for one, other in zip(memory, disk, strict=True):
        # Only the order in which logarithms are added differs.
        assert replace(one, entropy_nats=0.0) == replace(other, entropy_nats=0.0)
        assert one.entropy_nats == pytest.approx(other.entropy_nats, rel=1e-12)
    assert not list(tmp_path.iterdir()), "runs are removed"


def test_a_place_without_room_is_named(tmp_path: Path) -> None:
    ids = np.arange(4096)[:, None] % 4096
    with pytest.raises(OutputError, match="room on disk"):
        counted(ids, 4096, memory_rows=10, folder=tmp_path / "not-there")


def test_nothing_counted_is_nothing() -> None:
    packing = Packing(4, 2)
    with Distinct(packing) as distinct:
        assert [one.distinct for one in measure(distinct.chunks(), packing)] == [0, 0]


def test_a_sketch_is_exact_while_it_can_and_says_its_error_later(rng: np.random.Generator) -> None:
    packing = Packing(2**20, 2)
    few, many = rng.integers(2**20, size=(500, 2)), rng.integers(2**20, size=(60_000, 2))
    sketches = Sketches(packing, k=1024)
    sketches.add(few)
    assert [e.distinct for e in sketches.estimates()] == [len(c) for c in slow(few)]
    assert all(e.standard_error == 0 for e in sketches.estimates())
    for part in np.array_split(many, 7):
        sketches.add(part)
    for estimate, true in zip(sketches.estimates(), slow(np.concatenate([few, many])), strict=True):
        assert estimate.standard_error == pytest.approx(estimate.distinct / math.sqrt(1022))
        assert abs(estimate.distinct - len(true)) < 4 * estimate.standard_error


def test_repeats_do_not_move_a_sketch(rng: np.random.Generator) -> None:
    ids = rng.integers(1000, size=(5000, 3))
    once, often = Sketches(Packing(1000, 3), k=64), Sketches(Packing(1000, 3), k=64)
    once.add(ids)
    for _ in range(3):
        often.add(ids[rng.permutation(len(ids))])
    assert once.estimates() == often.estimates()
