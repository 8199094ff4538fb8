"""The ledger: written once, readable after anything, one line when it cannot be written."""

import errno
import hashlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.engine.lock import WriterLock
from lmreach.engine.store import Proof, Store, read_tensors
from lmreach.errors import OutputError
from tests.engine.rows import Row


def test_a_trial_is_written_once(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        assert store.add("a", "random m=1", Row(reach=3))
        assert not store.add("a", "random m=1", Row(reach=9))
        assert list(store.each()) == [{"key": "a", "cell": "random m=1", "reach": 3}]
    with Store(tmp_path / "run") as store:
        assert store.keys() == {"a"}


@given(st.lists(st.sampled_from("abcdef"), max_size=12))
@settings(deadline=None, max_examples=20)
def test_order_and_repeats_are_forgotten(tmp_path_factory, order: list[str]) -> None:
    with Store(tmp_path_factory.mktemp("run")) as store:
        for key in order:
            store.add(key, "cell", Row(key_was=key))
        assert [trial["key"] for trial in store.each()] == sorted(set(order))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_never_enters(tmp_path: Path, value: float) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(ValueError, match="JSON"):
            store.add("a", "cell", Row(loss=value))
        assert store.keys() == set()


def test_certificates_come_back_bit_for_bit(tmp_path: Path, rng: np.random.Generator) -> None:
    vectors, ids = rng.normal(size=(2, 5)).astype(np.float32), np.arange(4)
    with Store(tmp_path) as store:
        store.add("k", "cell", Row(reach=4), Proof(vectors, ids, {"claim": "emits"}))
        path = store.certificate_path("k")
        assert store.proofs() == {"k": hashlib.sha256(path.read_bytes()).hexdigest()}
    tensors, found_ids, claim = read_tensors(path)
    found = tensors["vectors"]
    np.testing.assert_array_equal(found, vectors)
    np.testing.assert_array_equal(found_ids, ids)
    assert claim == {"claim": "emits"}
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(OutputError, match="certificate"):
        read_tensors(path)


def test_a_proof_is_there_before_its_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at the certificate leaves no record; at the record, a proof that nobody claims."""
    proof = Proof(np.zeros((1, 2), dtype=np.float32), np.arange(1), {})
    with Store(tmp_path) as store:
        full = OSError(errno.ENOSPC, "No space left on device")
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(full))
            with pytest.raises(OutputError, match="No space left on device; free space"):
                store.add("k", "cell", Row(reach=1), proof)
        assert store.keys() == set()
        assert list((tmp_path / "certificates").iterdir()) == []
        assert store.add("k", "cell", Row(reach=1), proof)
        written = store.certificate_path("k").read_bytes()
        other = Proof(np.ones((1, 2), dtype=np.float32), np.arange(1), {})
        assert not store.add("k", "cell", Row(reach=1), other)
        assert store.certificate_path("k").read_bytes() == written, "a written trial keeps its proof"


def test_the_umask_decides_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with Store(tmp_path / "run") as store:
            store.add("k", "cell", Row(), Proof(np.zeros((1, 2), dtype=np.float32), np.arange(1), {}))
            path = store.certificate_path("k")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "run" / "store.sqlite").stat().st_mode & 0o777 == 0o640


_WRITER = """
import sys
from pathlib import Path
from lmreach.engine.store import Store
from tests.engine.rows import Row
who, folder = sys.argv[1:3]
with Store(Path(folder)) as store:
    for i in range(5000):
        store.add(f"{who}-{i:03d}", "cell", Row(text=who * 25000, i=i))
        print(i, flush=True)
"""


def _writer(who: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, who, str(folder)], stdout=subprocess.PIPE, text=True, env=os.environ
    )


def test_a_second_writer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    writer = _writer("ab", tmp_path)
    assert writer.stdout is not None
    writer.stdout.readline()
    with pytest.raises(OutputError, match=f"process {writer.pid} on {socket.gethostname()} writes"):
        Store(tmp_path)
    with Store.reading(tmp_path) as store:
        assert store.keys(), "reading goes on beside a writer"
    assert WriterLock.owner(tmp_path) == f"process {writer.pid} on {socket.gethostname()}"
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate(timeout=60)
    assert WriterLock.owner(tmp_path) is None
    with Store(tmp_path) as store, pytest.raises(OutputError, match=f"process {os.getpid()} on"):
        Store(store.folder)


def test_a_killed_writer_leaves_a_readable_ledger(tmp_path: Path) -> None:
    writer = _writer("ab", tmp_path)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(10)]
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate(timeout=60)
    with Store(tmp_path) as store:
        keys = store.keys()
        assert len(keys) >= len(said)
        assert all(trial["text"] == "ab" * 25000 for trial in store.each())
        assert store.add("after", "cell", Row())


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OutputError, match="a place that can be written"):
        Store(tmp_path / "file")


@pytest.mark.parametrize("opened", [Store, Store.reading])
def test_a_ledger_that_is_none_is_one_line(tmp_path: Path, opened: Callable[[Path], Store]) -> None:
    text = "this is no database " * 100
    (tmp_path / "store.sqlite").write_text(text, encoding="utf-8")
    with pytest.raises(OutputError, match="a whole ledger"):
        opened(tmp_path)
    assert (tmp_path / "store.sqlite").read_text(encoding="utf-8") == text
    assert WriterLock.owner(tmp_path) is None


def test_a_cut_ledger_is_one_line(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for key in range(200):
            store.add(str(key), "cell", Row(text="x" * 500))
    path = tmp_path / "store.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(OutputError, match="a whole ledger"), Store.reading(tmp_path) as store:
        list(store.each())


@pytest.mark.parametrize("opened", [Store, Store.reading])
def test_a_newer_ledger_is_one_line_and_untouched(tmp_path: Path, opened: Callable[[Path], Store]) -> None:
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
        db.execute("PRAGMA user_version=99")
    before = (tmp_path / "store.sqlite").read_bytes()
    with pytest.raises(OutputError, match="version 99"):
        opened(tmp_path)
    assert (tmp_path / "store.sqlite").read_bytes() == before


def test_a_locked_ledger_waits_then_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some other program holds the file itself."""
    with Store(tmp_path) as store:
        store._db.execute("PRAGMA busy_timeout=100")
        with closing(sqlite3.connect(tmp_path / "store.sqlite")) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(OutputError, match="locked"):
                store.add("a", "cell", Row())
        assert store.add("a", "cell", Row())


_OLDER = """
CREATE TABLE trials (key TEXT PRIMARY KEY, cell TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO trials VALUES ('b', 'random m=1', '{"reach": 2}'), ('a', 'self m=1', '{"reach": 1}');
INSERT INTO meta VALUES ('command', '"lmreach test"');
"""


def test_a_ledger_of_an_older_version_is_read_as_it_is_and_migrated_by_its_writer(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
        db.executescript(_OLDER)
    before = (tmp_path / "store.sqlite").read_bytes()
    with Store.reading(tmp_path) as store:
        trials, counts, proofs = list(store.each()), store.counts(), store.proofs()
    assert (tmp_path / "store.sqlite").read_bytes() == before
    assert [trial["key"] for trial in trials] == ["a", "b"]
    assert (counts, proofs) == ({"random m=1": 1, "self m=1": 1}, {})
    with Store(tmp_path) as store:
        assert (list(store.each()), store.counts()) == (trials, counts)
        assert store.meta("command") == "lmreach test"
        tables = store._db.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
        assert {name for name, strict in tables if strict} == {"trials", "meta"}
        assert store._db.execute("PRAGMA user_version").fetchone() == (1,)
        assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)


@given(st.lists(st.integers(0, 1200), max_size=40), st.integers(0, 1200))
@settings(deadline=None, max_examples=20)
def test_records_of_some_keys_are_those_of_all(tmp_path_factory, asked: list[int], missing: int) -> None:
    """The reference reads every trial; more keys are asked for than one question may hold."""
    folder = tmp_path_factory.getbasetemp() / "many"
    with Store(folder) as store:
        if not store.keys():
            rows = [(f"{i:05d}", "cell", json.dumps({"i": i})) for i in range(1200)]
            with store._db:
                store._db.executemany("INSERT INTO trials (key, cell, record) VALUES (?, ?, ?)", rows)
        everything = {trial["key"]: trial for trial in store.each()}
        keys = [f"{i:05d}" for i in asked]
        there = [key for key in keys if key in everything]
        assert [row.i for row in store.records(Row, there)] == [everything[key]["i"] for key in there]
        assert [store.find(Row, key) is not None for key in keys] == [key in everything for key in keys]
        assert store.written([*keys, "none"]) == set(there)
        assert len(store.records(Row, sorted(everything))) == 1200


def test_meta_is_replaced(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_meta("config", {"m": [1]})
        store.put_meta("config", {"m": [2]})
        assert store.meta("config") == {"m": [2]}
        assert store.meta("none") is None
