"""Workers in jobs, by submitit's own executor of this machine: what Slurm would start is started here."""

from pathlib import Path
from typing import Any

import pytest

from lmreach.config import ExecutorConfig
from lmreach.engine.executors.choose import check_executor
from lmreach.engine.executors.on_slurm import OnSlurm
from lmreach.errors import InputError
from lmreach.runs.study.run import run_study
from tests.engine.executors.test_executors import answered, outcome
from tests.engine.executors.workers import Doubling
from tests.runs.study.test_executors import CONFIG, untimed_searches, whole

__all__ = ["untimed_searches"]

pytest.importorskip("submitit")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.filterwarnings("ignore")]


def jobs(place: Path) -> ExecutorConfig:
    return ExecutorConfig(
        executor="slurm", workers=2, slurm=("cluster=local", f"folder={place / 'jobs'}", "time=20")
    )


def test_jobs_answer_die_and_are_replaced(tmp_path: Path) -> None:
    told: list[Any] = []
    with OnSlurm(Doubling(tmp_path), jobs(tmp_path), told.append) as made:
        futures = [made.submit(item) for item in (1, "dies once", "dies", "fails", 5)]
        answered(made, futures, seconds=600)
    found = [outcome(future) for future in futures]
    assert (found[0], found[1], found[4]) == (2, "dies oncedies once", 10)
    assert "the worker" in found[2]
    assert found[2].endswith(", 3 times")
    assert found[3] == "out of memory with one string at a time"
    assert ("half", 5) in told
    assert (tmp_path / "jobs").stat().st_mode & 0o077 == 0, "the key to the driver is nobody else's"


def test_a_run_finds_to_the_bit_what_one_process_finds(tmp_path: Path) -> None:
    alone = whole(run_study(CONFIG, tmp_path / "alone").folder)
    assert whole(run_study(CONFIG, tmp_path / "run", executor=jobs(tmp_path)).folder) == alone


def test_what_sbatch_cannot_be_told_is_refused() -> None:
    asked = ExecutorConfig(executor="slurm", workers=1, slurm=("partition",))
    with pytest.raises(InputError, match="NAME=VALUE after --slurm; got 'partition'"):
        check_executor(asked)
