"""What n50 costs: the published protocol, one string at a time, against ours, on the same strings.

    python benchmarks/cram_cost.py MODEL --m 1 --strings 20 --baseline-strings 5

The published protocol asks for success at one length after the other (here 10, 20, ... as its grid does below
a hundred, until no string succeeds), 20 strings from scratch at each. `--baseline-strings` of them are run
at each length and the seconds are scaled to 20, which the output says. Its n counts the given first token.
Ours is one frontier run per string, what `lmreach cram` does first (choosing copy and start) included. Prints
one JSON line per part. Where whole baseline runs take hours, `--baseline-lengths 10 --baseline-batch 5`
counts the steps of several strings in one batch, which changes none of them, and multiplies by the seconds of
single steps, timed apart; the output says so.
"""

import argparse
import dataclasses
import json
import time
from itertools import pairwise

import numpy as np
import torch

from lmreach.config import CramPlan
from lmreach.engine.keys import key_seed
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.published import PublishedSettings, cram_published
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.results import Interval
from lmreach.runs.study.search import prepare
from lmreach.stats.accessibility import half_length

PUBLISHED_STRINGS = 20


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
        total += spent * PUBLISHED_STRINGS / strings
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
    return {"grid": rows, "processor_seconds_for_20": round(total, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--m", type=int, default=1)
    parser.add_argument("--strings", type=int, default=20)
    parser.add_argument("--max-steps", type=int, default=CramPlan().max_steps)
    parser.add_argument("--baseline-strings", type=int, default=20)
    parser.add_argument("--baseline-steps", type=int, default=3000)
    parser.add_argument("--baseline-batch", type=int, default=1)
    parser.add_argument("--baseline-lengths", type=int, nargs="*")
    words = parser.parse_args()
    model = load(words.model)
    ids = draw(model, "random", words.strings, 64 * words.m, seed=0).ids
    begun, processor = time.monotonic(), time.process_time()
    search = prepare(model, CramPlan(max_steps=words.max_steps), m=words.m)
    found = cram(
        model,
        ids,
        words.m,
        search.optimiser,
        generators=starts(words.strings),
        batch_size=words.strings,
        search=search.model,
    )
    ours, spent = time.monotonic() - begun, time.process_time() - processor
    reach = np.array([one.reach for one in found])
    n50 = half_length(reach, reach >= ids.shape[1], limit=ids.shape[1])
    head = {
        "model": model.facts.name,
        "m": words.m,
        "strings": words.strings,
        "max_steps": words.max_steps,
        "search": search.record,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    part = {
        "ours": Interval.from_object(n50).model_dump(),
        "seconds": round(ours, 1),
        "processor_seconds": round(spent, 1),
    }
    print(json.dumps({**head, **part}), flush=True)
    base = published(model, words.m, words, PublishedSettings(max_steps=words.baseline_steps))
    print(json.dumps({**base, "ratio": round(base["processor_seconds_for_20"] / spent, 1)}))


if __name__ == "__main__":
    main()
