"""A model that can also take images: text only, in evaluation mode, without token types."""

import torch
from transformers import Gemma3Config, Gemma3ForConditionalGeneration

from lmreach.models.decode import greedy
from lmreach.models.load import load
from tests.models.common import random_vectors


def conditional() -> Gemma3ForConditionalGeneration:
    text = {
        "vocab_size": 64,
        "hidden_size": 64,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "head_dim": 16,
        "query_pre_attn_scalar": 16,
        "sliding_window": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.2,
        "pad_token_id": None,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 8,
        "patch_size": 4,
    }
    settings = Gemma3Config(
        text_config=text,
        vision_config=vision,
        mm_tokens_per_image=4,
        image_token_index=63,
        boi_token_index=61,
        eoi_token_index=62,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Gemma3ForConditionalGeneration(settings)


def test_three_optimiser_steps_leave_a_conditional_model_as_it_was():
    loaded = load(conditional().train())
    assert (loaded.facts.width, loaded.facts.layers, loaded.facts.embedding_scale) == (64, 2, 8.0)
    vectors = random_vectors(loaded, 2, 2).requires_grad_()
    target = torch.arange(2, 8).expand(2, 6)
    optimiser = torch.optim.Adam([vectors], lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        sequence = torch.cat([vectors, loaded.input_vectors(target[:, :-1])], dim=1)
        logits = loaded.logits(sequence)[:, 1:]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        optimiser.step()
        assert torch.isfinite(loss)
    assert not any(module.training for module in loaded.model.modules())
    assert all(p.grad is None for p in loaded.model.parameters())
    assert load(loaded.model).facts.fingerprint == loaded.facts.fingerprint


def test_a_conditional_model_decodes_with_and_without_cache_alike():
    loaded = load(conditional())
    assert loaded.facts.cache_ok
    assert len(greedy(loaded, random_vectors(loaded, 3), 12).ids) == 12
