"""Cross-entropy of a target without and with vectors."""

import math

import numpy as np
import pytest
import torch

from lmreach.experiments.cramming.information import target_bits, token_nats
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer


def test_it_is_what_the_whole_model_says(random_model) -> None:
    """Against the library's own forward pass, token by token."""
    ids = np.arange(7) * 31 + 5
    vectors = random_model.input_vectors(torch.arange(3))
    nats = token_nats(random_model, vectors, ids)
    for k, wanted in enumerate(ids):
        before = torch.cat([vectors, random_model.input_vectors(torch.from_numpy(ids[:k]))])[None]
        with torch.no_grad():
            logits = random_model.model(inputs_embeds=before).logits[0, -1]
        assert nats[k] == pytest.approx(-float(logits.log_softmax(-1)[wanted]), abs=1e-4)


def test_without_a_start_token_the_first_id_costs_log_v(random_model) -> None:
    bits = target_bits(random_model, random_model.input_vectors(torch.arange(2)), np.array([9]))
    assert bits.without == pytest.approx(math.log2(512))
    assert bits.gained == pytest.approx(bits.without - bits.with_vectors)


def test_the_token_gain_counts_what_comes_out_right(random_model) -> None:
    """Vectors that emit their own greedy continuation have all of it right."""
    vectors = random_model.input_vectors(torch.tensor([3, 8]))
    ids = greedy(random_model, vectors, 5).ids
    bits = target_bits(random_model, vectors, ids)
    assert bits.right_with == 5
    assert bits.tokens_gained == 5 - bits.right_without
    assert 0 <= bits.right_without <= 4  # the first id has nothing before it


def test_the_start_token_as_the_only_vector_tells_nothing() -> None:
    model = load(tiny("llama", vocab_size=128), tokenizer=tiny_tokenizer(100))
    assert model.facts.bos_id is not None
    start = model.input_vectors(torch.tensor([model.facts.bos_id]))
    bits = target_bits(model, start, np.array([5, 6, 7]))
    assert bits.gained == pytest.approx(0.0, abs=1e-4)
