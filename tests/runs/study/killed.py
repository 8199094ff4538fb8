"""Studies that are killed for good: run as a program, which forks a child for each and ends it by SIGKILL.

Every child begins or goes on with a small run; when it dies is drawn: after a random time, or just before or
after one of the steps by which something reaches the disk (a sync, a rename, a statement of SQLite, the page).
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

from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.run import open_run
from lmreach.engine.store import read_certificate
from lmreach.runs.study import run as study

# One string at a time: what a string gives then does not depend on which others are run with it.
CONFIG = StudyConfig(
    model="builtin:random",
    m=(1, 2),
    targets=("random",),
    budget_s=None,
    relative_width=None,
    support_positions=0,
    decoder_cells=False,
    cram=CramPlan(strings=3, max_steps=12, n_max=4, batch_size=1, search_dtype="float32", start_scale=1.0),
)


def whole(folder: Path) -> dict[str, Any]:
    """Return what a finished run holds, without times."""
    run = open_run(folder)
    with run.ledger() as store:
        trials = {trial.pop("key"): {**trial, "seconds": 0} for trial in store.trials()}
        proofs = {}
        for path in store.certificates():
            vectors, ids, _ = read_certificate(path)
            proofs[path.stem] = [vectors.tobytes().hex()[:64], ids.tolist()]
        claimed = set(store.proofs())
    end = run.end()
    assert end is not None
    files = sorted(path.name for path in folder.rglob("*") if path.is_file())
    return {
        "trials": trials,
        "proofs": {key: proofs.get(key) for key in claimed},
        "left": [one.what for one in end.left],
        "reaches": [one["reaches"] for one in run.results()["results"]["accessibility"]],
        "half_written": [name for name in files if name.endswith((".part", "-journal"))],
        "page": (folder / "report.html").stat().st_size > 10_000,
    }


def forked(work: Callable[[], None]) -> int:
    """Do something in a child; returns its process number."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:
        print(json.dumps({"error": repr(error)}), flush=True)
        os._exit(1)
    os._exit(0)


def go(folder: Path) -> None:
    study.run_study(CONFIG, folder, command="test")


def go_until(folder: Path, step: int) -> None:
    """Run, and die at the n-th time that something reaches the disk."""
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
    page = study.render

    def small(results: Any, out: Path) -> Path:
        """Draw the page of some runs only: it takes longer than the run."""
        if draw[0]:
            return page(results, out)
        out.write_text("x" * 10_001)
        return out

    draw, study.render = [True], small
    rng = random.Random(seed)
    begun = time.monotonic()
    os.waitpid(forked(lambda: go(place / "whole")), 0)
    seconds = time.monotonic() - begun
    print(json.dumps({"moments": "none", **whole(place / "whole")}), flush=True)
    counted = place / "counted"
    steps = 1
    while not (counted / "results.json").exists() or open_run(counted).end() is None:
        steps += 40  # how many steps there are is found by dying at later and later ones
        os.waitpid(forked(lambda: go_until(counted, steps)), 0)
    for number in range(runs):
        draw[0] = number % 10 == 0
        moments = kill_and_go_on(place / f"run{number}", rng, seconds, steps)
        print(json.dumps({"moments": moments, **whole(place / f"run{number}")}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
