"""What importing the package does: nothing heavy; idle threads sleep unless the user said how they wait."""

import os
import subprocess
import sys

import pytest

SHOW = "import lmreach, os, sys; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, "3000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "None"),
    ],
)
def test_idle_threads_sleep_unless_the_user_said_how_they_wait(given: dict[str, str], kept: str) -> None:
    free = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env={**free, **given}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [kept, "False"]
