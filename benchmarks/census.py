"""Exact censuses of tiny models: the recorded numbers of docs/census.md.

Run: python -m benchmarks.census docs/results/census/exact.json   (about 3 minutes on one core)
"""

import json
import sys
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lmreach.config import LoadConfig
from lmreach.engine.provenance import provenance
from lmreach.experiments.census.exact import census_grid, input_extent
from lmreach.experiments.census.grid import Grid
from lmreach.experiments.census.reasons import reasons
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.runs.census.records import grid_record, missing_record

# name of the part, models, values per coordinate, numbers of vectors, tokens, order, dtype
PARTS: list[tuple[str, list[str], int, range | list[int], int, str, str]] = [
    (
        "reach",
        [
            "tiny:llama,width=3,vocab=2",
            "tiny:llama,width=3,vocab=2,layers=2",
            "tiny:llama,width=3,vocab=2,positions=0",
            "tiny:llama,width=3,vocab=2,train=300,seed=1",
            "tiny:gpt2,width=3,vocab=2",
            "tiny:gpt2,width=3,vocab=2,positions=0",
            "tiny:mamba,width=3,vocab=2",
        ],
        2,
        range(1, 7),
        16,
        "all",
        "float32",
    ),
    (
        "tail",
        ["tiny:llama,width=3,vocab=2", "tiny:llama,width=3,vocab=2,train=300,seed=1"],
        2,
        range(1, 5),
        60,
        "all",
        "float32",
    ),
    (
        "seeds",
        [f"tiny:llama,width=3,vocab=2,seed={seed}" for seed in range(8)],
        2,
        range(1, 6),
        16,
        "all",
        "float32",
    ),
    (
        "seeds trained",
        [f"tiny:llama,width=3,vocab=2,train=300,seed={seed}" for seed in range(8)],
        2,
        range(1, 6),
        16,
        "all",
        "float32",
    ),
    (
        "words",
        [
            "tiny:llama,width=3,vocab=8",
            "tiny:llama,width=3,vocab=8,train=300",
            "tiny:llama,width=4,vocab=8,layers=2",
        ],
        2,
        range(1, 6),
        12,
        "all",
        "float32",
    ),
    (
        "bits",
        [f"tiny:llama,width=3,vocab=2,bits={bits}" for bits in (2, 3, 4, 6, 8, 12, 16)],
        2,
        range(1, 6),
        16,
        "all",
        "float32",
    ),
    ("order", ["tiny:llama,width=2,vocab=8,positions=0"], 2, range(1, 9), 12, "all", "float32"),
    (
        "saturation",
        ["tiny:llama,width=2,vocab=3,positions=0", "tiny:llama,width=2,vocab=8,positions=0"],
        2,
        [1, 2, 3, 4, 8, 16, 32, 48],
        12,
        "sorted",
        "bfloat16",
    ),
    (
        "saturation",
        ["tiny:llama,width=2,vocab=3,positions=0", "tiny:llama,width=2,vocab=8,positions=0"],
        2,
        [1, 2, 3, 4, 8, 16, 32, 48],
        12,
        "sorted",
        "float32",
    ),
    ("positions", ["tiny:llama,width=2,vocab=8"], 2, range(1, 9), 12, "all", "float32"),
    (
        "saturation mamba",
        ["tiny:mamba,width=2,vocab=8", "tiny:mamba,width=2,vocab=8,seed=1"],
        2,
        range(1, 10),
        12,
        "all",
        "float32",
    ),
]


@cache
def model_of(spec: str, dtype: Any) -> LoadedModel:
    return load(spec, LoadConfig(dtype=dtype))


def one(name: str, spec: str, q: int, m: int, n: int, order: Any, dtype: Any) -> dict[str, Any]:
    model = model_of(spec, dtype)
    grid = Grid.even(q, input_extent(model), model.facts.width, m, order)
    found = census_grid(model, grid, n, missing=0)
    explained = found.missing is not None and found.missing.count and name == "words"
    why = reasons(model, found.missing) if explained and found.missing is not None else None
    missing = None if found.missing is None else missing_record(found.missing, why)
    entry = grid_record(found, missing).model_dump(mode="json")
    lengths = entry.pop("lengths")
    # One list per number keeps the file small; position k belongs to length k + 1.
    entry["entropy_nats"] = [one.entropy_nats for one in found.lengths]
    for column in ("distinct", "seen_once"):
        entry[column] = [one[column] for one in lengths]
    return {
        "part": name,
        "model": model.facts.name,
        "fingerprint": model.facts.fingerprint,
        "dtype": dtype,
        **entry,
    }


def _lines(where: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Write strict JSON with one census per line."""
    body = ",\n".join(json.dumps(row, allow_nan=False) for row in rows)
    return f'{{"provenance": {where.model_dump_json()},\n"censuses": [\n{body}\n]}}\n'


def main(out: Path) -> None:
    torch.set_num_threads(1)
    started, rows = datetime.now(UTC), []
    for name, specs, q, ms, n, order, dtype in PARTS:
        for spec in specs:
            begun, line = time.monotonic(), []
            for m in ms:
                rows.append(one(name, spec, q, m, n, order, dtype))
                got = rows[-1]
                line.append(f"{got['fully_reachable']}/{got['half_reachable']}/{got['distinct'][-1]}")
            print(f"{name:16} {spec} {dtype} {time.monotonic() - begun:.1f} s:", *line, flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    where = provenance(threads=1, device="cpu", started=started)
    out.write_text(_lines(where, rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
