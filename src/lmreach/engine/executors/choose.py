"""Which executor is meant by what was asked for."""

import os
from collections.abc import Callable
from typing import Protocol

from lmreach.config import ExecutorConfig
from lmreach.engine.executors.base import Begin, Executor, Stopped, Tell, Worker
from lmreach.engine.executors.local import Local
from lmreach.engine.executors.processes import Processes
from lmreach.errors import InputError, problem

__all__ = ["There", "check_executor", "executor_of"]


class There(Protocol):
    """Gives what makes a worker in another process."""

    def __call__(self, *, files: bool) -> Begin:
        """Return it; ``files``: whether workers see the files of this machine."""


def check_executor(asked: ExecutorConfig) -> None:
    """Refuse what cannot be meant, before anything is loaded.

    Raises
    ------
    InputError
        Several workers without an executor that has them, options of another executor, or a library that is
        not installed.
    """
    own = {
        "workers": ("processes", "ray", "slurm"),
        "ray_address": ("ray",),
        "worker_gpus": ("ray", "slurm"),
        "worker_cores": ("ray", "slurm"),
        "slurm": ("slurm",),
    }
    for name, executors in own.items():
        default = ExecutorConfig.model_fields[name].default
        if getattr(asked, name) != default and asked.executor not in executors:
            flag = f"--{name.replace('_', '-')}"
            got = f"--executor {asked.executor}"
            remedy = f"use --executor {executors[0]}, or leave {flag} out"
            raise InputError(problem(f"--executor {' or '.join(executors)} with {flag}", got, remedy))
    if asked.shard is not None and asked.executor not in ("local", "processes"):
        got = f"--executor {asked.executor}"
        remedy = "leave --shard out: the cluster's workers share one plan"
        raise InputError(problem("--executor local or processes with --shard", got, remedy))
    if asked.executor == "slurm" and asked.workers is None:
        raise InputError(problem("--workers with --executor slurm", "none", "say how many jobs"))
    if asked.executor == "ray":
        from lmreach.engine.executors.on_ray import check_ray

        check_ray()
    if asked.executor == "slurm":
        from lmreach.engine.executors.on_slurm import check_slurm

        check_slurm(asked)


def executor_of(
    asked: ExecutorConfig,
    here: Callable[[], Worker],
    there: There,
    tell: Tell,
    stopped: Stopped,
    *,
    memory: int = 0,
) -> Executor:
    """Return the executor that was asked for, at its beginning.

    Parameters
    ----------
    here
        Makes the worker that works in this process.
    there
        Gives what makes workers elsewhere.
    tell, stopped
        See `lmreach.engine.executors.base`.
    memory
        Bytes that a worker needs at least.

    Raises
    ------
    LmreachError
        No machine of the cluster can hold a worker, or there is no cluster.
    """
    if asked.executor == "processes":
        return Processes(there(files=True), asked.workers or os.cpu_count() or 1, tell)
    if asked.executor == "ray":
        from lmreach.engine.executors.on_ray import OnRay

        return OnRay(there(files=False), asked, tell, memory=memory)
    if asked.executor == "slurm":
        from lmreach.engine.executors.on_slurm import OnSlurm

        return OnSlurm(there(files=True), asked, tell)
    return Local(here(), tell, stopped)
