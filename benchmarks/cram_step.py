"""One step of the cramming engine: its share of the machine's product rate, its memory, how its cost grows.

    python -m benchmarks.cram_step rate MODEL --rows 32 64 --n 13
    python -m benchmarks.cram_step memory MODEL --rows 32 --n 64
    python -m benchmarks.cram_step growth MODEL
    python -m benchmarks.cram_step vocabulary

`rate` counts 4 x parameters x positions (2 for the pass forth, 2 for the one back to the vectors; a tied
table once) and compares with plain products of the same shapes in the same run, in both formats. `memory` is
the largest resident size of the process, libraries and weights included. `vocabulary` uses random Llamas that
differ in nothing but V. Prints JSON lines.
"""

import argparse
import json
import resource
import time

import numpy as np
import torch

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.cram import cram
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import search_copy
from lmreach.models.tiny import tiny

_STEPS = 4


def step_seconds(model: LoadedModel, search: LoadedModel, rows: int, n: int, m: int = 1) -> float:
    """Return the fastest of a few steps with every row at its full length."""
    ids = np.random.default_rng(0).choice(model.plain_ids, size=(rows, n))
    ticks: list[float] = []
    cram(
        model,
        ids,
        m,
        OptimiserConfig(protocol="fixed"),
        generators=[np.random.default_rng(i) for i in range(rows)],
        batch_size=rows,
        search=search,
        on_step=lambda _step: ticks.append(time.monotonic()),
        stop=lambda: len(ticks) > _STEPS,
    )
    return float(np.diff(ticks).min())


def product_rate(model: LoadedModel, dtype: torch.dtype, positions: int) -> float:
    """Return 1e9 operations a second of x W^T over all of the model's own matrices, one after the other."""
    weights = [p.detach().to(dtype) for p in model.model.parameters() if p.ndim == 2]
    inputs = {w.shape[1]: torch.randn(positions, w.shape[1]).to(dtype) for w in weights}
    best = float("inf")
    for _ in range(3):
        begun = time.monotonic()
        for weight in weights:
            torch.nn.functional.linear(inputs[weight.shape[1]], weight)
        best = min(best, time.monotonic() - begun)
    return 2 * positions * sum(w.numel() for w in weights) / best / 1e9


def rate(model: LoadedModel, rows: list[int], n: int) -> None:
    parameters = sum(p.numel() for p in model.model.parameters() if p.ndim == 2)
    for dtype in ("float32", "bfloat16"):
        search = search_copy(model, dtype)
        for count in rows:
            positions = count * n
            seconds = step_seconds(model, search.model, count, n)
            reached = 4 * parameters * positions / seconds / 1e9
            possible = product_rate(model, getattr(torch, dtype), positions)
            say(
                model,
                part="rate",
                dtype=dtype,
                attention=search.attention,
                rows=count,
                n=n,
                seconds=seconds,
                step_gflops=reached,
                product_gflops=possible,
                share=reached / possible,
            )


def memory(model: LoadedModel, rows: int, n: int) -> None:
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    search = search_copy(model)
    step_seconds(model, search.model, rows, n)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    say(
        model,
        part="memory",
        dtype=search.dtype,
        rows=rows,
        n=n,
        peak_gib_after_loading=loaded,
        peak_gib=peak,
    )


def growth(model: LoadedModel) -> None:
    search = search_copy(model).model
    for rows, n, m in ((4, 16, 1), (8, 16, 1), (16, 16, 1), (32, 16, 1), (64, 16, 1)):
        say(model, part="rows", rows=rows, n=n, m=m, seconds=step_seconds(model, search, rows, n, m))
    for rows, n, m in ((16, 8, 1), (16, 32, 1), (16, 64, 1), (16, 16, 4), (16, 16, 16), (16, 16, 64)):
        say(model, part="lengths", rows=rows, n=n, m=m, seconds=step_seconds(model, search, rows, n, m))


def vocabulary() -> None:
    for rows in (1024, 4096, 16384, 65536, 262144):
        model = load(tiny("llama", vocab_size=rows, hidden_size=256, intermediate_size=1024))
        seconds = step_seconds(model, model, 16, 16)
        say(model, part="vocabulary", vocabulary=rows, width=256, rows=16, n=16, seconds=seconds)


def say(model: LoadedModel, **numbers: object) -> None:
    kept = {k: round(v, 4) if isinstance(v, float) else v for k, v in numbers.items()}
    print(
        json.dumps({"model": model.facts.name, **kept, "threads": torch.get_num_threads()}),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["rate", "memory", "growth", "vocabulary"])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--rows", type=int, nargs="+", default=[32])
    parser.add_argument("--n", type=int, default=13)
    words = parser.parse_args()
    if words.part == "vocabulary":
        vocabulary()
        return
    model = load(words.model)
    if words.part == "rate":
        rate(model, words.rows, words.n)
    elif words.part == "memory":
        memory(model, words.rows[0], words.n)
    else:
        growth(model)


if __name__ == "__main__":
    main()
