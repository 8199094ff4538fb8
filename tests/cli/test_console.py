"""Consoles that cannot show everything, signals, and memory that runs out: one line, never a stack trace."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.cli import main
from lmreach.cli import progress as terminal
from lmreach.cli.console import show_anything
from lmreach.cli.progress import Interrupt
from lmreach.errors import out_of_memory

EVERYTHING = st.text(st.characters(codec="utf-8"), max_size=20)


@given(EVERYTHING, st.sampled_from(["ascii", "cp1252", "latin-1", "cp437", "utf-8"]))
@settings(deadline=None, max_examples=100)
def test_json_stays_json_in_every_encoding(text: str, encoding: str) -> None:
    raw = io.BytesIO()
    before = sys.stdout
    sys.stdout = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    try:
        show_anything()
        sys.stdout.write(json.dumps({"text": text}, ensure_ascii=False))
        sys.stdout.flush()
        written = raw.getvalue()
    finally:
        sys.stdout = before
    assert json.loads(written.decode(encoding)) == {"text": text}


def test_a_console_in_cp1252_shows_what_it_can(tmp_path: Path) -> None:
    """Tokens of a model without a tokenizer stand in brackets that cp1252 lacks; the page is UTF-8 anyway."""
    words = "cram builtin:random -m 1 --strings 2 --max-steps 20 --n-max 4 --start-scale 1"
    env = {**os.environ, "PYTHONIOENCODING": "cp1252"}

    def lmreach(*words: str) -> "subprocess.CompletedProcess[bytes]":
        command = [sys.executable, "-m", "lmreach", *words]
        return subprocess.run(command, capture_output=True, env=env, timeout=200, check=False)

    run = lmreach(*words.split(), "--out", str(tmp_path / "run"))
    assert (run.returncode, b"Traceback" in run.stderr) == (0, False), run.stderr
    certificate = sorted((tmp_path / "run" / "certificates").glob("*.safetensors"))[0]
    said = lmreach("decode", str(certificate))
    assert said.returncode == 0, said.stderr
    assert b"\\u27e8" in said.stdout


def test_sigterm_asks_once_and_a_run_says_143(monkeypatch: pytest.MonkeyPatch) -> None:
    left = threading.Event()
    monkeypatch.setattr(terminal, "_leave", left.set)
    monkeypatch.setattr(terminal, "_GRACE_S", 0.05)
    with Interrupt() as interrupt:
        assert not interrupt()
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt()
        os.kill(os.getpid(), signal.SIGTERM)
        assert left.wait(20), "a step that is too long is not waited for"
        assert interrupt.code == 143
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert (interrupt(), interrupt.code) == (True, 130)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), True),
        (RuntimeError("No executable batch size found, reached zero."), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_memory_that_ran_out_is_one_line(
    error: Exception, said: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert out_of_memory(error) is said

    def fail(words: object) -> None:
        raise error

    monkeypatch.setattr("lmreach.cli._run", fail)
    with pytest.raises(SystemExit if said else type(error)) as end:
        main(["study", "x"])
    if said:
        assert end.value.code == 2
        err = capsys.readouterr().err
        assert err.startswith("lmreach: expected memory")
        assert len(err.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place where not even root can write")
@pytest.mark.parametrize(
    "words",
    [
        ["support", "builtin:random", "--out", "/proc/none/file"],
        ["cells", "builtin:random", "--map", "a", "b", "c", "--out", "/proc/none"],
        ["census", "builtin:random", "--missing", "/proc/none/file", "--out", "run"],
        ["census", "builtin:random", "--is-reachable", "ids:1", "--out", "/proc/none"],
        ["cram", "builtin:random", "--out", "/proc/none"],
        ["copy", "--out", "/proc/none"],
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_work(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.chdir(tmp_path)
    for module in ("support", "cells.run", "census.run", "census.reachability", "study.run", "copying.run"):
        monkeypatch.setattr(f"lmreach.runs.{module}.load", no_work)
    with pytest.raises(SystemExit) as end:
        main([*words, "--no-progress"])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert "/proc" in err
    assert "choose another" in err
