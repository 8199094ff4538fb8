"""Workers in Slurm jobs: each calls the driver back and takes items as long as its job lasts.

A job that ends, by its time limit or by preemption, is replaced by a new one. The folder of the jobs' files
lies on a disk that all machines see.
"""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lmreach.config import ExecutorConfig
from lmreach.engine.executors.base import Begin, Tell
from lmreach.engine.executors.connection import Called, Callers, call_back
from lmreach.engine.executors.pool import Link, Pool
from lmreach.errors import InputError, problem

__all__ = ["OnSlurm", "check_slurm"]

JOBS = Path("lmreach-jobs")
"""Where submitit keeps what belongs to jobs; no part of a run."""

_MINUTES = 24 * 60


def check_slurm(asked: ExecutorConfig) -> None:
    """Refuse to begin without the library, or with what sbatch cannot be told.

    Raises
    ------
    InputError
        It is not installed, or a setting is not NAME=VALUE.
    """
    if find_spec("submitit") is None:
        remedy = "pip install 'lmreach[slurm]', or send jobs yourself and join them with lmreach merge"
        raise InputError(problem("submitit for --executor slurm", "none installed", remedy))
    _settings(asked)


def _settings(asked: ExecutorConfig) -> dict[str, str]:
    settings = {}
    for word in asked.slurm:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            got = repr(word)
            raise InputError(problem("NAME=VALUE after --slurm", got, "write e.g. --slurm partition=gpu"))
        settings[name.lstrip("-").replace("-", "_")] = value
    return settings


class OnSlurm(Pool):
    """A pool of jobs.

    Parameters
    ----------
    begin
        Makes a worker; it is pickled.
    asked
        How many jobs, and what sbatch is told of each: ``time`` in minutes, ``cluster`` (``local`` runs jobs
        on this machine, for a try), and anything else as Slurm calls it.
    tell
        Told of finished parts.
    """

    def __init__(self, begin: Begin, asked: ExecutorConfig, tell: Tell) -> None:
        import submitit

        settings = _settings(asked)
        cluster = settings.pop("cluster", "slurm")
        jobs = Path(settings.pop("folder", JOBS))
        jobs.mkdir(parents=True, exist_ok=True)
        jobs.chmod(0o700)  # what lies in it is the key to the driver
        self._begin = begin
        self._submitit: Any = submitit.AutoExecutor(folder=jobs, cluster=cluster)
        self._submitit.update_parameters(
            name="lmreach",
            timeout_min=int(settings.pop("time", _MINUTES)),
            cpus_per_task=asked.worker_cores,
            gpus_per_node=0 if cluster == "local" else int(asked.worker_gpus or 0),
            **{f"slurm_{name}": value for name, value in settings.items()},
        )
        self._callers = Callers(socket.gethostname() if cluster == "slurm" else "127.0.0.1")
        assert asked.workers is not None, "check_slurm asks for it"
        super().__init__(self._link, asked.workers, tell)

    def close(self) -> None:
        """Cancel the jobs."""
        super().close()
        self._callers.close()

    def _link(self, number: int, closed: Callable[[], bool]) -> Link:
        def start() -> Called:
            job = self._submitit.submit(_work, self._callers.address, number, self._callers.key)
            return _Job(job)

        return self._callers.link(number, self._begin, start, closed)


def _work(address: Any, number: int, key: bytes) -> None:
    """Work in a job until the driver is gone."""
    cores = os.environ.get("SLURM_CPUS_PER_TASK")
    if cores is not None:
        os.environ.setdefault("OMP_NUM_THREADS", cores)
    call_back(address, number, key)


class _Job(Called):
    def __init__(self, job: Any) -> None:
        self._job = job

    def ended(self) -> str | None:
        if not self._job.done(force_check=True):
            return None
        said = str(self._job.stderr() or "").strip().splitlines()
        return f"job {self._job.job_id}, {self._job.state}{': ' + said[-1][:300] if said else ''}"

    def kill(self) -> None:
        with suppress(Exception):  # a job that has ended cannot be cancelled
            self._job.cancel(check=False)
