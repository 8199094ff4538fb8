"""What share of the sequences that are reachable does the optimiser find? Tiny models, every prompt listed.

    python -m benchmarks.cram_truth
    python -m benchmarks.cram_truth --models tiny:gpt2,width=8,vocab=8,layers=2 --m 1 2 --strings 100
    python -m benchmarks.cram_truth --strings 0

On a grid of d m bits all prompts are decoded (a census), so it is known which sequences of each length some
prompt emits. A sample of them is then asked of `cram` on the very grid. A miss is the optimiser's: the
sequence has a prompt. Beside the true share of reachable sequences stands what counting allows, and what
the shares of the decoder's cells foresee. With ``--strings 0`` nothing is searched. Prints one line a model,
m and length, and with ``--out`` appends the records (`benchmarks.truth_record`) to a file.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.truth_record import Truth, chance_of_any
from lmreach.config import OptimiserConfig
from lmreach.experiments.cells.decoder import decoder_of
from lmreach.experiments.cells.shares import count_cells
from lmreach.experiments.census.decode import decode_block
from lmreach.experiments.census.grid import Grid as Prompts
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.experiments.states.measures import gaussian
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.results.base import Share
from lmreach.stats.survival import clopper_pearson

_MODELS = (
    "tiny:gpt2,width=8,vocab=8,layers=1",
    "tiny:gpt2,width=8,vocab=8,layers=2",
    "tiny:llama,width=8,vocab=8,layers=1",
    "tiny:llama,width=8,vocab=8,layers=2",
    "tiny:mamba,width=8,vocab=8,layers=1",
    "tiny:gpt2,width=8,vocab=8,layers=2,train=200",
)
_BLOCK = 4096
_STATES = 100_000
_SEED = 0


@dataclass(frozen=True, eq=False)
class Listed:
    """A model with all its prompts.

    Attributes
    ----------
    outputs
        What every prompt emits, shape (prompts, n).
    cells
        Share of each cell of the decoder under the norm's Gaussian states.
    """

    model: LoadedModel
    held: Grid
    m: int
    outputs: np.ndarray
    cells: np.ndarray

    @property
    def limit(self) -> float:
        """Tokens that the prompts can tell apart at most."""
        return self.m * self.held.log_count / math.log(self.model.facts.rows)

    @property
    def first_tokens(self) -> np.ndarray:
        """Share of the prompts that begin with each token."""
        counts = np.bincount(self.outputs[:, 0], minlength=self.model.facts.rows)
        return np.asarray(counts / len(self.outputs))


def listed(model: LoadedModel, config: OptimiserConfig, m: int) -> Listed:
    """Decode all prompts, to the length at which the limit stands."""
    held = held_to(config, model)
    assert isinstance(held, Grid), "only formats are listed"
    assert held.run_scale is not None, "with one scale for the run"
    prompts = Prompts(held.levels.values * held.run_scale, held.width, m)
    n = math.ceil(m * held.log_count / math.log(model.facts.rows))
    blocks = [
        decode_block(model, torch.from_numpy(prompts.block(start, _BLOCK)), n).ids
        for start in range(0, prompts.prompts, _BLOCK)
    ]
    decoder = decoder_of(model)
    counted = count_cells(decoder, gaussian(decoder.norm, seed=_SEED), _STATES)
    cells = np.zeros(model.facts.rows)
    cells[counted.ids] = counted.counts / counted.samples
    return Listed(model, held, m, np.concatenate(blocks), cells)


def truths(known: Listed, config: OptimiserConfig, strings: int) -> Iterator[Truth]:
    """Give what is true of each length, and what share of it was found."""
    model, held, m = known.model, known.held, known.m
    prompts, rng = len(known.outputs), np.random.default_rng(_SEED)
    for n in range(1, known.outputs.shape[1] + 1):
        reachable, ways = np.unique(known.outputs[:, :n], axis=0, return_counts=True)
        some = rng.choice(len(reachable), size=min(strings, len(reachable)), replace=False)
        sequences = model.facts.rows**n
        yield Truth(
            model=model.facts.name,
            within=held.within.text,
            m=m,
            bits=round(m * held.bits),
            n=n,
            limit=known.limit,
            reachable=len(reachable),
            sequences=sequences,
            counted=min(1.0, prompts / sequences),
            by_states=chance_of_any(known.cells, prompts, n),
            by_first_tokens=chance_of_any(known.first_tokens, prompts, n),
            median_prompts=float(np.median(ways)),
            restarts=config.restarts,
            max_steps=config.max_steps,
            found=_found(known, reachable[some], config) if strings else None,
        )


def _found(known: Listed, asked: np.ndarray, config: OptimiserConfig) -> Share:
    """Return how many of some reachable sequences the optimiser finds."""
    strings, n = asked.shape
    results = cram(
        known.model,
        asked,
        known.m,
        config,
        generators=[np.random.default_rng([_SEED, n, i]) for i in range(strings)],
        batch_size=strings,
    )
    found = sum(result.reach == n for result in results)
    low, high = clopper_pearson(np.array([float(found)]), np.array([float(strings)]), 0.95)
    return Share(count=found, of=strings, share=found / strings, low=float(low[0]), high=float(high[0]))


def said(one: Truth) -> str:
    """Say one record."""
    found = "" if one.found is None else f"; found {one.found.count} of {one.found.of}"
    return (
        f"{one.model}, m {one.m}, n {one.n}: {one.reachable} of {one.sequences} reachable ({one.share:.3g}); "
        f"counting {one.counted:.3g}, cells of states {one.by_states:.3g}, "
        f"of first tokens {one.by_first_tokens:.3g}{found}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(_MODELS))
    parser.add_argument("--m", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--within", default="sign")
    parser.add_argument("--strings", type=int, default=50, help="asked for, of each length; 0: none")
    parser.add_argument("--max-steps", type=int, default=OptimiserConfig().max_steps)
    parser.add_argument("--flips", type=int, default=OptimiserConfig().flips)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--start-scale", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    config = OptimiserConfig(
        within=words.within,
        start_scale=words.start_scale,
        max_steps=words.max_steps,
        patience=words.max_steps,
        flips=words.flips,
        restarts=words.restarts,
    )
    for spec in words.models:
        model = load(spec)
        for m in words.m:
            for one in truths(listed(model, config, m), config, words.strings):
                print(said(one), flush=True)
                if words.out:
                    words.out.parent.mkdir(parents=True, exist_ok=True)
                    with words.out.open("a", encoding="utf-8") as file:
                        file.write(one.model_dump_json() + "\n")


if __name__ == "__main__":
    main()
