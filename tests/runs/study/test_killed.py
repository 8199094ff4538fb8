"""kill -9 at random moments loses nothing, does nothing twice and changes no outcome, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def killed(place: Path, runs: int, seed: int, timeout: int) -> None:
    command = [sys.executable, "-m", "tests.runs.study.killed", str(place), str(runs), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-2000:]
    whole, others = lines[0], lines[1:]
    assert len(others) == runs
    assert len(whole["trials"]) == 6
    assert whole["proofs"]
    for other in others:
        for what in ("trials", "proofs", "left", "reaches", "page"):
            assert other[what] == whole[what], (other["moments"], what)
        assert None not in other["proofs"].values(), "every claim has its proof"
        assert other["half_written"] == [], other["moments"]


@pytest.mark.timeout(600)
def test_twenty_killed_runs_go_on_to_the_same_end(tmp_path: Path) -> None:
    killed(tmp_path, 20, seed=1, timeout=590)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_killed_runs_go_on_to_the_same_end(tmp_path: Path) -> None:
    killed(tmp_path, 200, seed=2, timeout=3590)
