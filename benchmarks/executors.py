"""What handing rounds out costs per trial, and what two processes gain over one.

    OMP_NUM_THREADS=1 python -m benchmarks.executors [--ray] [--model builtin:verse] [--strings 64 320]

Every number is a difference between two runs of different length, so that loading, starting and reporting
cancel. The overhead is what a whole run takes beyond the same rounds in a plain loop that keeps nothing: of
this process alone in processor seconds too, which others on the machine change little.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lmreach.config import CramPlan, ExecutorConfig, StudyConfig
from lmreach.engine.clock import Clock
from lmreach.engine.keys import cram_key, occurrences
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.round import Crammer, Round
from lmreach.runs.study.run import run_study
from lmreach.runs.study.search import prepare
from lmreach.runs.study.strings import Strings

ROUND = 32


def plan(model: str, strings: int, steps: int) -> StudyConfig:
    return StudyConfig(
        model=model,
        m=(1,),
        targets=("random",),
        budget_s=None,
        relative_width=None,
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(strings=strings, max_steps=steps, n_max=4, search_dtype="float32", start_scale=1.0),
    )


def bare(model: LoadedModel, config: StudyConfig, now: Callable[[], float] = time.perf_counter) -> float:
    """Run all rounds in a loop that writes nothing; returns the seconds."""
    drawn = Strings(model, config, lambda _: None).ids("random", 4, config.cram.strings)
    crammer = Crammer(model, prepare(model, config.cram, m=1), 0.0, Clock(None))
    counts = occurrences(drawn)
    begun = now()
    for first in range(0, len(drawn), ROUND):
        own = drawn[first : first + ROUND]
        keys = [
            cram_key(
                fingerprint=model.facts.fingerprint,
                dtype=model.facts.dtype,
                m=1,
                target=row,
                config=config.cram,
                occurrence=counts[first + place],
            )
            for place, row in enumerate(own)
        ]
        chunk = Chunk(Condition("random", 1), first, first + len(own))
        crammer(Round(chunk, config.cram, own, keys, keys), lambda _: None, lambda: False)
    return now() - begun


def whole(config: StudyConfig, on: ExecutorConfig, now: Callable[[], float] = time.perf_counter) -> float:
    """Run the same as a run; returns the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        begun = now()
        run_study(config, Path(folder) / "run", executor=on)
        return now() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="builtin:verse")
    parser.add_argument("--strings", type=int, nargs=2, default=(64, 320))
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--long-steps", type=int, default=60, help="of the comparison of one process and two")
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--two", action="store_true", help="also compare two processes with one")
    asked = parser.parse_args()
    few, many = asked.strings
    model = load(asked.model)
    found: dict[str, object] = {"load": os.getloadavg()[0], "model": asked.model, "strings": [few, many]}
    configs = [plan(asked.model, count, asked.steps) for count in (few, many)]
    bare(model, configs[0])  # the first passes pay for what later ones reuse
    cpu = time.process_time
    looped = bare(model, configs[1], cpu) - bare(model, configs[0], cpu)
    used = whole(configs[1], ExecutorConfig(), cpu) - whole(configs[0], ExecutorConfig(), cpu)
    found["processor_ms_a_trial_in_a_loop"] = round(1000 * looped / (many - few), 3)
    found["processor_ms_overhead_local"] = round(1000 * (used - looped) / (many - few), 3)
    print(json.dumps(found), flush=True)
    loop = bare(model, configs[1]) - bare(model, configs[0])
    found["ms_a_trial_in_a_loop"] = round(1000 * loop / (many - few), 3)
    executors = {"local": ExecutorConfig(), "processes": ExecutorConfig(executor="processes", workers=1)}
    if asked.ray:
        executors["ray"] = ExecutorConfig(executor="ray", workers=1)
    for name, on in executors.items():
        took = whole(configs[1], on) - whole(configs[0], on)
        found[f"ms_overhead_{name}"] = round(1000 * (took - loop) / (many - few), 3)
        print(json.dumps(found), flush=True)
    if asked.two:
        seconds = {}
        for workers in (1, 2):
            on = ExecutorConfig(executor="processes", workers=workers)
            runs = [whole(plan(asked.model, count, asked.long_steps), on) for count in (few, many)]
            seconds[workers] = runs[1] - runs[0]
        found["two_processes_over_one"] = round(seconds[1] / seconds[2], 3)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
