"""Cramming held to a set: what comes back is a member, is what emits the prefix, and is reproducible."""

import numpy as np
import pytest
import torch

from lmreach.config import LoadConfig, OptimiserConfig
from lmreach.config.within import parse_within
from lmreach.errors import InputError
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.frontier import block_length
from lmreach.experiments.cramming.regions.build import describe, held_to, restore
from lmreach.experiments.targets.draw import draw
from lmreach.models.decode import emitted_prefix
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel

SETS = ["box", "ball:1", "subspace:16", "float16", "e4m3", "int4", "sign", "int2:vector", "subspace:32+int4"]


@pytest.mark.parametrize("text", SETS)
def test_every_result_is_a_member_and_emits_what_is_claimed(text: str, random_model: LoadedModel) -> None:
    config = OptimiserConfig(max_steps=60, patience=40, within=text, flips=3)
    ids = draw(random_model, "self", 4, 12, seed=0).ids
    held = held_to(config, random_model)
    results = cram(
        random_model,
        ids,
        2,
        config,
        generators=[np.random.default_rng(i) for i in range(4)],
        batch_size=4,
    )
    assert sum(result.reach for result in results) >= 3
    for result, target in zip(results, ids, strict=True):
        held.check(torch.from_numpy(result.vectors))
        _, stored = restore(held.encode(torch.from_numpy(result.free)), describe(held), 2)
        assert torch.equal(stored, torch.from_numpy(result.vectors))
        assert emitted_prefix(random_model, stored, target).reach == result.reach


@pytest.mark.parametrize("text", ["box", "ball:1", "subspace:16", "sign"])
def test_16_bit_models_are_held_to_sets_as_well(text: str) -> None:
    half = load("builtin:random", LoadConfig(dtype="bfloat16"))
    config = OptimiserConfig(max_steps=8, patience=8, within=text, flips=1)
    ids = draw(half, "self", 2, 4, seed=0).ids
    generators = [np.random.default_rng(i) for i in range(2)]
    results = cram(half, ids, 1, config, generators=generators, batch_size=2)
    assert sum(result.reach for result in results) >= 1
    for result, target in zip(results, ids, strict=True):
        vectors = torch.from_numpy(result.vectors)
        held_to(config, half).check(vectors)
        assert emitted_prefix(half, vectors, target).reach == result.reach


@pytest.mark.parametrize("text", ["", "subspace:16", "ball:1e9"])
def test_vectors_too_long_for_a_float16_model_fail_their_trial(text: str) -> None:
    short = load("builtin:random", LoadConfig(dtype="float16"))
    config = OptimiserConfig(max_steps=4, patience=4, within=text, start_scale=1e7)
    ids = draw(short, "random", 1, 3, seed=0).ids
    (result,) = cram(short, ids, 1, config, generators=[np.random.default_rng(0)], batch_size=1)
    assert (result.outcome, result.reach) == ("non_finite", 0)


def test_the_local_search_adds_and_never_takes_away(random_model: LoadedModel) -> None:
    ids = draw(random_model, "random", 6, 16, seed=1).ids

    def reaches(flips: int) -> list[int]:
        config = OptimiserConfig(max_steps=80, within="sign", flips=flips)
        generators = [np.random.default_rng(i) for i in range(6)]
        results = cram(random_model, ids, 4, config, generators=generators, batch_size=6)
        return [result.reach for result in results]

    without, with_search = reaches(0), reaches(30)
    assert all(after >= before for before, after in zip(without, with_search, strict=True))
    assert sum(with_search) > sum(without)


def test_blocks_are_a_share_of_what_the_set_can_tell_apart() -> None:
    config = OptimiserConfig()
    assert block_length(config, 1, 576) == 16
    assert block_length(config, 1, 576, most=37.0) == 7
    assert block_length(config, 1, 576, most=1000.0) == 16
    assert block_length(config, 1, 64, most=7.0) == 4
    assert block_length(OptimiserConfig(lookahead=3), 1, 576, most=37.0) == 3


def test_a_premise_has_one_spelling_in_a_config() -> None:
    assert OptimiserConfig(within=" INT4 ").within == "int4"
    assert OptimiserConfig(within="none").within == ""
    assert OptimiserConfig(within="ball:10.0").within == "ball:10"
    for radius in ("1e7", "1e+7", "10000000", "1234567.5", "1e30", "0.00001"):
        spelt = OptimiserConfig(within=f"ball:{radius}").within
        assert OptimiserConfig(within=spelt).within == spelt
        assert parse_within(spelt).radius == float(radius)
    with pytest.raises(InputError, match="did you mean"):
        OptimiserConfig(within="int5")
