"""What n50 costs: the published protocol, one string at a time, against ours, on the same strings.

    python benchmarks/cram_cost.py MODEL --m 1 --strings 20 --baseline-strings 5

The published protocol asks for success at one length after the other (here 10, 20, ... as its grid does below
a hundred, until no string succeeds), 20 strings from scratch at each. `--baseline-strings` of them are run
at each length and the seconds are scaled to 20, which the output says. Its n counts the given first token.
Ours is one frontier run per string. Prints one JSON line per part.
"""

import argparse
import json
import time

import numpy as np
import torch

from lmreach.config import CramConfig
from lmreach.engine.keys import key_seed
from lmreach.experiments.cram import cram
from lmreach.experiments.published import PublishedSettings, cram_published
from lmreach.experiments.targets import draw
from lmreach.models.load import load
from lmreach.stats.accessibility import half_length

PUBLISHED_STRINGS = 20


def starts(count: int) -> list[np.random.Generator]:
    return [key_seed(f"{i:032x}", 0) for i in range(count)]


def published(model, m: int, strings: int, settings: PublishedSettings) -> dict[str, object]:
    """Run the grid one string at a time; stop at the first length where none succeeds."""
    ids = draw(model, "random", strings, 64 * m, seed=0).ids
    seconds, rows, n = 0.0, [], 10
    while n <= ids.shape[1]:
        begun = time.monotonic()
        done = [
            cram_published(model, ids[i : i + 1, :n], m, settings, generators=starts(strings)[i : i + 1])[0]
            for i in range(strings)
        ]
        spent = time.monotonic() - begun
        seconds += spent
        solved = sum(one.solved for one in done)
        rows.append(
            {
                "n": n,
                "solved": solved,
                "of": strings,
                "steps": sum(one.steps for one in done),
                "s": round(spent, 1),
            }
        )
        print(json.dumps({"published": rows[-1]}), flush=True)
        if solved == 0:
            break
        n += 10
    return {"grid": rows, "seconds": seconds, "seconds_for_20": seconds * PUBLISHED_STRINGS / strings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--m", type=int, default=1)
    parser.add_argument("--strings", type=int, default=20)
    parser.add_argument("--baseline-strings", type=int, default=20)
    parser.add_argument("--baseline-steps", type=int, default=3000)
    words = parser.parse_args()
    model = load(words.model)
    ids = draw(model, "random", words.strings, 64 * words.m, seed=0).ids
    begun = time.monotonic()
    found = cram(
        model, ids, words.m, CramConfig(), generators=starts(words.strings), batch_size=words.strings
    )
    ours = time.monotonic() - begun
    reach = np.array([one.reach for one in found])
    n50 = half_length(reach, reach >= ids.shape[1], limit=ids.shape[1])
    head = {
        "model": model.facts.name,
        "m": words.m,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    print(json.dumps({**head, "ours": n50.as_dict(), "seconds": round(ours, 1)}), flush=True)
    settings = PublishedSettings(max_steps=words.baseline_steps)
    base = published(model, words.m, words.baseline_strings, settings)
    print(json.dumps({**base, "ratio": base["seconds_for_20"] / ours}))


if __name__ == "__main__":
    main()
