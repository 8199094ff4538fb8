"""How small cells of tokens are, what that does to the limit, and how long the answer takes.

    python -m benchmarks.rare_cells MODEL --tokens 64

Draws tokens uniformly, by their frequency in a text and by their frequency in text the model samples, and
prints one JSON line per token, then the mean log shares, the refined limits (paper's ball, float16), the
predicted ratio of slopes, and what a plain sample that drops unhit cells would say.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from lmreach.experiments.cells.decoder import decoder_of
from lmreach.experiments.cells.rare import gaussian_scores, plain_hits, rare_cells
from lmreach.experiments.targets.draw import draw
from lmreach.maths.precision import unit_roundoff
from lmreach.maths.supports import Ball
from lmreach.models.load import load
from lmreach.stats.refined import cell_limit, draw_unigram, hit_cells, mean_log_share, slope_ratio


def say(**fields) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=64, help="tokens drawn uniformly")
    parser.add_argument("--text-tokens", type=int, help="tokens drawn from either text (as many; 0: none)")
    parser.add_argument("--text", type=Path, default=Path(__file__).parents[1] / "README.md")
    parser.add_argument("--plain", type=int, default=50_000, help="draws of the plain sample")
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    model = load(words.model)
    more = words.tokens if words.text_tokens is None else words.text_tokens
    begun = time.monotonic()
    decoder = decoder_of(model)
    rng = np.random.default_rng(words.seed)
    drawn = {"uniform": draw_unigram(decoder.ids, decoder.ids, words.tokens, rng=rng)}
    if more:
        texts = {
            "text": model.encode(words.text.read_text(encoding="utf-8")),
            "self": draw(model, "self", 16, 64, seed=words.seed).ids,
        }
        drawn |= {name: draw_unigram(ids, decoder.ids, more, rng=rng) for name, ids in texts.items()}
    scores = gaussian_scores(decoder)
    cells = rare_cells(scores, np.concatenate(list(drawn.values())), rng=rng)
    for token in cells.tokens:
        say(
            text=model.text([token.id]),
            words=token.share.words(),
            **asdict(token.share),
            id=token.id,
            seconds=token.seconds,
        )
    shares = cells.by_id()
    means = {name: mean_log_share(ids, shares, name=name) for name, ids in drawn.items()}
    packing = Ball(decoder.width, 1.0).log_packing(unit_roundoff("float16"))
    for mean in means.values():
        say(mean=asdict(mean), limit=asdict(cell_limit(packing, mean)))
    for name in set(means) - {"uniform"}:
        say(ratio=asdict(slope_ratio(means[name], means["uniform"])))
    hits = hit_cells(plain_hits(scores, words.plain, rng=rng))
    say(dropped=asdict(hits), bias_nats=hits.bias(means["uniform"]))
    uniform = set(drawn["uniform"].tolist())
    say(
        model=model.facts.name,
        measure=cells.measure,
        seconds=round(time.monotonic() - begun, 1),
        seconds_uniform=round(sum(one.seconds for one in cells.tokens if one.id in uniform), 1),
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()
