"""Reach and cost of cramming under different settings, on the same strings and starts.

    python -m benchmarks.cram_settings MODEL --m 1 --targets random --strings 16 '{}' '{"lr": 0.5}'

Every setting is a JSON object of fields of `lmreach.config.CramPlan`; "search_dtype" in it names the format
that steps are taken in. Prints one JSON line per setting.
"""

import argparse
import json
import time

import numpy as np
import torch

from lmreach.config import CramPlan
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.models.search_copy import search_copy
from lmreach.results import Interval
from lmreach.stats.accessibility import half_length


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("settings", nargs="+")
    parser.add_argument("--m", type=int, default=1)
    parser.add_argument("--targets", default="random")
    parser.add_argument("--strings", type=int, default=16)
    words = parser.parse_args()
    model = load(words.model)
    ids = draw(model, words.targets, words.strings, 64 * words.m, seed=0).ids
    for text in words.settings:
        asked = CramPlan(**json.loads(text))
        search = search_copy(model, asked.search_dtype)
        positions: list[int] = []
        begun, processor = time.monotonic(), time.process_time()
        found = cram(
            model,
            ids,
            words.m,
            asked.optimiser(1.0 if asked.start_scale is None else asked.start_scale),
            generators=[np.random.default_rng(i) for i in range(words.strings)],
            batch_size=words.strings,
            search=search.model,
            on_step=lambda step, seen=positions: seen.append(step.positions),
        )
        reach = np.array([one.reach for one in found])
        growth = [float(np.sqrt(np.mean(one.vectors**2))) / model.input_rms for one in found]
        print(
            json.dumps(
                {
                    "model": model.facts.name,
                    "m": words.m,
                    "targets": words.targets,
                    "settings": json.loads(text),
                    "search_dtype": search.dtype,
                    "search_attention": search.attention,
                    "probe_seconds": search.seconds,
                    "n50": Interval.from_object(
                        half_length(reach, reach >= ids.shape[1], limit=ids.shape[1])
                    ).model_dump(),
                    "median_reach": float(np.median(reach)),
                    "mean_reach": round(float(reach.mean()), 2),
                    "reaches": sorted(reach.tolist()),
                    "vector_rms_over_input_rms": round(float(np.median(growth)), 1),
                    "steps": sum(one.steps for one in found),
                    "positions": sum(positions),
                    "seconds": round(time.monotonic() - begun, 1),
                    "processor_seconds": round(time.process_time() - processor, 1),
                    "threads": torch.get_num_threads(),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
