"""Tiny models by name."""

import numpy as np
import pytest
import torch

from lmreach.errors import InputError
from lmreach.models.load import load
from lmreach.models.tiny_model import _walks, tiny_model
from lmreach.models.tiny_spec import TinySpec


def test_a_name_says_everything_and_reads_back() -> None:
    text = "tiny:gpt2,width=4,vocab=5,layers=2,heads=2,std=0.5,bits=6,positions=0,train=3,seed=9"
    spec = TinySpec.parse(text)
    assert spec.name == text
    assert TinySpec.parse(spec.name) == spec
    assert TinySpec.parse("tiny:llama") == TinySpec()
    assert load(tiny_model(text)).facts.name == text


@pytest.mark.parametrize("family", ["llama", "gpt2", "mamba"])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_models_are_what_was_asked_and_the_same_twice(family: str, width: int) -> None:
    text = f"tiny:{family},width={width},vocab=6,layers=2,seed=4"
    before = torch.get_rng_state()
    first, second = load(tiny_model(text)), load(tiny_model(text))
    assert torch.equal(before, torch.get_rng_state())
    assert (first.facts.width, first.facts.rows, first.facts.layers) == (width, 6, 2)
    assert first.facts.fingerprint == second.facts.fingerprint
    assert first.facts.fingerprint != load(tiny_model(text.replace("seed=4", "seed=5"))).facts.fingerprint


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_rounded_weights_take_few_values(bits: int) -> None:
    for parameter in tiny_model(f"tiny:llama,width=4,vocab=32,bits={bits}").parameters():
        assert len(parameter.unique()) <= 2**bits - 1


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_one_layer_without_positions_does_not_see_order(family: str) -> None:
    spec = f"tiny:{family},width=4,vocab=8"
    prompt = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(0))
    turned = torch.cat([prompt[:, [2, 0, 3, 1]], prompt[:, 4:]], dim=1)
    blind, seeing = load(tiny_model(spec + ",positions=0")), load(tiny_model(spec))
    apart = {
        name: float((m.logits(prompt)[:, -1] - m.logits(turned)[:, -1]).abs().max())
        for name, m in (("blind", blind), ("seeing", seeing))
    }
    assert apart["blind"] < 1e-5
    assert apart["seeing"] > 1e-3


def test_training_learns_the_chain() -> None:
    spec = TinySpec(width=4, vocab=4, train=60)
    trained, raw = tiny_model(spec), tiny_model(TinySpec(width=4, vocab=4))
    rng = np.random.default_rng([spec.seed, 77])
    chain = rng.dirichlet(np.full(4, 0.3), size=4).cumsum(axis=1)
    ids = torch.from_numpy(_walks(chain, rng))
    losses = []
    for model in (trained, raw):
        logits = model(input_ids=ids).logits[:, :-1].detach()
        losses.append(float(torch.nn.functional.cross_entropy(logits.reshape(-1, 4), ids[:, 1:].reshape(-1))))
    assert losses[0] < 0.7 * losses[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiny:bert", "tiny:llama"),
        ("tiny:llama,with=3", "width"),
        ("tiny:llama,width=three", "whole number"),
        ("tiny:llama,width=1", "from 2 to 64"),
        ("tiny:llama,width=3,heads=2", "heads divide"),
        ("tiny:llama,bits=1", "bits from 2"),
        ("tiny:llama,std=0", "std"),
        ("tiny:mamba,positions=0", "positions=1"),
        ("tiny:llama,seed=-1", "seed"),
    ],
)
def test_what_cannot_be_built_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        tiny_model(text)
