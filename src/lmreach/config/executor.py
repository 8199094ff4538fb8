"""Where the rounds of a plan are run: which decides how soon a run ends, and nothing of what it finds."""

from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import AfterValidator, Field

from lmreach.config.settings import Count, Settings, several
from lmreach.errors import InputError, problem

__all__ = ["ExecutorConfig", "On"]


def _known_shard(text: str | None) -> str | None:
    if text is None:
        return None
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise InputError(problem("a part of a plan as NUMBER/PARTS", repr(text), "write e.g. 1/8"))
    return text


class ExecutorConfig(Settings):
    """Who runs the rounds of a plan; no part of what a run is asked, so it may change when a run goes on."""

    executor: Literal["local", "processes", "ray", "slurm"] = Field(
        default="local",
        description="local (this process), processes (of this machine, threads divided among them), ray (a "
        "cluster) or slurm (jobs)",
    )
    workers: Count | None = Field(
        default=None,
        description="how many rounds at once, each worker with a model of its own; none: as many as there "
        "are cores (processes) or as the cluster has room for (ray)",
    )
    worker_gpus: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="GPUs of each worker, 0.5: two share one; none: 1 where a cluster has any"
    )
    worker_cores: Count = Field(default=1, description="cores, and threads, of each worker of ray or slurm")
    ray_address: str | None = Field(
        default=None,
        description="an existing cluster: auto or HOST:PORT; none: one is started on this machine",
    )
    shard: Annotated[str | None, AfterValidator(_known_shard)] = Field(
        default=None,
        description="one part of a plan without budget and width, e.g. 2/8: the second of eight, each a run "
        "of its own, which 'lmreach merge' joins",
    )
    slurm: Annotated[tuple[str, ...], several()] = Field(
        default=(),
        description="what sbatch is told of each job, e.g. partition=gpu time=120 account=mine",
    )

    def owns(self, number: int) -> bool:
        """Say whether a round or block of a plan, by its number in it, is of this part."""
        if self.shard is None:
            return True
        own, _, parts = self.shard.partition("/")
        return number % int(parts) == int(own) - 1


# Beside other options on the command line.
On = Annotated[ExecutorConfig, Parameter(name="*", group="Executor options")]
