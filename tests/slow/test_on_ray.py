"""Runs on a real Ray cluster of several nodes on this machine, whose workers, nodes and driver are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from lmreach.config import CramPlan, ExecutorConfig, StudyConfig
from lmreach.engine.executors.base import Executor
from lmreach.engine.executors.on_ray import OnRay
from lmreach.engine.run import open_run
from lmreach.errors import InputError, ModelError
from lmreach.models.load import load
from lmreach.runs.study.run import run_study
from tests.engine.executors.test_executors import answered, outcome
from tests.engine.executors.workers import Doubling
from tests.runs.study.test_executors import CONFIG, untimed_searches, whole

__all__ = ["untimed_searches"]

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of sockets and subprocesses
]
_PATH = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
_MEMORY = 2 * 2**30


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three nodes; workers run on the second and third, the first is only the head."""
    for name, value in _PATH.items():
        monkeypatch.setenv(name, value)
    small = {"object_store_memory": 100 * 2**20, "memory": _MEMORY}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    nodes = [made.add_node(num_cpus=1, **small) for _ in range(2)]
    made.wait_for_nodes()
    made.workers = nodes
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def on(cluster: Any, workers: int = 2, **more: Any) -> ExecutorConfig:
    return ExecutorConfig(executor="ray", ray_address=cluster.address, workers=workers, **more)


def pool(cluster: Any, place: Path, told: Callable[[Any], None] = lambda _: None, **more: Any) -> Executor:
    return OnRay(Doubling(place), on(cluster, **more), told, memory=2**20)


def test_answers_deaths_failures_and_refusals(cluster: Any, tmp_path: Path) -> None:
    told: list[Any] = []
    with pool(cluster, tmp_path, told.append) as made:
        futures = [made.submit(item) for item in (1, "dies once", "dies", "breaks", "fails", 5)]
        answered(made, futures, seconds=600)
    found = [outcome(future) for future in futures]
    assert (found[0], found[1], found[5]) == (2, "dies oncedies once", 10)
    assert found[2].startswith("the worker died (")
    assert found[2].endswith(", 3 times")
    assert found[3] == "the worker broke (ValueError: something unforeseen), 3 times"
    assert found[4] == "out of memory with one string at a time"
    assert ("half", 5) in told
    refusing = OnRay(Doubling(tmp_path, refuses="expected a; got b; do c"), on(cluster), print, memory=1)
    with pytest.raises(ModelError, match="expected a; got b; do c"), refusing:
        answered(refusing, [refusing.submit(1)], seconds=600)


def test_a_node_that_goes_takes_its_round_to_another(cluster: Any, tmp_path: Path) -> None:
    with pool(cluster, tmp_path) as made:
        warm = [made.submit(item) for item in ("a", "b")]
        answered(made, warm, seconds=600)
        futures: list[Future[Any]] = [made.submit("waits" if k == 0 else k) for k in range(4)]
        while not (tmp_path / "begun-waits").exists():
            made.wait(futures, 0.1)
        # Whichever node waits: the other goes first, so that what is left holds one worker, then that one.
        cluster.remove_node(cluster.workers[0])
        cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20, memory=_MEMORY)
        cluster.remove_node(cluster.workers[1])
        answered(made, futures[1:], seconds=600)
        assert [future.result() for future in futures[1:]] == [2, 4, 6]
        made.stop()
        answered(made, futures[:1], seconds=600)
        assert futures[0].result() is None


def test_a_plan_that_no_node_can_hold_is_refused(cluster: Any, tmp_path: Path) -> None:
    for more, memory in (({"worker_cores": 8}, 1), ({"worker_gpus": 1.0}, 1), ({}, 2**50)):
        with pytest.raises(InputError, match=r"a machine with .* for a worker; got none in the cluster"):
            OnRay(Doubling(tmp_path), on(cluster, **more), print, memory=memory)
    assert not any(tmp_path.iterdir()), "nobody began"
    with pytest.raises(InputError, match="a Ray cluster at --ray-address"):
        OnRay(
            Doubling(tmp_path),
            ExecutorConfig(executor="ray", ray_address="127.0.0.1:1", workers=1),
            print,
            memory=1,
        )


def test_two_thousand_short_items(cluster: Any, tmp_path: Path) -> None:
    with pool(cluster, tmp_path) as made:
        answered(made, [made.submit(0)], seconds=600)
        futures = [made.submit(k) for k in range(1, 2001)]
        answered(made, futures, seconds=1200)
        assert [future.result() for future in futures] == [2 * k for k in range(1, 2001)]


def test_a_run_finds_to_the_bit_what_one_process_finds(cluster: Any, tmp_path: Path) -> None:
    alone = whole(run_study(CONFIG, tmp_path / "alone").folder)
    found = run_study(CONFIG, tmp_path / "ray", executor=on(cluster))
    assert whole(found.folder) == alone
    # A model that has no name travels: its weights are put into the object store.
    sent = run_study(CONFIG, tmp_path / "sent", executor=on(cluster), model=load(CONFIG.model))
    assert whole(sent.folder) == alone


_DRIVER = """
import sys
from pathlib import Path
from lmreach.config import ExecutorConfig
from lmreach.runs.study.run import run_study
from tests.runs.study.test_executors import untimed_search
from tests.slow.test_on_ray import LONG
untimed_search()
on = ExecutorConfig(executor="ray", ray_address=sys.argv[2], workers=2)
run_study(LONG, Path(sys.argv[1]), executor=on)
"""
LONG: StudyConfig = CONFIG.model_copy(
    update={"cram": CramPlan(strings=160, max_steps=6, n_max=4, search_dtype="float32", start_scale=1.0)}
)


def test_a_driver_that_is_killed_goes_on_to_the_same_end(cluster: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-c", _DRIVER, str(folder), cluster.address]
    driver = subprocess.Popen(command, env={**os.environ, **_PATH})
    count, ends = 0, time.monotonic() + 900
    while count < 32 and time.monotonic() < ends:
        time.sleep(0.5)
        assert driver.poll() is None
        if (folder / "store.sqlite").is_file():
            with open_run(folder).ledger() as store:
                count = len(store.keys())
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    with open_run(folder).ledger() as store:
        assert 32 <= len(store.keys()) < 320
    end = run_study(LONG, folder, executor=on(cluster))
    assert not end.interrupted
    assert whole(folder) == whole(run_study(LONG, tmp_path / "alone").folder)


def test_a_round_whose_worker_always_dies_is_told_and_the_others_finish(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmreach.runs.study import run as module

    monkeypatch.setattr(module, "StudyWorker", Deadly)
    end = run_study(CONFIG, tmp_path / "run", executor=on(cluster))
    (failed,) = end.failed
    assert failed.startswith("a round of random m=2 failed: the worker died (")
    assert failed.endswith(", 3 times")
    results = open_run(end.folder).results()
    assert [(one.m, one.strings) for one in results.accessibility] == [(1, 34)]


class Deadly:
    """Makes a worker that ends its process wherever two vectors are asked for."""

    def __init__(self, *asked: Any) -> None:
        self.asked = asked

    def __call__(self) -> Any:
        from lmreach.runs.study.round import StudyWorker

        worker = StudyWorker(*self.asked)()

        def work(item: Any, tell: Any, stopped: Any) -> Any:
            if item.chunk.condition.m == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return worker(item, tell, stopped)

        return work
