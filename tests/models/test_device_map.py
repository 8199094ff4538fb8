"""A model spread over memory and disk gives what the whole one gives: hidden states, gradients, strings."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lmreach.config import LoadConfig, OptimiserConfig
from lmreach.errors import InputError
from lmreach.experiments.cramming.cram import cram
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import search_copy, twin
from lmreach.models.tiny import tiny

PLACES = {
    "model.embed_tokens": "cpu",
    "model.layers.0": "disk",
    "model.layers.1": "cpu",
    "model.norm": "cpu",
    "model.rotary_emb": "cpu",
    "lm_head": "cpu",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    tiny("llama").save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def whole(folder: Path) -> LoadedModel:
    return load(folder)


@pytest.fixture(scope="module", params=["text", "file"])
def spread(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> LoadedModel:
    text = json.dumps(PLACES)
    if request.param == "file":
        file = tmp_path_factory.mktemp("maps") / "map.json"
        file.write_text(text, encoding="utf-8")
        text = str(file)
    found = load(folder, LoadConfig(device_map=text))
    block = found.wiring.blocks[0]
    assert all(weight.is_meta for weight in block.parameters()), "the map was followed"
    return found


def test_steps_and_gradients_are_the_same(whole: LoadedModel, spread: LoadedModel) -> None:
    assert spread.facts.fingerprint == whole.facts.fingerprint
    vectors = torch.randn(2, 5, whole.facts.width, generator=torch.Generator().manual_seed(0))
    found = []
    for model in (whole, spread):
        leaf = vectors.clone().requires_grad_(True)
        logits = model.logits(leaf)
        (gradient,) = torch.autograd.grad(logits.logsumexp(-1).sum(), leaf)
        found.append((logits.detach(), gradient))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert bool(found[0][1].abs().sum() > 0)


def test_strings_come_to_the_same_end(whole: LoadedModel, spread: LoadedModel) -> None:
    ids = np.random.default_rng(1).choice(whole.plain_ids, size=(3, 4))
    config = OptimiserConfig(max_steps=8, patience=8)
    found = [
        cram(model, ids, 1, config, generators=list(map(np.random.default_rng, range(3))), batch_size=3)
        for model in (whole, spread)
    ]
    for one, other in zip(*found, strict=True):
        assert (one.reach, one.outcome, one.growth) == (other.reach, other.outcome, other.growth)
        assert np.array_equal(one.vectors, other.vectors)
    assert max(one.reach for one in found[0]) > 0


def test_a_spread_model_is_searched_as_it_is_and_never_copied(spread: LoadedModel) -> None:
    assert search_copy(spread).model is spread
    with pytest.raises(InputError, match="a model in one place to copy"):
        twin(spread, torch.bfloat16)


def test_auto_on_a_machine_with_room_is_the_whole_model(folder: Path, whole: LoadedModel) -> None:
    found = load(folder, LoadConfig(device_map="auto"))
    assert found.facts.fingerprint == whole.facts.fingerprint
    made = load("builtin:random", LoadConfig(device_map="auto"))
    assert made.facts.fingerprint == load("builtin:random").facts.fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps({**PLACES, "lm_head": "disk"}), "embeddings, norms and head of .* on a device"),
        ("{", "a map of parts to devices for --device-map"),
        ("no-such-file.json", "a map of parts to devices for --device-map"),
        ("[1]", "a map of parts to devices for --device-map"),
    ],
)
def test_what_cannot_be_followed_is_refused(folder: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load(folder, LoadConfig(device_map=text))


def test_a_device_and_a_map_are_one_too_many(folder: Path) -> None:
    with pytest.raises(InputError, match="a device or a map of devices"):
        load(folder, LoadConfig(device="cpu", device_map="auto"))
