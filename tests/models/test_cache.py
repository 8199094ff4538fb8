"""A cache is believed for the batch sizes and lengths at which it was compared, and no further."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.experiments.census.decode import decode_block
from lmreach.models import decode
from lmreach.models.decode import emitted_prefix, greedy, greedy_batch, sample
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from tests.models.common import loaded_tiny, random_vectors
from tests.models.odd import odd


def _without_cache(loaded: LoadedModel) -> LoadedModel:
    return dataclasses.replace(loaded, facts=dataclasses.replace(loaded.facts, cache_ok=False))


@pytest.fixture(params=["cache", "cache forgets after 24", "cache mixes rows of eight"])
def loaded(request):
    loaded = load(odd(request.param))
    assert loaded.facts.cache_ok  # what a look at 16 positions and three rows cannot tell
    return loaded


def test_long_decodes_are_those_of_full_passes(loaded):
    vectors = random_vectors(loaded, 2)
    plain = greedy(_without_cache(loaded), vectors, 40)
    decoded = greedy(loaded, vectors, 40)
    assert decoded.ids.tolist() == plain.ids.tolist()
    np.testing.assert_allclose(decoded.gaps, plain.gaps, atol=1e-4)
    assert decoded.used_cache == (loaded.model.config.oddity != "cache forgets after 24")
    assert emitted_prefix(loaded, vectors, plain.ids).reach == 40


def test_the_first_long_check_of_a_certificate_is_right(loaded):
    vectors = random_vectors(loaded, 2)
    target = greedy(_without_cache(loaded), vectors, 40).ids
    assert emitted_prefix(loaded, vectors, target).reach == 40


def test_batches_of_eight_are_those_of_full_passes(loaded):
    vectors = random_vectors(loaded, 8, 2)
    plain = greedy_batch(_without_cache(loaded), vectors, 6)
    assert torch.equal(greedy_batch(loaded, vectors, 6), plain)
    assert decode_block(loaded, vectors, 6).ids.tolist() == plain.tolist()


def test_samples_are_those_of_full_passes(loaded):
    prompts = torch.arange(16).reshape(8, 2) + 3

    def drawn(model):
        return sample(model, prompts, 5, generator=torch.Generator().manual_seed(1))

    assert torch.equal(drawn(loaded), drawn(_without_cache(loaded)))


def test_once_it_was_wrong_nothing_is_kept_any_more():
    loaded = load(odd("cache forgets after 24"))
    assert greedy(loaded, random_vectors(loaded, 2), 8).used_cache
    assert not greedy(loaded, random_vectors(loaded, 2), 40).used_cache
    assert not greedy(loaded, random_vectors(loaded, 2), 8).used_cache
    assert load(odd("cache forgets after 24")).cache_record.lengths == {}
    facts = loaded.current_facts
    assert (loaded.facts.cache_ok, facts.cache_ok) == (True, False)
    assert "a cache of 1 rows did not agree with a full recompute within 41 positions" in facts.notes[-1]


def test_a_decode_no_longer_than_one_that_agreed_is_not_compared_again(monkeypatch):
    loaded = loaded_tiny("llama")
    passes = []
    original = decode.Steps._same
    monkeypatch.setattr(decode.Steps, "_same", lambda *given: passes.append(1) or original(*given))
    for length, batch in ((9, 1), (9, 1), (5, 1), (10, 1), (9, 20), (9, 20)):
        greedy_batch(loaded, random_vectors(loaded, batch, 3), length)
    assert len(passes) == 1 + 1 + 16
    assert loaded.cache_record.lengths == {1: 12, 20: 11}


@settings(max_examples=10, deadline=None)
@given(length=st.integers(1, 40), batch=st.sampled_from([1, 2, 8]), seed=st.integers(0, 99))
def test_no_oddity_of_a_cache_shows_at_any_length_or_batch(length, batch, seed):
    for oddity in ("cache forgets after 24", "cache mixes rows of eight"):
        loaded = load(odd(oddity))
        vectors = random_vectors(loaded, batch, 2, seed=seed)
        expected = greedy_batch(_without_cache(loaded), vectors, length)
        assert torch.equal(greedy_batch(loaded, vectors, length), expected)


def test_a_copy_in_another_format_is_compared_by_itself():
    from lmreach.models.search_copy import twin

    loaded = loaded_tiny("llama")
    greedy(loaded, random_vectors(loaded, 2), 9)
    assert loaded.cache_record.lengths
    assert not twin(loaded, torch.bfloat16).cache_record.lengths
