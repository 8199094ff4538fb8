"""Greedy decoding as the judge, its batch form, and sampling."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError, ModelError
from lmreach.models import decode
from lmreach.models.decode import emitted_prefix, greedy, greedy_batch, sample
from lmreach.models.frame import frame_of, framed
from lmreach.models.load import load
from lmreach.models.tiny import tiny
from tests.models.common import loaded_tiny, random_vectors


@pytest.fixture(scope="module")
def llama():
    return loaded_tiny("llama", tokenizer=True)


def test_generation_settings_of_a_checkpoint_change_nothing(tmp_path):
    """Sampling, a penalty and a forced end id come with the folder; ten decodes are plain argmax."""
    model = tiny("llama")
    vectors = random_vectors(load(tiny("llama")), 2)
    plain = greedy(load(model), vectors, 8).ids
    model.save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(
        '{"do_sample": true, "temperature": 0.6, "top_k": 20,'
        ' "repetition_penalty": 1.05, "forced_eos_token_id": 1}'
    )
    loaded = load(tmp_path)
    notes = [note for note in loaded.facts.notes if "generation settings" in note]
    assert len(notes) == 1
    assert "repetition_penalty" in notes[0]
    for _ in range(10):
        assert greedy(loaded, vectors, 8).ids.tolist() == plain.tolist()


def test_decoding_goes_on_past_the_end_id():
    model = tiny("llama")
    loaded = load(model)
    vectors = random_vectors(loaded, 2)
    third = int(greedy(loaded, vectors, 6).ids[2])
    ending = load(model)
    ending = dataclasses.replace(ending, facts=dataclasses.replace(ending.facts, eos_id=third))
    model.generation_config.eos_token_id = third
    decoded = greedy(ending, vectors, 6)
    assert len(decoded.ids) == len(decoded.gaps) == 6
    assert decoded.ids[2] == third
    assert emitted_prefix(ending, vectors, decoded.ids).reach == 6


def test_the_longest_prefix_is_counted_from_the_first_id(llama):
    vectors = random_vectors(llama, 3)
    decoded = greedy(llama, vectors, 7)
    whole = emitted_prefix(llama, vectors, decoded.ids)
    assert (whole.reach, whole.smallest_gap) == (7, pytest.approx(decoded.smallest_gap))
    for wrong in range(7):
        target = decoded.ids.copy()
        target[wrong] = (target[wrong] + 1) % 64
        emission = emitted_prefix(llama, vectors, target)
        assert emission.reach == wrong
        gap = emission.smallest_gap
        assert gap is None if wrong == 0 else gap == pytest.approx(decoded.gaps[:wrong].min())


def test_a_mismatch_ends_the_decode(llama, monkeypatch):
    passes = []
    original = decode.Steps._next
    monkeypatch.setattr(decode.Steps, "_next", lambda self, v: passes.append(1) or original(self, v))
    vectors = random_vectors(llama, 3)
    target = greedy(llama, vectors, 9).ids
    target[4] = (target[4] + 1) % 64
    passes.clear()
    assert emitted_prefix(llama, vectors, target).reach == 4
    assert len(passes) == 5


def test_a_tie_is_gap_zero_and_not_reached():
    model = tiny("llama")
    twin = load(model)
    vectors = random_vectors(twin, 2)
    first = int(greedy(twin, vectors, 1).ids[0])
    other = (first + 1) % 64
    with torch.no_grad():
        model.lm_head.weight[other] = model.lm_head.weight[first]
    decoded = greedy(twin, vectors, 1)
    assert decoded.ids[0] == min(first, other)
    assert decoded.smallest_gap == 0
    assert emitted_prefix(twin, vectors, decoded.ids).reach == 0


def test_all_rows_take_part_not_only_usable_ones():
    loaded = load(tiny("llama"))
    vectors = random_vectors(loaded, 2)
    with torch.no_grad():
        hidden = loaded.hidden(vectors[None])[0, -1]
        loaded.model.lm_head.weight[63] = (
            100 * hidden
        )  # the strongest answer, though unknown to the tokenizer
    padded = dataclasses.replace(loaded, usable_ids=np.arange(60))
    assert greedy(padded, vectors, 1).ids[0] == 63


def test_a_batch_gives_what_single_rows_give(llama):
    vectors = random_vectors(llama, 8, 4)
    batch = greedy_batch(llama, vectors, 10)
    assert batch.tolist() == [greedy(llama, row, 10).ids.tolist() for row in vectors]


def test_start_tokens_stand_where_they_are_asked_for(llama):
    vectors = random_vectors(llama, 3)[None]
    start = llama.input_vectors(torch.tensor([0]))[0]
    found = {
        bos: [
            k for k, v in enumerate(framed(llama, vectors, frame_of(llama, bos))[0]) if torch.equal(v, start)
        ]
        for bos in ("none", "before", "after")
    }
    assert found == {"none": [], "before": [0], "after": [3]}
    lengths = {bos: framed(llama, vectors, frame_of(llama, bos)).shape[1] for bos in found}
    assert lengths == {"none": 3, "before": 4, "after": 4}


def test_start_tokens_change_the_decode_as_if_they_were_a_vector(llama):
    vectors = random_vectors(llama, 3)
    start = llama.input_vectors(torch.tensor([0]))
    for bos, by_hand in (("before", [start, vectors]), ("after", [vectors, start])):
        assert (
            greedy(llama, vectors, 5, frame=frame_of(llama, bos)).ids.tolist()
            == greedy(llama, torch.cat(by_hand), 5).ids.tolist()
        )


def test_a_start_token_that_does_not_exist_is_refused():
    loaded = loaded_tiny("llama", bos_token_id=None)
    with pytest.raises(InputError, match="expected a start token for bos=before"):
        greedy(loaded, random_vectors(loaded, 2), 3, frame=frame_of(loaded, "before"))


@pytest.mark.parametrize(
    ("m", "n", "words"),
    [
        (1, 0, "m and n of at least 1"),
        (0, 1, "m and n of at least 1"),
        (65, 64, "at most 128 positions.*65 \\+ 64 = 129"),
    ],
)
def test_impossible_lengths_are_refused_before_the_first_step(llama, m, n, words):
    with pytest.raises(InputError, match=words):
        greedy(llama, torch.ones(m, 32), n)


def test_the_longest_allowed_sequence_fits(llama):
    assert len(greedy(llama, random_vectors(llama, 100), 28).ids) == 28


def test_vectors_that_cannot_be_are_refused(llama):
    with pytest.raises(InputError, match="vectors of width 32; got 31"):
        greedy(llama, torch.ones(2, 31), 1)
    with pytest.raises(InputError, match="finite vectors"):
        greedy(llama, torch.full((2, 32), torch.nan), 1)


def test_logits_that_are_not_finite_end_a_decode_but_not_a_check():
    model = tiny("llama")
    loaded = load(model)
    vectors = random_vectors(loaded, 2)
    with torch.no_grad():
        model.lm_head.weight[5] = torch.inf
    with pytest.raises(ModelError, match="expected finite logits; got none at step 1 of 3"):
        greedy(loaded, vectors, 3)
    assert emitted_prefix(loaded, vectors, np.array([5])) == decode.Emission(0, None)


@pytest.mark.parametrize("bos_id", [0, None])
def test_samples_hold_allowed_ids_only_and_repeat_with_the_seed(bos_id):
    loaded = loaded_tiny("llama", bos_token_id=bos_id)

    def draw(seed):
        return sample(
            loaded, torch.empty(50, 0, dtype=torch.int64), 4, generator=torch.Generator().manual_seed(seed)
        )

    ids = draw(0)
    assert ids.shape == (50, 4)
    assert not set(ids.flatten().tolist()) & set(loaded.facts.special_ids)
    assert torch.equal(ids, draw(0))
    assert not torch.equal(ids, draw(1))


def test_samples_follow_the_models_probabilities(llama):
    """One step, 4000 draws: each id's count within 5 standard errors of its probability."""
    count = 4000
    prompts = torch.tensor([[7, 9]]).expand(count, 2)
    drawn = sample(llama, prompts, 1, generator=torch.Generator().manual_seed(0), temperature=0.7)[:, 0]
    with torch.no_grad():
        logits = llama.logits(llama.input_vectors(prompts[:1]))[0, -1] / 0.7
    logits[[0, 1]] = -torch.inf
    p = logits.softmax(-1)
    error = (p * (1 - p) / count).sqrt()
    assert ((torch.bincount(drawn, minlength=64) / count - p).abs() <= 5 * error + 1e-12).all()


def test_a_low_temperature_sample_is_the_greedy_decode(llama):
    prompts = torch.tensor([[7, 9], [8, 30]])
    got = sample(
        llama,
        prompts,
        5,
        generator=torch.Generator().manual_seed(0),
        temperature=1e-4,
        allowed=np.ones(64, bool),
    )
    assert torch.equal(got, greedy_batch(llama, llama.input_vectors(prompts), 5))


def test_a_temperature_of_zero_is_refused(llama):
    with pytest.raises(InputError, match="temperature above 0"):
        sample(llama, torch.tensor([[7]]), 1, generator=torch.Generator(), temperature=0.0)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), m=st.integers(1, 5), n=st.integers(1, 12))
def test_a_decode_emits_itself_and_all_its_beginnings(llama, seed, m, n):
    vectors = random_vectors(llama, m, seed=seed)
    ids = greedy(llama, vectors, n).ids
    assert emitted_prefix(llama, vectors, ids).reach == n
    assert greedy(llama, vectors, max(1, n // 2)).ids.tolist() == ids[: max(1, n // 2)].tolist()


def test_mamba_prompts_of_two_lengths_do_not_leak_into_each_other():
    loaded = loaded_tiny("mamba")
    short, long = random_vectors(loaded, 2), random_vectors(loaded, 5, seed=1)
    batch = torch.stack([torch.cat([short, 9 * torch.ones(3, 32)]), long])
    with torch.no_grad():
        together = loaded.logits(batch)
        torch.testing.assert_close(together[0, :2], loaded.logits(short[None])[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(together[1], loaded.logits(long[None])[0], atol=1e-4, rtol=1e-4)
    with_cache = greedy(loaded, long, 16)
    without = greedy(
        dataclasses.replace(loaded, facts=dataclasses.replace(loaded.facts, cache_ok=False)), long, 16
    )
    assert (with_cache.used_cache, without.used_cache) == (True, False)
    assert with_cache.ids.tolist() == without.ids.tolist()
    np.testing.assert_allclose(with_cache.gaps, without.gaps, atol=1e-4)


def test_16_bit_decodes_are_judged_at_batch_one():
    """Whatever a batch of eight says in bfloat16, the judge decodes each row alone and repeats itself."""
    loaded = load(tiny("llama").to(torch.bfloat16))
    vectors = random_vectors(loaded, 8, 4)
    for row in vectors:
        first = greedy(loaded, row, 16)
        assert emitted_prefix(loaded, row, first.ids).reach == (
            16 if first.smallest_gap > 0 else np.argmin(first.gaps)
        )
