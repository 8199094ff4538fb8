"""The ledger: written once, readable after anything, one line when it cannot be written."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.engine.store import Store, read_certificate
from lmreach.errors import OutputError


def test_a_trial_is_written_once(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        assert store.add("a", "random m=1", {"reach": 3})
        assert not store.add("a", "random m=1", {"reach": 9})
        assert store.trials() == [{"key": "a", "cell": "random m=1", "reach": 3}]
    with Store(tmp_path / "run") as store:
        assert store.keys() == {"a"}


@given(st.lists(st.sampled_from("abcdef"), max_size=12))
@settings(deadline=None, max_examples=20)
def test_order_and_repeats_are_forgotten(tmp_path_factory, order: list[str]) -> None:
    with Store(tmp_path_factory.mktemp("run")) as store:
        for key in order:
            store.add(key, "cell", {"key_was": key})
        assert [trial["key"] for trial in store.trials()] == sorted(set(order))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_never_enters(tmp_path: Path, value: float) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(ValueError, match="JSON"):
            store.add("a", "cell", {"loss": value})
        assert store.keys() == set()


def test_certificates_come_back_bit_for_bit(tmp_path: Path, rng: np.random.Generator) -> None:
    vectors, ids = rng.normal(size=(2, 5)).astype(np.float32), np.arange(4)
    with Store(tmp_path) as store:
        store.put_certificate("k", vectors, ids, {"claim": "emits"})
        path = store.certificate_path("k")
    found, found_ids, claim = read_certificate(path)
    np.testing.assert_array_equal(found, vectors)
    np.testing.assert_array_equal(found_ids, ids)
    assert claim == {"claim": "emits"}
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(OutputError, match="certificate"):
        read_certificate(path)


_WRITER = """
import sys
from pathlib import Path
from lmreach.engine.store import Store
who, folder = sys.argv[1:3]
with Store(Path(folder)) as store:
    for i in range(100):
        store.add(f"{who}-{i:03d}", "cell", {"text": who * 25000, "i": i})
        print(i, flush=True)
"""


def _writer(who: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, who, str(folder)], stdout=subprocess.PIPE, text=True, env=os.environ
    )


def test_two_writers_lose_and_splice_nothing(tmp_path: Path) -> None:
    Store(tmp_path).close()
    writers = [_writer(who, tmp_path) for who in ("ab", "cd")]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    with Store(tmp_path) as store:
        trials = store.trials()
    assert len(trials) == 200
    assert all(trial["text"] == trial["key"][:2] * 25000 for trial in trials)


def test_a_killed_writer_leaves_a_readable_ledger(tmp_path: Path) -> None:
    writer = _writer("ab", tmp_path)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(10)]
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate(timeout=60)
    with Store(tmp_path) as store:
        keys = store.keys()
        assert len(keys) >= len(said)
        assert all(trial["text"] == "ab" * 25000 for trial in store.trials())
        assert store.add("after", "cell", {})


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OutputError, match="--out"):
        Store(tmp_path / "file")


def test_a_ledger_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("this is no database " * 100, encoding="utf-8")
    with pytest.raises(OutputError, match="run folder"):
        Store(tmp_path)


def test_a_locked_ledger_waits_then_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout=min(timeout, 0.1)))
    other = connect(tmp_path / "store.sqlite")
    other.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    with pytest.raises(OutputError, match="locked"):
        Store(tmp_path).add("a", "cell", {})
    assert time.monotonic() - begun < 30
    other.close()


def test_meta_is_replaced(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_meta("config", {"m": [1]})
        store.put_meta("config", {"m": [2]})
        assert store.meta("config") == {"m": [2]}
        assert store.meta("none") is None
