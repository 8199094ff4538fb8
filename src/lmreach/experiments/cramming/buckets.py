"""Which rows of a step share a pass: rows of similar length do, so that little of a pass is padding."""

import numpy as np
from jaxtyping import Int

# A pass costs about as much as this many positions beside its own (SmolLM2-135M, one thread: 20 in float32,
# 45 in bfloat16, where products are quicker and the rest is not).
OVERHEAD = 40
# Positions in one pass. On a CPU larger ones run no faster, and activations are what memory goes to; a GPU is
# filled by larger ones only.
MOST = {"cpu": 512, "cuda": 16384}


def buckets(
    lengths: Int[np.ndarray, " rows"], *, most: int, overhead: int = OVERHEAD
) -> list[Int[np.ndarray, " some"]]:
    """Divide rows into passes, each padded to its longest row, at the least total cost.

    Parameters
    ----------
    lengths
        Positions of each row; all at least 1.
    most
        Positions that a pass may hold, padding included; a single row may hold more.
    overhead
        Cost of a pass beside its positions.

    Returns
    -------
    list of arrays
        Places of the rows of each pass, longest rows first; every place once.

    Notes
    -----
    With rows in order of length a best division is one into runs, so it is found exactly, in rows^2 steps.
    """
    order = np.argsort(-lengths, kind="stable")
    ranked = lengths[order]
    cheapest = [0.0]
    starts: list[int] = []
    for end in range(1, len(order) + 1):
        costs = [
            (cheapest[start] + overhead + int(ranked[start]) * (end - start), start)
            for start in range(end)
            if end - start == 1 or int(ranked[start]) * (end - start) <= most
        ]
        cost, start = min(costs)
        cheapest.append(cost)
        starts.append(start)
    found, end = [], len(order)
    while end:
        found.append(order[starts[end - 1] : end])
        end = starts[end - 1]
    return found[::-1]
