"""What every executor does alike: answers, what was told before them, failures, deaths, and stops."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from lmreach.config import ExecutorConfig
from lmreach.engine.executors.base import Executor, WorkFailed
from lmreach.engine.executors.choose import check_executor
from lmreach.engine.executors.local import Local
from lmreach.engine.executors.processes import Processes, threads_of_each
from lmreach.errors import InputError, ModelError
from tests.engine.executors.workers import Doubling


def answered(executor: Executor, futures: list[Future[Any]], seconds: float = 100.0) -> None:
    """Wait as a run does: in turns, so that what is told is passed on."""
    ends, left = time.monotonic() + seconds, set(futures)
    while left:
        assert time.monotonic() < ends
        left -= executor.wait(left, 0.2)


def outcome(future: Future[Any]) -> Any:
    return str(future.exception()) if future.exception() else future.result()


@pytest.fixture(params=["local", "processes"])
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Executor, list[Any]]]:
    told: list[Any] = []
    begin = Doubling(tmp_path)
    if request.param == "local":
        made: Executor = Local(begin(), told.append, lambda: False)
    else:
        made = Processes(begin, 2, told.append)
    with made:
        yield made, told


def test_items_are_answered_and_parts_told_before(executor: tuple[Executor, list[Any]]) -> None:
    made, told = executor
    futures = [made.submit(item) for item in (1, "ab", "fails", 7)]
    answered(made, futures)
    assert [outcome(future) for future in futures] == [
        2,
        "abab",
        "out of memory with one string at a time",
        14,
    ]
    assert sorted(map(str, told)) == ["('half', 'ab')", "('half', 1)", "('half', 7)"]


def test_a_worker_that_dies_is_replaced_and_one_that_always_dies_is_told(tmp_path: Path) -> None:
    with Processes(Doubling(tmp_path), 2, lambda _: None) as made:
        futures = [made.submit(item) for item in ("dies once", "dies", "breaks", 5)]
        answered(made, futures)
    assert outcome(futures[0]) == "dies oncedies once"
    assert outcome(futures[1]) == "the worker died (exit code 3), 3 times"
    assert outcome(futures[2]) == "the worker broke (ValueError: something unforeseen), 3 times"
    assert outcome(futures[3]) == 10
    assert isinstance(futures[1].exception(), WorkFailed)


def test_workers_that_refuse_to_begin_end_the_run(tmp_path: Path) -> None:
    made = Processes(Doubling(tmp_path, refuses="expected a model; got none; bring one"), 1, print)
    with pytest.raises(ModelError, match="expected a model; got none"), made:
        answered(made, [made.submit(1)])


def test_workers_that_wait_stop_when_asked_and_others_are_ended(tmp_path: Path) -> None:
    made = Processes(Doubling(tmp_path), 1, print)
    with made:
        future, waiting = made.submit("waits"), made.submit(1)
        while not (tmp_path / "begun-waits").exists():
            made.wait([future], 0.05)
        made.stop()
        answered(made, [future, waiting])
        assert (future.result(), waiting.result()) == (None, None)
    with Processes(Doubling(tmp_path), 1, print) as made:
        future = made.submit("waits")
    assert future.result(timeout=10) is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"workers": 2}, "--executor processes or ray or slurm with --workers; got --executor local"),
        ({"executor": "processes", "ray_address": "auto"}, "--executor ray with --ray-address"),
        ({"executor": "slurm"}, "--workers with --executor slurm"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_executor(ExecutorConfig(**asked))


def test_threads_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert [threads_of_each(size) for size in (1, 2, 3, 9)] == [7, 3, 2, 1]
