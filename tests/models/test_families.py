"""Every family on a tiny model: facts against values written down by hand, and the laws all of them obey."""

import json

import numpy as np
import pytest
import torch

from lmreach.models.decode import greedy
from lmreach.models.fingerprint import fingerprint
from lmreach.models.load import load
from lmreach.models.tiny import FAMILIES, tiny
from lmreach.results.run import Model
from tests.models.common import loaded_tiny, random_vectors

# family: (width, tied, head bias, soft cap, kind of norm, embedding scale, context)
BY_HAND = {
    "gpt_neox": (32, False, False, None, "layer", 1.0, 128),
    "llama": (32, False, False, None, "rms", 1.0, 128),
    "qwen2": (32, True, False, None, "rms", 1.0, 128),
    "qwen3": (32, False, False, None, "rms", 1.0, 128),
    "gemma2": (64, True, False, 30.0, "rms", 8.0, 128),
    "gemma3_text": (64, True, False, None, "rms", 8.0, 128),
    "mistral": (32, False, False, None, "rms", 1.0, 128),
    "gpt2": (32, True, False, None, "layer", 1.0, 128),
    "opt": (32, True, False, None, "layer", 1.0, 128),
    "olmo2": (32, False, False, None, "rms", 1.0, 128),
    "phi": (32, False, True, None, "layer", 1.0, 128),
    "mamba": (32, True, False, None, "rms", 1.0, None),
}

# Where each family keeps its last norm. Only tests may know such names.
FINAL_NORM = {
    "gpt_neox": "gpt_neox.final_layer_norm",
    "gpt2": "transformer.ln_f",
    "opt": "model.decoder.final_layer_norm",
    "phi": "model.final_layernorm",
    "mamba": "backbone.norm_f",
}

pytestmark = pytest.mark.parametrize("family", FAMILIES)


def test_all_families_are_covered(family):
    assert family in BY_HAND


def test_facts_are_those_of_the_config(family):
    facts = loaded_tiny(family).facts
    got = (facts.width, facts.tied_head, facts.head_bias, facts.soft_cap, facts.norm_kind)
    assert (*got, facts.embedding_scale, facts.context) == BY_HAND[family]
    assert (facts.rows, facts.usable, facts.layers, facts.hidden_width) == (64, 64, 2, facts.width)
    assert (facts.vector_scale, facts.logit_scale, facts.dtype, facts.cache_ok) == (1.0, 1.0, "float32", True)
    assert (facts.family, facts.special_ids, facts.bos_id, facts.eos_id) == (family, (0, 1), 0, 1)
    assert json.loads(Model.from_object(facts).model_dump_json())["parameters"] == facts.parameters


def test_final_norm_is_the_one_applied(family):
    loaded = loaded_tiny(family)
    module = loaded.model.get_submodule(FINAL_NORM.get(family, "model.norm"))
    gain = module.weight.double().numpy() + ("gemma" in family)  # Gemma stores g and multiplies by 1 + g
    bias = getattr(module, "bias", None)
    # float32 outputs, fitted from 64 states: six digits
    np.testing.assert_allclose(loaded.final_norm.gain, gain, rtol=1e-5)
    np.testing.assert_allclose(
        loaded.final_norm.bias,
        np.zeros(loaded.facts.width) if bias is None else bias.double().numpy(),
        atol=1e-5,
    )


def test_ids_and_vectors_give_the_models_own_logits(family):
    loaded = loaded_tiny(family)
    ids = torch.tensor([[3, 9, 60, 9, 11, 0, 1]])
    with torch.no_grad():
        own = loaded.model(input_ids=ids, use_cache=False, output_hidden_states=True)
        vectors = loaded.input_vectors(ids)
        torch.testing.assert_close(loaded.logits(vectors), own.logits.float(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(loaded.hidden(vectors), own.hidden_states[-1], rtol=1e-5, atol=1e-5)
    assert vectors.dtype == torch.float32


def test_input_rms_is_that_of_all_plain_ids(family):
    loaded = loaded_tiny(family)
    vectors = loaded.input_vectors(torch.arange(2, 64))
    assert loaded.input_rms == pytest.approx(float(vectors.double().square().mean().sqrt()), rel=1e-6)


def test_cached_decoding_equals_recomputing(family):
    loaded = loaded_tiny(family)
    vectors = random_vectors(loaded, 4)
    sequence = vectors[None]
    ids, gaps = [], []
    with torch.no_grad():
        for _ in range(32):  # the slow reference: the library's own logits for a sequence that grows
            top = loaded.model(inputs_embeds=sequence, use_cache=False).logits[0, -1].topk(2)
            ids.append(int(top.indices[0]))
            gaps.append(float(top.values[0] - top.values[1]))
            sequence = torch.cat([sequence, loaded.input_vectors(top.indices[None, :1])], dim=1)
    decoded = greedy(loaded, vectors, 32)
    assert decoded.used_cache
    assert decoded.ids.tolist() == ids
    np.testing.assert_allclose(decoded.gaps, gaps, atol=1e-4)


def test_gradients_reach_the_vectors_and_nothing_else(family):
    loaded = loaded_tiny(family)
    before = fingerprint(loaded.model)
    assert before == loaded.facts.fingerprint
    vectors = random_vectors(loaded, 2, 5).requires_grad_()
    optimiser = torch.optim.Adam([vectors], lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(loaded.logits(vectors)[:, -1], torch.tensor([7, 8]))
        loss.backward()
        assert torch.isfinite(loss)
        assert (vectors.grad.abs().amax(dim=-1) > 0).all()
        optimiser.step()
    assert not loaded.model.training
    assert all(not p.requires_grad and p.grad is None for p in loaded.model.parameters())
    assert fingerprint(loaded.model) == before


def test_right_padding_is_invisible_and_finite(family):
    loaded = loaded_tiny(family)
    long, short = random_vectors(loaded, 6), random_vectors(loaded, 1, seed=1)
    padded = torch.cat([short, torch.zeros(5, loaded.facts.width)])
    with torch.no_grad():
        both = loaded.logits(torch.stack([long, padded]))
        assert torch.isfinite(both).all()
        torch.testing.assert_close(both[0], loaded.logits(long[None])[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(both[1, :1], loaded.logits(short[None])[0], rtol=1e-4, atol=1e-4)


def test_saved_and_loaded_again_it_is_the_same_model(family, tmp_path):
    first = loaded_tiny(family)
    first.model.save_pretrained(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.facts.fingerprint == first.facts.fingerprint
    assert (again.facts.name, again.facts.stored_dtype) == ("saved", "float32")
    vectors = random_vectors(first, 3)
    assert greedy(again, vectors, 8).ids.tolist() == greedy(first, vectors, 8).ids.tolist()


def test_16_bit_weights_are_found_to_be_wired_the_same_way(family):
    plain, short = loaded_tiny(family).facts, load(tiny(family).to(torch.bfloat16)).facts
    assert (short.dtype, short.norm_kind, short.soft_cap) == ("bfloat16", plain.norm_kind, plain.soft_cap)
    # Three significant digits: bfloat16 has eight bits, and the constant itself is rounded to them.
    assert short.embedding_scale == pytest.approx(plain.embedding_scale, rel=5e-3)
    assert short.logit_scale == 1.0


@pytest.mark.parametrize("repeat", [0])
def test_tiny_models_are_reproducible(family, repeat):
    torch.manual_seed(repeat)
    state = torch.random.get_rng_state()
    assert fingerprint(tiny(family)) == fingerprint(tiny(family)) != fingerprint(tiny(family, seed=1))
    assert torch.equal(state, torch.random.get_rng_state())
