"""Costs of the limits: `bounds` beyond importing torch, arithmetic alone, cap shares, memory of a 7B read.

From the root of a checkout: python -m benchmarks.limits MODEL [MODEL ...]. Times are processor seconds of one
thread, and wall seconds, which other work on the machine stretches; the best of three.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.models.sparse import read_cost, write_llama_7b

from lmreach.maths.bounds import limits
from lmreach.maths.logspace import log_cap_share

# A fresh process, because the first import is part of the cost; torch is not.
_BOUNDS = """
import sys, time, torch
torch.set_num_threads(1)
wall, cpu = time.perf_counter(), time.process_time()
import contextlib, io
from lmreach.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main(["bounds", sys.argv[1]])
    except SystemExit as end:
        assert end.code == 0, end.code
print(time.process_time() - cpu, time.perf_counter() - wall)
"""
_TRIES = 3


def bounds_seconds(model: str) -> tuple[float, float]:
    """Processor and wall seconds of `lmreach bounds MODEL` after torch is imported."""
    runs = []
    for _ in range(_TRIES):
        done = subprocess.run(
            [sys.executable, "-c", _BOUNDS, model], capture_output=True, text=True, check=True
        )
        cpu, wall = map(float, done.stdout.split())
        runs.append((cpu, wall))
    return min(cpu for cpu, _ in runs), min(wall for _, wall in runs)


def best(run: Callable[[], object]) -> float:
    """Smallest wall seconds of three runs."""
    seconds = []
    for _ in range(_TRIES):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def every_limit() -> None:
    """Compute every limit of a 576-wide model from its weights and a measured box."""
    rng = np.random.default_rng(0)
    half = rng.uniform(0.5, 20, 576)
    limits(
        width=576,
        vocab=49152,
        input_box=(-half, half),
        hidden_box=(-half, half),
        hidden_radius=20.0,
        norm_kind="rms",
        norm_gain=rng.lognormal(size=576),
    )


def main(models: list[str]) -> None:
    for model in models:
        cpu, wall = bounds_seconds(model)
        print(f"bounds {Path(model).name}: {cpu:.2f} s processor, {wall:.2f} s wall beyond import torch")
    print(f"every limit of a 576-wide model: {1e3 * best(every_limit):.1f} ms")
    rng = np.random.default_rng(0)
    widths, angles = rng.integers(2, 65537, 100_000), rng.uniform(1e-6, np.pi, 100_000)
    print(f"100,000 cap shares: {best(lambda: log_cap_share(widths, angles)):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        size = write_llama_7b(Path(folder))
        cost = read_cost(Path(folder))
    ratio = cost.grown / cost.needed
    print(
        f"parts of a Llama of {size / 1e9:.1f} GB: peak grows by {cost.grown / 2**20:.0f} MiB,"
        f" {ratio:.2f} times head, table and norm ({cost.needed / 2**20:.0f} MiB)"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
