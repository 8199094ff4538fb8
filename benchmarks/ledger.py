"""What a ledger of many trials costs: writing, its size, status, going on, and the page.

    python -m benchmarks.ledger [--trials 1000000] [--written 500] [--out DIR] [--page]

Most rows are put in at once; ``--written`` of them are written as a run writes them, one by one and synced,
into the empty ledger and into the full one.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.keys import RECORD_VERSION, cram_key, occurrences
from lmreach.engine.run import RunKind, begin
from lmreach.engine.store import LEDGER, Store
from lmreach.models.fingerprint import settings_of
from lmreach.models.load import load
from lmreach.results.records import Trial
from lmreach.runs.study.run import run_study
from lmreach.runs.study.strings import Strings

M = (1, 2, 4, 8)


def row(index: int, ids: list[int], rng: np.random.Generator) -> Trial:
    reach = int(rng.integers(1, len(ids)))
    return Trial(
        index=index,
        reach=reach,
        limit=len(ids),
        outcome="spent",
        proposed=reach,
        smallest_gap=0.123456789,
        steps=300,
        max_steps=300,
        growing=False,
        growth=((3, 1), (40, reach)),
        seconds=1.234,
        ids=ids,
        text="a few words of text",
        emitted="a few words",
        ce_without_bits=10.5 * reach,
        ce_with_bits=0.1 * reach,
        tokens_gained=reach,
    )


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--written", type=int, default=500)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--page", action="store_true", help="also go on with the run, and draw its page")
    asked = parser.parse_args()
    folder = (asked.out or Path(tempfile.mkdtemp())) / "run"
    each = asked.trials // len(M)
    cram = CramPlan(strings=each, n_max=16, search_dtype="float32", start_scale=1.0)
    config = StudyConfig(
        model="builtin:random",
        m=M,
        targets=("random",),
        budget_s=None,
        relative_width=None,
        support_positions=0,
        decoder_cells=False,
        cram=cram,
    )
    found: dict[str, object] = {"trials": asked.trials, "load": round(os.getloadavg()[0], 1)}

    def note(name: str, value: float) -> None:
        found[name] = round(value, 3)
        print(json.dumps(found), flush=True)

    model = load("builtin:random")
    facts, rng = model.facts, np.random.default_rng(0)
    with begin(RunKind.STUDY, config, folder, name="random") as writing:
        store = writing.bind(facts.name, facts.fingerprint, settings_of(model.model))
        store.put_meta("record_version", RECORD_VERSION)
        drawn = Strings(model, config, lambda _: None).ids("random", 16, each)
        note("ms_a_row_into_an_empty_ledger", written(store, "a", asked.written, drawn, rng))
        db = sqlite3.connect(folder / LEDGER)
        db.execute("DELETE FROM trials")
        counts = occurrences(drawn)
        for m in M:
            db.executemany(
                "INSERT INTO trials VALUES (?, ?, ?, NULL)",
                (
                    (
                        cram_key(
                            fingerprint=facts.fingerprint,
                            dtype=facts.dtype,
                            m=m,
                            target=ids,
                            config=cram,
                            occurrence=counts[index],
                        ),
                        f"random m={m}",
                        json.dumps(row(index, ids.tolist(), rng).written(), sort_keys=True),
                    )
                    for index, ids in enumerate(drawn)
                ),
            )
        db.commit()
        db.close()
        note("ms_a_row_into_a_full_ledger", written(store, "b", asked.written, drawn, rng))
    with sqlite3.connect(folder / LEDGER) as db:
        db.execute("DELETE FROM trials WHERE cell = 'extra'")
    note("MB", (folder / LEDGER).stat().st_size / 1e6)
    note("s_status", min(seconds([sys.executable, "-m", "lmreach", "status", str(folder)]) for _ in range(3)))
    if asked.page:
        begun = time.perf_counter()
        run_study(config, folder)
        note("s_resume_and_page", time.perf_counter() - begun)
        note("MB_page", (folder / "report.html").stat().st_size / 1e6)


def written(store: Store, mark: str, count: int, drawn: np.ndarray, rng: np.random.Generator) -> float:
    """Return the milliseconds of a row that is written as a run writes it, without a certificate."""
    rows = [row(index, drawn[index % len(drawn)].tolist(), rng) for index in range(count)]
    begun = time.perf_counter()
    for index, one in enumerate(rows):
        store.add(f"{mark}{index:031x}", "extra", one)
    return 1000 * (time.perf_counter() - begun) / count


if __name__ == "__main__":
    main()
