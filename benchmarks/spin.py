"""Seconds of a step under ways for idle OpenMP threads to wait: on free cores, and beside busy loops.

``python -m benchmarks.spin builtin:verse --busy 0 4``. The settings are read as torch is loaded, so each is
timed in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

WAITS: dict[str, dict[str, str]] = {
    "as OpenMP has it": {},
    "GOMP_SPINCOUNT=0": {"GOMP_SPINCOUNT": "0"},
    "GOMP_SPINCOUNT=3000": {"GOMP_SPINCOUNT": "3000"},
    "OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
}
# Plain torch is timed: lmreach sets a count of its own where none is set.
CHILD = """
import os, sys, time, statistics, json
wait = {k: os.environ.pop(k) for k in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY") if k in os.environ}
import lmreach
os.environ.pop("GOMP_SPINCOUNT", None)
os.environ.update(wait)
import torch
model = lmreach.load(sys.argv[1])
told = {}
for threads in (1, 2):
    torch.set_num_threads(threads)
    vectors = torch.randn(8, 40, model.facts.width, generator=torch.Generator().manual_seed(0))
    times = []
    for _ in range(8):
        leaf, begun = vectors.clone().requires_grad_(True), time.perf_counter()
        loss = torch.logsumexp(model.head_logits(model.hidden(leaf)), dim=-1).sum()
        torch.autograd.grad(loss, leaf)
        times.append(time.perf_counter() - begun)
    told[threads] = statistics.median(times[2:])
print(json.dumps(told))
"""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep cores busy with loops of Python."""
    own = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for one in own:
            one.kill()
            one.wait()


def step_seconds(model: str, wait: dict[str, str]) -> dict[str, float]:
    """Return threads -> median seconds of a step, forth and back, of 8 rows by 40 positions."""
    free = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, model],
        env={**free, **wait},
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def main() -> None:
    """Print a table in milliseconds of wall time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 4], help="numbers of busy loops beside it")
    asked = parser.parse_args()
    for loops in asked.busy:
        for name, wait in WAITS.items():
            with busy(loops):
                told = step_seconds(asked.model, wait)
            load = " ".join(f"{one:.1f}" for one in os.getloadavg()[:1])
            times = ", ".join(f"{threads}: {1000 * s:.0f} ms" for threads, s in told.items())
            print(f"{loops} loops, load {load}, {name}: threads {times}", flush=True)


if __name__ == "__main__":
    main()
