"""How fast are cell shares counted, beside the matrix products this machine can do in the same minute?

    python -m benchmarks.cell_shares MODEL --states 8192 --threads 2

One state costs 2 V h operations. The rate of the machine is the best of several float32 products (square, and
states against a chunk of rows), measured before, between and after our own runs; the ratio is ours, drawing
and float64 decisions included, over that. Prints one JSON line.
"""

import argparse
import json
import time

import torch

from lmreach.experiments.cells.decoder import decoder_of
from lmreach.experiments.cells.shares import count_cells
from lmreach.experiments.states.measures import gaussian
from lmreach.models.load import load

SHAPES = ((2048, 2048), (1024, 1024), (1024, 8192), (512, 16384))


def product_rate(width: int, seconds: float) -> float:
    """Return the best rate of a product in GF/s, tried for about so long."""
    best = 0.0
    for states, rows in SHAPES:
        for inner in (width, 2048):
            a, b = torch.randn(states, inner), torch.randn(rows, inner)
            out = torch.empty(states, rows)
            until = time.monotonic() + seconds / len(SHAPES) / 2
            while time.monotonic() < until:
                begun = time.perf_counter()
                torch.mm(a, b.T, out=out)
                best = max(best, 2e-9 * states * rows * inner / (time.perf_counter() - begun))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--states", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--convention", default="argmax")
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    decoder = decoder_of(load(words.model))
    work = 2e-9 * words.states * decoder.vocab * decoder.width
    products, ours, close = [product_rate(decoder.width, 3.0)], [], 0
    for turn in range(words.rounds):
        measure = gaussian(decoder.norm, seed=turn)
        begun = time.perf_counter()
        close = count_cells(decoder, measure, words.states, convention=words.convention).close
        ours.append(work / (time.perf_counter() - begun))
        products.append(product_rate(decoder.width, 3.0))
    print(
        json.dumps(
            {
                "model": decoder.name,
                "vocab": decoder.vocab,
                "width": decoder.width,
                "states": words.states,
                "convention": words.convention,
                "threads": words.threads,
                "torch": torch.__version__,
                "product_gflops": [round(rate, 1) for rate in products],
                "ours_gflops": [round(rate, 1) for rate in ours],
                "ratio_of_best": round(max(ours) / max(products), 3),
                "decided_in_float64": close,
            }
        )
    )


if __name__ == "__main__":
    main()
