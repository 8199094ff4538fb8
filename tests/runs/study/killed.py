"""Studies that are killed for good: run as a program, which forks a child for each and ends it by SIGKILL.

Every child begins or goes on with a small run; when it dies is drawn: after a random time, or just before
or after a step by which something reaches the disk (a sync, a rename, a statement of SQLite, the page).
Then another child goes on to the end. One line of JSON each says what the folder holds then.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.run import open_run
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.runs.certificates.stored import read_certificate
from lmreach.runs.study import run as study
from tests.runs.study.test_executors import untimed_search

CONFIG = StudyConfig(
    model="builtin:random",
    m=(1, 2),
    targets=("random",),
    budget_s=None,
    relative_width=None,
    support_positions=0,
    decoder_cells=False,
    cram=CramPlan(strings=3, max_steps=5, n_max=4, search_dtype="float32", start_scale=1.0),
)
# Brought in once: what is killed is the run.
MODEL: list[LoadedModel] = []


def whole(folder: Path) -> dict[str, Any]:
    """Return what a finished run holds, without times."""
    run = open_run(folder)
    with run.ledger() as store:
        trials = {trial.pop("key"): {**trial, "seconds": 0} for trial in store.each()}
        proofs = {}
        for path in store.certificates():
            vectors, ids, _ = read_certificate(path)
            proofs[path.stem] = [vectors.tolist(), ids.tolist()]
        claimed = set(store.proofs())
    end = run.end()
    assert end is not None
    files = sorted(path.name for path in folder.rglob("*") if path.is_file())
    return {
        "trials": trials,
        "proofs": {key: proofs.get(key) for key in claimed},
        "left": [one.what for one in end.left],
        "reaches": [list(one.reaches) for one in run.results().accessibility],
        "half_written": [name for name in files if name.endswith((".part", "-journal"))],
        "page": (folder / "report.html").stat().st_size > 10_000,
    }


def forked(work: Callable[[], object]) -> int:
    """Do something in a child; returns its process number."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:
        say({"error": repr(error)})
        os._exit(1)
    os._exit(0)


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def go(folder: Path) -> None:
    study.run_study(CONFIG, folder, command="test", model=MODEL[0])


def go_until(folder: Path, step: int) -> int:
    """Run, and die at the n-th time that something reaches the disk; 0: never. Returns minus the times."""
    left = [step]

    def tick(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def both(*args: Any, **more: Any) -> Any:
            tick()
            value = real(*args, **more)
            tick()
            return value

        setattr(owner, name, both)

    for owner, name in ((os, "fsync"), (Path, "replace"), (study, "render")):
        around(owner, name)
    connect = sqlite3.connect

    def traced(*args: Any, **more: Any) -> sqlite3.Connection:
        db = connect(*args, **more)
        db.set_trace_callback(tick)
        return db

    sqlite3.connect = traced  # type: ignore[assignment]
    go(folder)
    return left[0]


def kill_and_go_on(folder: Path, rng: random.Random, seconds: float, steps: int) -> str:
    """Kill a run at a drawn moment, once or twice, then let it end; returns what the moments were."""
    moments = []
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.5:
            step = rng.randrange(1, steps)
            moments.append(f"step {step}")
            os.waitpid(forked(lambda step=step: go_until(folder, step)), 0)  # type: ignore[misc]
        else:
            after = rng.uniform(0.0, seconds)
            moments.append(f"{after:.2f} s")
            child = forked(lambda: go(folder))
            time.sleep(after)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    _, status = os.waitpid(forked(lambda: go(folder)), 0)
    assert status == 0, f"the run cannot be gone on with after {moments}"
    return ", ".join(moments)


def main(place: Path, runs: int, seed: int) -> None:
    torch.set_num_threads(1)  # a child of a process with more would wait for threads that it does not have
    MODEL.append(load(CONFIG.model))
    untimed_search()
    page = study.render

    def small(results: Any, out: Path) -> Path:
        """Draw the page of some runs only: it takes longer than the run."""
        if draw[0]:
            return page(results, out)
        out.write_text("x" * 10_001)
        return out

    draw, study.render = [True], small
    rng = random.Random(seed)
    os.waitpid(forked(lambda: go(place / "whole")), 0)
    say({"moments": "none", **whole(place / "whole")})
    draw[0], begun = False, time.monotonic()
    os.waitpid(forked(lambda: (place / "steps").write_text(str(-go_until(place / "counted", 0)))), 0)
    seconds, steps = time.monotonic() - begun, int((place / "steps").read_text())
    for number in range(runs):
        draw[0] = number % 10 == 0
        moments = kill_and_go_on(place / f"run{number}", rng, seconds, steps)
        say({"moments": moments, **whole(place / f"run{number}")})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
