"""Does the frontier protocol under-reach? Its reaches against `fixed` runs at lengths around its n50.

    python -m benchmarks.frontier_against_fixed MODEL --m 1 --targets random --strings 64 --max-steps 300

Frontier gives one reach per string. Fixed optimises the same strings, from the same starts, at single
lengths and either emits all n tokens or fails; both step on the copy and from the length that a run would
choose. Both solve a share of strings at each length; a frontier
that under-reached would solve fewer. Prints one JSON line per length and a summary.
"""

import argparse
import json
import time

import numpy as np
import torch

from lmreach.config import CramPlan
from lmreach.engine.keys import key_seed
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.results import Interval
from lmreach.runs.study.search import prepare
from lmreach.stats.accessibility import half_length
from lmreach.stats.survival import clopper_pearson


def timed(model, search, ids, m, config):
    """Return reaches, steps and processor seconds; starts depend on the string only."""
    begun = time.process_time()
    found = cram(
        model,
        ids,
        m,
        config,
        generators=[key_seed(f"{i:032x}", 0) for i in range(len(ids))],
        batch_size=len(ids),
        search=search,
    )
    return (
        np.array([one.reach for one in found]),
        sum(one.steps for one in found),
        time.process_time() - begun,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--m", type=int, default=1)
    parser.add_argument("--targets", default="random")
    parser.add_argument("--strings", type=int, default=16)
    parser.add_argument("--max-steps", type=int, default=300)
    parser.add_argument("--start-scale", type=float, help="default: found by the probe")
    parser.add_argument("--lengths", type=float, nargs="+", default=[0.75, 1.0, 1.25], help="in units of n50")
    words = parser.parse_args()
    model = load(words.model)
    limit = 64 * words.m
    ids = draw(model, words.targets, words.strings, limit, seed=0).ids
    asked = CramPlan(max_steps=words.max_steps, start_scale=words.start_scale)
    search = prepare(model, asked, m=words.m)
    frontier = search.optimiser
    reach, steps, seconds = timed(model, search.model, ids, words.m, frontier)
    n50 = half_length(reach, reach >= limit, limit=limit)
    head = {
        "model": model.facts.name,
        "m": words.m,
        "targets": words.targets,
        "strings": words.strings,
        "max_steps": words.max_steps,
        "start_scale": frontier.start_scale,
        "steps_in": search.record and search.record.dtype,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    print(
        json.dumps(
            {
                **head,
                "protocol": "frontier",
                "n50": Interval.from_object(n50).model_dump(),
                "steps": steps,
                "processor_seconds": round(seconds, 1),
            }
        )
    )
    at = n50.value or 1.0
    for n in sorted({max(1, round(at * factor)) for factor in words.lengths}):
        fixed = frontier.model_copy(update={"protocol": "fixed", "patience": words.max_steps})
        found, steps, seconds = timed(model, search.model, ids[:, :n], words.m, fixed)
        solved = int((found >= n).sum())
        low, high = clopper_pearson(np.array([solved]), np.array([words.strings]), 0.95)
        print(
            json.dumps(
                {
                    "protocol": "fixed",
                    "n": n,
                    "solved": solved,
                    "share_95": [round(float(low[0]), 3), round(float(high[0]), 3)],
                    "solved_by_frontier": int((reach >= n).sum()),
                    "steps": steps,
                    "processor_seconds": round(seconds, 1),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
