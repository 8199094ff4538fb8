"""How far do vectors reach that are held to a set, and by which search? Same strings, same seeds.

    python benchmarks/cram_formats.py builtin:random --m 4 --strings 16 --within sign int2 int4
    python benchmarks/cram_formats.py builtin:verse --start-scale 100 --within sign --methods all
    python benchmarks/cram_formats.py SMOLLM2.gguf --start-scale 10000 --max-steps 500 --within sign

Prints one JSON line a set and method: reaches, n50 with its interval, the limit of the very set, and which
part of the stored bits the reached ids are. Cost is in model positions per string, 3 for a position stepped
forth and back.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from lmreach.config import OptimiserConfig
from lmreach.engine.keys import key_seed
from lmreach.experiments.cramming import cram as engine
from lmreach.experiments.cramming.regions import flips
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.experiments.cramming.rows import Rows
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.stats.accessibility import half_length

_SOFT, _HARD = 0.5, 10.0  # slopes of the annealed staircase, first and last


def soften(held: Grid, free: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Return coordinates on a smooth staircase through the values, and its derivative."""
    assert held.run_scale is not None
    units = free / held.run_scale
    # Values are odd, so that steps are centred at even numbers.
    end = held.levels.largest - 1
    centre = (2 * (units / 2).round()).clamp(-end, end)
    rest = slope * (units - centre)
    stairs = centre + torch.tanh(rest) / torch.tanh(slope)
    return stairs * held.run_scale, slope * (1 - torch.tanh(rest) ** 2) / torch.tanh(slope)


def annealed(run_pass: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """Return a pass that judges rounded vectors but takes the gradient at ever less smoothed ones."""

    def passing(run: engine._Run, rows: Rows, places: Tensor) -> tuple[Tensor, ...]:
        seen = run_pass(run, rows, places)
        held = run._held
        done = (rows.steps[places].float() / run.config.max_steps)[:, None, None]
        soft, slope = soften(held, rows.vectors[places], _SOFT * (_HARD / _SOFT) ** done)
        free = rows.vectors.clone()
        free[places] = soft
        with patch.object(Grid, "settle", lambda _held, given: given):
            *_, grad = run_pass(run, replace(rows, vectors=free), places)
        return *seen[:-1], grad * slope

    return passing


def measure(
    model: LoadedModel, ids: np.ndarray, m: int, config: OptimiserConfig, method: str
) -> tuple[np.ndarray, float]:
    """Return reaches and positions per string."""
    spent: list[int] = []
    looked = flips._pass

    def counted(loaded: LoadedModel, held: Grid, free: Tensor, own: Tensor, frame: object) -> object:
        spent.append(free.shape[0] * (m + len(own)) * (3 if free.requires_grad else 1))
        return looked(loaded, held, free, own, frame)

    with ExitStack() as stack:
        stack.enter_context(patch.object(flips, "_pass", counted))
        twice = 2 if method == "annealed" else 1
        if method == "annealed":
            stack.enter_context(patch.object(engine._Run, "_pass", annealed(engine._Run._pass)))
        found = engine.cram(
            model,
            ids,
            m,
            config,
            generators=[key_seed(f"{i:032x}", 0) for i in range(len(ids))],
            batch_size=len(ids),
            on_step=lambda step: spent.append(3 * twice * step.positions),
        )
    return np.array([one.reach for one in found]), sum(spent) / len(ids)


def methods(steps: int) -> dict[str, dict[str, int]]:
    """Return the settings of each method, of about equal cost: a round of flips costs as much as 6 steps."""
    rounds = 20
    return {
        "straight-through": {"flips": 0, "max_steps": steps + 6 * rounds},
        "straight-through, then flips": {"flips": rounds, "max_steps": steps},
        "annealed": {"flips": 0, "max_steps": (steps + 6 * rounds) // 2},
        "flips alone": {"flips": rounds + steps // 6, "max_steps": 1},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--m", type=int, nargs="+", default=[1])
    parser.add_argument("--targets", default="random")
    parser.add_argument("--strings", type=int, default=16)
    parser.add_argument("--within", nargs="+", required=True)
    parser.add_argument("--start-scale", type=float, default=1.0)
    parser.add_argument("--max-steps", type=int, default=OptimiserConfig().max_steps)
    parser.add_argument("--methods", nargs="+", default=["straight-through, then flips"], help="or all")
    words = parser.parse_args()
    model = load(words.model)
    asked = {name: how for name, how in methods(words.max_steps).items() if {name, "all"} & {*words.methods}}
    for within in words.within:
        for m in words.m:
            base = OptimiserConfig(within=within, start_scale=words.start_scale)
            held = held_to(base, model)
            limit = m * held.log_count / math.log(model.facts.usable)
            n = min(64 * m, math.ceil(limit) + 1)
            ids = draw(model, words.targets, words.strings, n, seed=0).ids
            for name, how in asked.items():
                begun = time.process_time()
                config = base.model_copy(update={**how, "patience": how["max_steps"]})
                reach, cost = measure(model, ids, m, config, name)
                n50 = half_length(reach, reach >= n, limit=n)
                bits = None if n50.value is None else n50.value * math.log2(model.facts.usable)
                line = {
                    "model": model.facts.name,
                    "within": base.within or "none",
                    "m": m,
                    "targets": words.targets,
                    "start_scale": words.start_scale,
                    "method": name,
                    **how,
                    "n50": [n50.value, n50.low, n50.high],
                    "limit": round(limit, 1),
                    "ratio": None if not n50.value else round(limit / n50.value, 2),
                    "bits_stored": m * held.bits,
                    "utilisation": None if bits is None else round(bits / (m * held.bits), 4),
                    "reaches": sorted(reach.tolist()),
                    "mean_reach": round(float(reach.mean()), 2),
                    "standard_error": round(float(reach.std(ddof=1) / len(reach) ** 0.5), 2),
                    "positions_per_string": round(cost),
                    "processor_seconds": round(time.process_time() - begun, 1),
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
