"""The local search on a grid: it stays on the grid, never falls back, and finds what enumeration finds."""

import itertools

import numpy as np
import pytest
import torch

from lmreach.config.within import parse_within
from lmreach.experiments.cramming.regions.build import build
from lmreach.experiments.cramming.regions.flips import improve
from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.models.decode import emitted_prefix, greedy
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel


def grid_of(model: LoadedModel, text: str, start_scale: float = 1.0) -> Grid:
    held = build(parse_within(text), model, start_scale=start_scale)
    assert isinstance(held, Grid)
    return held


@pytest.mark.parametrize("text", ["sign", "int2", "int4", "subspace:20+int3"])
def test_it_stays_on_the_grid_and_emits_no_less(text: str, random_model: LoadedModel) -> None:
    held, gained = grid_of(random_model, text), 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        free = held.settle(held.start(torch.zeros(2, 64), 1.0, rng))
        target = rng.choice(random_model.plain_ids, size=8)
        before = emitted_prefix(random_model, held.point(free), target).reach
        better = improve(random_model, held, free, target, reach=before, rounds=15, generator=rng)
        assert torch.equal(held.settle(better), better)
        after = emitted_prefix(random_model, held.point(better), target).reach
        assert after >= before
        gained += after - before
    assert gained > 0


def test_it_finds_tokens_that_only_some_prompts_emit() -> None:
    """Every prompt of a small grid is listed; from any start the search must reach what few of them emit."""
    model = load("tiny:gpt2,width=8,vocab=8,layers=1,seed=3")
    held = grid_of(model, "sign", 3.0)
    prompts = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=8)))[:, None] * held.run_scale
    emitted = [int(greedy(model, prompt, 1).ids[0]) for prompt in prompts]
    rng, reached, asked = np.random.default_rng(0), 0, 0
    for token in set(emitted):
        for start in rng.choice(len(prompts), size=6):
            target, here = np.asarray([token]), int(emitted[start] == token)
            better = improve(model, held, prompts[start], target, reach=here, rounds=20, generator=rng)
            reached += emitted_prefix(model, better, target).reach
            asked += 1
    assert reached >= 0.9 * asked


def test_formats_whose_steps_differ_are_left_alone(random_model: LoadedModel) -> None:
    held = grid_of(random_model, "e4m3")
    free = held.settle(torch.ones(1, 64))
    rng = np.random.default_rng(0)
    assert improve(random_model, held, free, np.asarray([5, 6]), reach=0, rounds=3, generator=rng) is free


def test_it_stops_when_told(random_model: LoadedModel) -> None:
    held, asked = grid_of(random_model, "sign"), []
    free = held.settle(torch.ones(1, 64))

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 2

    improve(
        random_model,
        held,
        free,
        np.arange(5, 25),
        reach=0,
        rounds=50,
        generator=np.random.default_rng(0),
        stop=stop,
    )
    assert len(asked) == 3
