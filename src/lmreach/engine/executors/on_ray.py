"""Workers on a Ray cluster: actors with a resident model, wherever the cluster has room for one.

What makes a worker is put into the object store once, weights included where they travel, so no machine needs
the driver's files. An actor that is gone, with its machine or without, is replaced on one that is left. Ray
gives each as many threads as it has cores.
"""

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from lmreach.config import ExecutorConfig
from lmreach.engine.executors.base import Begin, Tell, Worker
from lmreach.engine.executors.pool import Closed, Link, Pool, WorkerDied
from lmreach.errors import InputError, LmreachError, problem

__all__ = ["OnRay", "check_ray"]

_POLL_S = 0.2
_GIB = 2**30


def check_ray() -> None:
    """Refuse to begin without the library.

    Raises
    ------
    InputError
        It is not installed.
    """
    if find_spec("ray") is None:
        remedy = "pip install 'lmreach[ray]', or use --executor processes"
        raise InputError(problem("ray for --executor ray", "none installed", remedy))


class OnRay(Pool):
    """A pool of actors.

    Parameters
    ----------
    begin
        Makes a worker; it is pickled once.
    asked
        How many workers, what each needs, and which cluster.
    tell
        Told of finished parts.
    memory
        Bytes that a worker needs at least.

    Raises
    ------
    InputError
        There is no such cluster, or no machine of it can hold a worker.
    """

    def __init__(self, begin: Begin, asked: ExecutorConfig, tell: Tell, *, memory: int) -> None:
        import ray

        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            self._connect_to(asked.ray_address)
        try:
            self._needs = self._what_each_needs(asked, memory)
            room = self._room()
            if room == 0:
                self._refuse()
            self._begin = ray.put(begin)
            self._actor = ray.remote(_Actor)
        except BaseException:
            self._leave()
            raise
        super().__init__(self._link, asked.workers or room, tell)

    def close(self) -> None:
        """End the actors."""
        super().close()
        self._leave()

    def _leave(self) -> None:
        if self._own:
            self._ray.shutdown()

    def _connect_to(self, address: str | None) -> None:
        try:
            self._ray.init(
                address=address,
                log_to_driver=False,
                logging_level="ERROR",
                **({"include_dashboard": False} if address is None else {}),
            )
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            got = f"{address}: {(str(error).splitlines() or [''])[0]}"
            remedy = "start one with 'ray start --head', and pass --ray-address auto or HOST:PORT"
            raise InputError(problem("a Ray cluster at --ray-address", got, remedy)) from error

    def _what_each_needs(self, asked: ExecutorConfig, memory: int) -> dict[str, float]:
        gpus = asked.worker_gpus
        if gpus is None:
            gpus = 1.0 if any(one.get("GPU", 0.0) for one in self._nodes()) else 0.0
        needs = {"CPU": float(asked.worker_cores), "GPU": gpus}
        # On a GPU the weights lie in its own memory, of which the cluster counts none.
        return {**needs, "memory": 0.0 if gpus else float(memory)}

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _room(self) -> int:
        """Return how many workers the machines of the cluster could hold."""
        wanted = {name: need for name, need in self._needs.items() if need}
        return sum(
            int(min(node.get(name, 0.0) // need for name, need in wanted.items())) for node in self._nodes()
        )

    def _refuse(self) -> None:
        def told(of: dict[str, float]) -> str:
            memory = f"{of.get('memory', 0.0) / _GIB:.1f} GiB"
            return f"{of.get('CPU', 0.0):g} cores, {of.get('GPU', 0.0):g} GPUs, {memory}"

        largest = max(self._nodes(), key=lambda one: (one.get("GPU", 0), one.get("memory", 0)), default={})
        wanted = f"a machine with {told(self._needs)} for a worker"
        remedy = "add a machine, ask for less by --worker-gpus and --worker-cores, or use --dtype bfloat16"
        raise InputError(problem(wanted, f"none in the cluster; the largest has {told(largest)}", remedy))

    def _link(self, number: int, closed: Callable[[], bool]) -> Link:
        if self._room() == 0:
            raise LmreachError("no machine is left in the cluster that can hold a worker")
        options = {
            "num_cpus": self._needs["CPU"],
            "num_gpus": self._needs["GPU"],
            "memory": int(self._needs["memory"]) or None,
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": 2,  # one works, one hears the request to stop
        }
        actor = self._actor.options(**options).remote()
        link = _OnActor(self._ray, actor)
        try:
            link.wait(actor.begin.remote(self._begin), closed)
        except BaseException:
            link.end()
            raise
        return link


class _Actor:
    """A worker in its process on the cluster."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._stop = False

    def begin(self, begin: Begin) -> None:
        self._worker = begin()

    def work(self, item: Any) -> tuple[list[Any], Any]:
        assert self._worker is not None
        told: list[Any] = []
        return told, self._worker(item, told.append, lambda: self._stop)

    def stop(self) -> None:
        self._stop = True


class _OnActor(Link):
    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    def ask(self, item: Any, tell: Tell) -> Any:
        told, answer = self.wait(self._actor.work.remote(item), lambda: False)
        for one in told:
            tell(one)
        return answer

    def stop(self) -> None:
        with suppress(Exception):  # an actor that is gone stopped
            self._actor.stop.remote()

    def end(self) -> None:
        with suppress(Exception):
            self._ray.kill(self._actor)

    def wait(self, reference: Any, closed: Callable[[], bool]) -> Any:
        """Return what an actor gives, in the terms of a pool where it gives nothing."""
        errors = self._ray.exceptions
        while not self._ray.wait([reference], timeout=_POLL_S)[0]:
            if closed():
                raise Closed
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, LmreachError):
                raise type(cause)(str(cause)) from error
            raise WorkerDied(f"the worker broke ({type(cause).__name__}: {cause})") from error
        except errors.RayError as error:
            raise WorkerDied(f"the worker died ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in lines if "cause" in line.lower() or "died" in line.lower()), "")
    return (told or type(error).__name__)[:300]
