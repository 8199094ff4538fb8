"""What a GGUF header means: logits are those of the transformers model with the equivalent config."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from lmreach.errors import ModelError
from lmreach.models.gguf_header import read_header
from lmreach.models.gguf_meaning import meaning_of
from lmreach.models.load import load
from lmreach.models.partial import read_parts
from lmreach.models.tiny import tiny
from tests.models.gguf_writing import write_gguf

LENGTH = 24


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LMREACH_CACHE", str(tmp_path / "cache"))


def difference(file, model, settings):
    """Return how far the logits of a file are from those of the same weights under other settings."""
    plain = AutoModelForCausalLM.from_config(settings)
    plain.load_state_dict(model.state_dict())
    loaded = load(file)
    ids = torch.arange(LENGTH)[None] % model.config.vocab_size
    with torch.no_grad():
        return float((loaded.logits(loaded.input_vectors(ids)) - plain.eval()(ids).logits).abs().max())


def with_rope(model, **rope):
    settings = type(model.config).from_dict(model.config.to_dict())
    settings.rope_parameters = {"rope_theta": settings.rope_parameters["rope_theta"], **rope}
    return settings


@pytest.fixture(scope="module")
def llama():
    # Weights of size 1: positions then matter to the logits.
    return tiny("llama", initializer_range=0.5, max_position_embeddings=64)


FREQS = [1.0, 2.5]  # one per pair of a head of 4


def turned(model):
    return model.config.hidden_size // model.config.num_attention_heads


@pytest.mark.parametrize(
    ("entries", "tensors", "rope"),
    [
        ({}, {}, {"rope_type": "default"}),
        ({"rope.scaling.type": "none"}, {}, {"rope_type": "default"}),
        (
            {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
            {},
            {"rope_type": "linear", "factor": 4.0},
        ),
        ({"rope.scaling.factor": 4.0}, {}, {"rope_type": "linear", "factor": 4.0}),
        ({"rope.scale_linear": 4.0}, {}, {"rope_type": "linear", "factor": 4.0}),
        (
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 16,
            },
            {},
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        ),
    ],
)
def test_scaled_positions_are_applied(tmp_path, llama, entries, tensors, rope):
    file = tmp_path / "a.gguf"
    write_gguf(file, llama, "llama", entries={"rope.dimension_count": turned(llama), **entries})
    assert difference(file, llama, with_rope(llama, **rope)) < 1e-4
    if rope["rope_type"] != "default":
        assert difference(file, llama, llama.config) > 0.01, "the check sees a scaling that is left out"


def test_factors_of_a_tensor_are_those_of_llama_3(tmp_path):
    """The converter writes Llama 3's scaling as a tensor of factors: undone, it is the same model."""
    model = tiny("llama", initializer_range=0.5, max_position_embeddings=64, head_dim=16)
    scaled = with_rope(
        model,
        rope_type="llama3",
        rope_theta=500.0,
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=32,
    )
    buffers = dict(AutoModelForCausalLM.from_config(scaled).named_buffers())
    size = scaled.head_dim
    plain = 500.0 ** (-np.arange(0, size, 2) / size)
    factors = plain / buffers["model.rotary_emb.inv_freq"].numpy()
    assert factors.max() == pytest.approx(8.0, rel=1e-5)
    model.config.rope_parameters["rope_theta"] = 500.0
    file = tmp_path / "a.gguf"
    write_gguf(
        file,
        model,
        "llama",
        entries={"rope.dimension_count": size, "attention.key_length": size, "attention.value_length": size},
        tensors={"rope_freqs.weight": factors},
    )
    assert difference(file, model, scaled) < 1e-4
    assert difference(file, model, model.config) > 0.01
    assert "rope_freqs.weight" in load(file).facts.notes[0]


@pytest.fixture(scope="module")
def gemma():
    return tiny("gemma3_text", initializer_range=0.5, query_pre_attn_scalar=16)


@pytest.mark.parametrize(
    ("scalar", "entries"),
    [(16, {}), (64, {"attention.scale": 0.125}), (50, {"attention.scale": 50**-0.5})],
)
def test_the_query_scale_of_gemma_3(tmp_path, gemma, scalar, entries):
    """llama.cpp scales by the size of a head, 16 here, where transformers' default is 256."""
    assert gemma.config.head_dim == 16
    file = tmp_path / "a.gguf"
    write_gguf(file, gemma, "gemma3", entries=entries)
    settings = type(gemma.config).from_dict({**gemma.config.to_dict(), "query_pre_attn_scalar": scalar})
    assert difference(file, gemma, settings) < 1e-3
    other = type(gemma.config).from_dict({**gemma.config.to_dict(), "query_pre_attn_scalar": 256})
    assert difference(file, gemma, other) > 0.01


def test_the_long_positions_of_gemma_3_are_those_of_its_full_blocks(tmp_path):
    kinds = ["sliding_attention", "full_attention"]
    gemma = tiny("gemma3_text", initializer_range=0.5, query_pre_attn_scalar=16, layer_types=kinds)
    file = tmp_path / "a.gguf"
    scaling = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
    local = {"rope.freq_base_swa": 500.0, "attention.sliding_window_pattern": 2}
    write_gguf(file, gemma, "gemma3", entries={**scaling, **local})
    settings = type(gemma.config).from_dict(gemma.config.to_dict())
    theta = settings.rope_parameters["full_attention"]["rope_theta"]
    settings.rope_parameters = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": theta},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
    }
    assert difference(file, gemma, settings) < 1e-3
    assert difference(file, gemma, gemma.config) > 0.01


def test_a_soft_cap_of_the_header_is_applied(tmp_path, gemma):
    file = tmp_path / "a.gguf"
    write_gguf(file, gemma, "gemma3", entries={"final_logit_softcapping": 3.0})
    settings = type(gemma.config).from_dict({**gemma.config.to_dict(), "final_logit_softcapping": 3.0})
    assert difference(file, gemma, settings) < 1e-3
    assert load(file).facts.soft_cap == pytest.approx(3.0)


def test_partly_turned_heads_are_refused_or_right(tmp_path, llama):
    """Llama turns whole heads in transformers: a file that turns half of each is no model it can build."""
    file = tmp_path / "a.gguf"
    write_gguf(file, llama, "llama", entries={"rope.dimension_count": turned(llama) // 2})
    with pytest.raises(ModelError, match=r"turned by position|dimension_count"):
        load(file)


@pytest.mark.parametrize(
    ("entries", "tensors", "said"),
    [
        ({"attention.clamp_kqv": 8.0}, {}, "llama.attention.clamp_kqv = 8.0 in a.gguf"),
        ({"logit_scale": 0.5}, {}, "llama.logit_scale = 0.5"),
        ({"never.heard.of": 1}, {}, "llama.never.heard.of = 1"),
        ({"attention.causal": False}, {}, "llama.attention.causal = False"),
        ({"attention.sliding_window": 7}, {}, "llama.attention.sliding_window = 7"),
        ({"rope.scaling.type": "su"}, {}, "'su' in a.gguf"),
        ({"rope.dimension_sections": [1, 2, 3]}, {}, "dimension_sections"),
        ({}, {"blk.0.attn_sinks.weight": [1.0]}, "blk.0.attn_sinks.weight in a.gguf"),
        ({}, {"blk.0.attn_q.bias": [1.0] * 32}, "blk.0.attn_q.bias"),
        ({}, {"rope_factors_long.weight": [1.0, 2.0]}, "one of them"),
        ({".general.type": "adapter", ".adapter.type": "lora"}, {}, "a.gguf, a LoRA adapter; merge it"),
        ({".general.type": "mmproj"}, {}, "the vision or audio part"),
        ({".split.count": 2, ".split.no": 0}, {}, "a.gguf, part 1 of 2; join them"),
    ],
)
def test_what_cannot_be_applied_is_refused_by_name(tmp_path, llama, entries, tensors, said):
    file = tmp_path / "a.gguf"
    write_gguf(file, llama, "llama", entries=entries, tensors=tensors)
    with pytest.raises(ModelError) as raised:
        load(file)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    if not tensors:
        with pytest.raises(ModelError, match="expected"):
            read_parts(file)


@pytest.mark.parametrize(
    "entries",
    [
        {"attention.clamp_kqv": 0.0},
        {"expert_count": 0},
        {"attention.causal": True},
        {"tensor_data_layout": "Meta AI original pth"},
        {".general.license": "mit", ".quantize.imatrix.file": "x", ".someone.note": "y"},
    ],
)
def test_what_changes_nothing_is_let_pass(tmp_path, llama, entries):
    file = tmp_path / "a.gguf"
    write_gguf(file, llama, "llama", entries=entries)
    meaning = meaning_of(read_header(file))
    assert "rope.freq_base" in meaning.note
    assert meaning.settings.rope_parameters == {"rope_theta": 10000.0, "rope_type": "default"}
