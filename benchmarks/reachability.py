"""Verdicts on the tokens of a model: how many are reachable, how each was proved, and how long it took.

    python -m benchmarks.reachability MODEL [--sample N] [--support space] [--threads 1]

A sample is drawn without replacement and judged against the full head. Prints one JSON line; the seconds of
a full run are those of the sample times V / N (both stages grow with the number of judged tokens).
"""

import argparse
import json
import time

import numpy as np
import torch

from lmreach.experiments.cells.decoder import decoder_of
from lmreach.experiments.reach.reachability import judge_of, reachability, region_of
from lmreach.models.load import load
from lmreach.runs.cells.parts import judged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--support", choices=["space", "ellipsoid"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="stages and times on the way")
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    model = load(words.model)
    decoder = decoder_of(model)
    tokens = None
    if words.sample:
        tokens = np.random.default_rng(words.seed).choice(decoder.ids, words.sample, replace=False)
    begun = time.monotonic()
    stages: dict[str, float] = {}

    def progress(stage: str, done: int, total: int) -> None:
        stages[stage] = round(time.monotonic() - begun, 1)
        if words.verbose:
            print(stage, done, total, stages[stage], flush=True)

    region = region_of(decoder, words.support)
    found = reachability(decoder, region, judge=judge_of(model), tokens=tokens, on_progress=progress)
    record = judged(found, {}).model_dump(mode="json")
    certificates = record.pop("certificates")
    record["certificate_bounds"] = [one["bound"] for one in certificates.values()][:20]
    for verdict in ("tie_only", "unreachable", "undetermined"):
        record[verdict] = record[verdict][:40]
    share = {n: found.share_removed(n, verdicts=("unreachable", "tie-only")) for n in (1, 16, 128, 1024)}
    print(
        json.dumps(
            {
                **record,
                "share_of_sequences_removed": share,
                "ended_at_s": stages,
                "threads": words.threads,
                "torch": torch.__version__,
                "expected_full_run_s": round(found.seconds * decoder.vocab / len(found.ids)),
            }
        )
    )


if __name__ == "__main__":
    main()
