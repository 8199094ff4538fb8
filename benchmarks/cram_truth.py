"""What share of the sequences that are reachable does the optimiser find? Tiny models, every prompt listed.

    python benchmarks/cram_truth.py
    python benchmarks/cram_truth.py --models tiny:gpt2,width=8,vocab=8,layers=2 --m 1 2 --strings 100

On a grid of d m bits all prompts are decoded (a census), so it is known which sequences of each length some
prompt emits. A sample of them is then asked of `cram` on the very grid. A miss is the optimiser's: the
sequence has a prompt. Prints one JSON line a model, m and length.
"""

import argparse
import json
import math

import numpy as np
import torch

from lmreach.config import OptimiserConfig
from lmreach.experiments.census.decode import decode_block
from lmreach.experiments.census.grid import Grid as Prompts
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.stats.survival import clopper_pearson

_MODELS = (
    "tiny:gpt2,width=8,vocab=8,layers=1",
    "tiny:gpt2,width=8,vocab=8,layers=2",
    "tiny:llama,width=8,vocab=8,layers=1",
    "tiny:llama,width=8,vocab=8,layers=2",
    "tiny:mamba,width=8,vocab=8,layers=1",
    "tiny:gpt2,width=8,vocab=8,layers=1,train=200",
)
_BLOCK = 4096
_SEED = 0


def every_output(model: LoadedModel, held: Grid, m: int, n: int) -> np.ndarray:
    """Return what every prompt of the grid emits, shape (prompts, n)."""
    assert held.run_scale is not None
    values = held.levels.values * held.run_scale
    prompts = Prompts(values, held.width, m)
    blocks = [
        decode_block(model, torch.from_numpy(prompts.block(start, _BLOCK)), n).ids
        for start in range(0, prompts.prompts, _BLOCK)
    ]
    return np.concatenate(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(_MODELS))
    parser.add_argument("--m", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--within", default="sign")
    parser.add_argument("--strings", type=int, default=50, help="sequences asked for, of each length")
    parser.add_argument("--max-steps", type=int, default=OptimiserConfig().max_steps)
    parser.add_argument("--flips", type=int, default=OptimiserConfig().flips)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--start-scale", type=float, default=1.0)
    words = parser.parse_args()
    for spec in words.models:
        model = load(spec)
        for m in words.m:
            config = OptimiserConfig(
                within=words.within,
                start_scale=words.start_scale,
                max_steps=words.max_steps,
                patience=words.max_steps,
                flips=words.flips,
                restarts=words.restarts,
            )
            held = held_to(config, model)
            assert isinstance(held, Grid)
            limit = m * held.log_count / math.log(model.facts.rows)
            outputs = every_output(model, held, m, math.ceil(limit))
            rng = np.random.default_rng(_SEED)
            for n in range(1, outputs.shape[1] + 1):
                reachable, ways = np.unique(outputs[:, :n], axis=0, return_counts=True)
                some = rng.choice(len(reachable), size=min(words.strings, len(reachable)), replace=False)
                results = cram(
                    model,
                    reachable[some],
                    m,
                    config,
                    generators=[np.random.default_rng([_SEED, n, i]) for i in range(len(some))],
                    batch_size=len(some),
                )
                found = sum(result.reach == n for result in results)
                low, high = (
                    float(end[0])
                    for end in clopper_pearson(np.array([float(found)]), np.array([float(len(some))]), 0.95)
                )
                line = {
                    "model": model.facts.name,
                    "within": words.within,
                    "m": m,
                    "bits": round(m * held.bits),
                    "n": n,
                    "limit": round(limit, 2),
                    "reachable": len(reachable),
                    "of": model.facts.rows**n,
                    "share_reachable": len(reachable) / model.facts.rows**n,
                    "median_prompts_each": float(np.median(ways)),
                    "restarts": words.restarts,
                    "asked": len(some),
                    "found": found,
                    "share_found": [round(found / len(some), 3), round(low, 3), round(high, 3)],
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
