"""What n50 costs: the published protocol, string by string, against the whole command on the same strings.

    python -m benchmarks.cram_cost builtin:verse --m 4 --strings 10 --max-steps 100

The published protocol asks for success at one length after the other (10, 20, ... as its grid does below a
hundred, until no string succeeds), each string from scratch. `--baseline-strings` of them are run at each
length and the seconds are scaled to `--strings`, which the output says. Its n counts the given first token,
and its seconds are those of its loop alone. Ours are the processor seconds of `lmreach cram`, the whole
command: importing, loading, the probe of the start, steps, decoding, certificates and page; the first with
nothing cached. Prints one JSON line per part. Where whole baseline runs take hours, `--baseline-batch 5`
counts the steps of several strings in one batch, which changes none of them, and multiplies by the seconds
of single steps, timed apart; the output says so.
"""

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from lmreach.config import CramPlan
from lmreach.engine.keys import key_seed
from lmreach.experiments.cramming.published import PublishedSettings, cram_published
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.results import open_results


def starts(count: int) -> list[np.random.Generator]:
    return [key_seed(f"{i:032x}", 0) for i in range(count)]


def seconds_per_step(model, ids, m: int, settings: PublishedSettings) -> float:
    """Time single steps of one string."""
    few = dataclasses.replace(settings, max_steps=6)
    ticks: list[float] = []

    def tick() -> bool:
        ticks.append(time.process_time())
        return False

    cram_published(model, ids, m, few, generators=starts(1), stop=tick)
    return min(b - a for a, b in pairwise(ticks[1:]))


def published(model, m: int, words: argparse.Namespace, settings: PublishedSettings) -> dict[str, object]:
    """Run the grid; stop at the first length where no string succeeds."""
    strings, rows, total = words.baseline_strings, [], 0.0
    ids = draw(model, "random", strings, 64 * m, seed=0).ids
    for n in words.baseline_lengths or range(10, ids.shape[1] + 1, 10):
        begun = time.process_time()
        done = []
        for first in range(0, strings, words.baseline_batch):
            last = first + words.baseline_batch
            done += cram_published(
                model, ids[first:last, :n], m, settings, generators=starts(strings)[first:last]
            )
        spent = time.process_time() - begun
        steps = sum(one.steps for one in done)
        if words.baseline_batch > 1:
            spent = steps * seconds_per_step(model, ids[:1, :n], m, settings)
        solved = sum(one.solved for one in done)
        total += spent * words.strings / strings
        rows.append(
            {
                "n": n,
                "solved": solved,
                "decoded": sum(one.decoded for one in done),
                "best_of_each": [one.best for one in done],
                "of": strings,
                "steps": steps,
                "processor_s": round(spent, 1),
                "seconds_are": "steps x seconds of a single step" if words.baseline_batch > 1 else "measured",
            }
        )
        print(json.dumps({"published": rows[-1]}), flush=True)
        if solved == 0:
            break
    return {"grid": rows, "processor_seconds": round(total, 1), "for_strings": words.strings}


def command(words: argparse.Namespace, cache: Path, out: Path) -> dict[str, object]:
    """Run the whole command on the same strings; what came of it, and its processor seconds."""
    options = ["-m", words.m, "--targets", "random", "--strings", words.strings, "--seed", 0]
    steps = ["--max-steps", words.max_steps, "--patience", words.max_steps]
    asked = ["cram", words.model, *options, *steps, "--out", out]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "lmreach", *map(str, asked)],
        env=os.environ | {"LMREACH_CACHE": str(cache)},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = open_results(out)
    return {
        "n50": results.n50["random", words.m].model_dump(),
        "seconds": round(time.monotonic() - begun, 1),
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--m", type=int, default=1)
    parser.add_argument("--strings", type=int, default=20)
    parser.add_argument("--max-steps", type=int, nargs="+", default=[CramPlan().max_steps])
    parser.add_argument("--baseline-strings", type=int)
    parser.add_argument("--baseline-steps", type=int, default=3000)
    parser.add_argument("--baseline-batch", type=int, default=1)
    parser.add_argument("--baseline-lengths", type=int, nargs="*")
    parser.add_argument("--baseline-seconds", type=float, help="measured before; none: the baseline is run")
    words = parser.parse_args()
    words.baseline_strings = words.baseline_strings or words.strings
    ours = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        for steps in words.max_steps:
            words_of = argparse.Namespace(**vars(words) | {"max_steps": steps})
            first = not cache.exists()
            part = command(words_of, cache, Path(folder) / f"{len(ours)}")
            ours.append(part["processor_seconds"])
            asked = {"model": words.model, "m": words.m, "strings": words.strings, "max_steps": steps}
            print(json.dumps({**asked, "probe": "made" if first else "cached", **part}), flush=True)
    if (base := words.baseline_seconds) is None:
        model = load(words.model)
        found = published(model, words.m, words, PublishedSettings(max_steps=words.baseline_steps))
        print(json.dumps(found | {"threads": torch.get_num_threads(), "torch": torch.__version__}))
        base = float(found["processor_seconds"])
    print(json.dumps({"ratios": [round(base / each, 1) for each in ours]}))


if __name__ == "__main__":
    main()
