"""An unknown family is found out by running it, or refused with the failing check named."""

import numpy as np
import pytest
import torch

from lmreach.errors import ModelError
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.tiny import tiny
from tests.models.common import loaded_tiny, random_vectors
from tests.models.odd import NoLogits, NoVectors, odd


def test_a_family_nobody_knows_is_measured():
    model = odd()
    loaded = load(model)
    facts = loaded.facts
    assert (facts.family, facts.width, facts.rows, facts.layers) == ("odd", 16, 40, 2)
    assert (facts.head_bias, facts.norm_kind, facts.embedding_scale, facts.soft_cap) == (
        True,
        "layer",
        1.0,
        None,
    )
    assert facts.context is None
    np.testing.assert_allclose(loaded.final_norm.gain, model.trunk.last.weight.numpy(), rtol=1e-5)
    np.testing.assert_allclose(loaded.final_norm.bias, model.trunk.last.bias.numpy(), atol=1e-5)


def test_a_cache_that_does_not_work_is_not_used():
    loaded = load(odd())
    assert not loaded.facts.cache_ok
    assert any("recomputes" in note for note in loaded.facts.notes)
    decoded = greedy(loaded, random_vectors(loaded, 2), 6)
    assert not decoded.used_cache
    assert len(decoded.ids) == 6


def test_a_state_divided_before_the_head_counts_as_part_of_the_norm():
    model = odd("state divided")
    loaded = load(model)
    assert loaded.wiring.body is None  # no module puts out what the head is given
    np.testing.assert_allclose(loaded.final_norm.gain, model.trunk.last.weight.numpy() / 4, rtol=1e-5)
    vectors = random_vectors(loaded, 1, 5).requires_grad_()
    torch.testing.assert_close(loaded.logits(vectors), model(inputs_embeds=vectors).logits)
    loaded.logits(vectors).sum().backward()
    assert bool((vectors.grad != 0).any())


@pytest.mark.parametrize(
    ("oddity", "scale", "cap"), [("logits scaled", 0.0625, None), ("scaled and capped", 0.5, 50.0)]
)
def test_factor_and_soft_cap_are_found(oddity, scale, cap):
    model = odd(oddity)
    loaded = load(model)
    assert loaded.facts.logit_scale == pytest.approx(scale, rel=1e-5)
    assert loaded.facts.soft_cap == (None if cap is None else pytest.approx(cap, rel=1e-6))
    vectors = random_vectors(loaded, 1, 5)
    with torch.no_grad():
        torch.testing.assert_close(
            loaded.logits(vectors), model(inputs_embeds=vectors).logits, rtol=1e-4, atol=1e-5
        )


def test_a_scale_applied_to_vectors_too_is_told_apart():
    facts = load(odd("both scaled")).facts
    assert (facts.embedding_scale, facts.vector_scale) == pytest.approx((3.0, 3.0))


def test_without_a_norm_the_head_reads_the_residual_stream():
    loaded = load(odd("no norm"))
    assert loaded.final_norm.kind == "none"
    assert loaded.final_norm.gain.size == 0


@pytest.mark.parametrize(
    ("oddity", "check"),
    [
        ("ids scaled", "check 'ids and vectors agree' failed: expected the same logits"),
        ("looks ahead", "check 'a later token changes no earlier logits' failed"),
        ("squared", "check 'logits are a scaled linear map of the final state' failed"),
        ("not finite", "check 'logits are finite' failed"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(oddity, check):
    with pytest.raises(ModelError, match=check):
        load(odd(oddity))


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (NoVectors, "check 'vectors can be handed in' failed"),
        (NoLogits, "check 'the model runs on ids' failed"),
    ],
)
def test_a_model_that_is_called_in_another_way_is_refused_by_name(kind, check):
    with pytest.raises(ModelError, match=check):
        load(odd(kind=kind))


def test_an_encoder_with_a_decoder_is_refused_by_name():
    from transformers import T5Config, T5ForConditionalGeneration

    small = T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    with pytest.raises(ModelError, match="check 'the model runs on ids' failed"):
        load(T5ForConditionalGeneration(small))


def test_a_model_that_reads_both_ways_is_refused_by_name():
    from transformers import BertConfig, BertLMHeadModel

    small = BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        initializer_range=0.5,
    )
    with pytest.raises(ModelError, match="check 'a later token changes no earlier logits' failed"):
        load(BertLMHeadModel(small))


def test_a_gain_hundreds_of_times_the_others_hides_none_of_them():
    model = odd()
    with torch.no_grad():
        model.trunk.last.weight[3] = 500.0
        model.trunk.last.weight[4] = 0.0
    np.testing.assert_allclose(
        load(model).final_norm.gain, model.trunk.last.weight.detach(), rtol=1e-5, atol=1e-5
    )


def test_vectors_narrower_than_the_blocks():
    """OPT-350m's kind: vectors are narrower than the blocks, projected in and out again."""
    loaded = loaded_tiny("opt", word_embed_proj_dim=16, do_layer_norm_before=False)
    facts = loaded.facts
    assert (facts.width, facts.hidden_width, facts.norm_kind, facts.embedding_scale) == (
        16,
        16,
        "other",
        None,
    )


def test_weights_in_an_unknown_format_are_refused():
    model = tiny("llama")
    model.lm_head.weight.data = model.lm_head.weight.data.to(torch.float8_e4m3fn)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(torch.float8_e4m3fn)
    with pytest.raises(ModelError, match=r"expected weights in float32.*got torch\.float8_e4m3fn"):
        load(model)


def test_no_hook_stays_behind():
    loaded = load(odd())
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in loaded.model.modules())
