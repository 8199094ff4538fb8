"""Usable ids, control tokens, and text that does not come back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from lmreach.errors import InputError
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer
from lmreach.models.tokens import _byte_alphabet


@pytest.fixture(scope="module")
def padded():
    """128 rows, 100 of them known to the tokenizer."""
    return load(tiny("llama", vocab_size=128), tokenizer=tiny_tokenizer(100))


@pytest.fixture(scope="module")
def wide():
    return load(tiny("llama", vocab_size=400), tokenizer=tiny_tokenizer(400, bos=True))


def test_padded_rows_are_told_apart_from_usable_ones(padded):
    facts = padded.facts
    assert (facts.rows, facts.usable) == (128, 100)
    assert any("128 rows, 100 usable" in note for note in facts.notes)
    assert padded.usable_ids.tolist() == list(range(100))
    assert padded.plain_ids.tolist() == list(range(2, 100))


@pytest.mark.parametrize(("wrong", "kind"), [(120, "a padded row"), (128, "outside"), (-1, "outside")])
def test_ids_no_token_has_are_refused_by_name(padded, wrong, kind):
    with pytest.raises(InputError, match=rf"128 rows, 100 usable\); got id {wrong}, {kind}"):
        padded.check_ids([3, wrong])
    assert padded.check_ids([3, 99]).tolist() == [3, 99]


def test_ids_without_text_are_shown_as_numbers(padded):
    assert padded.text([2, 120, 3, 999]) == "a⟨120⟩b⟨999⟩"
    assert not padded.round_trips([2, 120])


def test_a_tokenizer_with_more_ids_than_rows():
    loaded = load(tiny("llama"), tokenizer=tiny_tokenizer(80))
    assert (loaded.facts.rows, loaded.facts.usable) == (64, 64)


@pytest.mark.parametrize("text", [" !", "hello !", "  two leading", "tab\tand\nline"])
def test_plain_text_comes_back(wide, text):
    ids = wide.encode(text)
    assert wide.round_trips(ids)
    assert wide.text(ids) == text.replace("\t", "\\t").replace("\n", "\\n")


def test_half_an_emoji_is_shown_as_bytes_and_flagged(wide):
    ids = wide.encode("a😀b")
    assert wide.text(ids) == "a😀b"
    assert wide.round_trips(ids)
    half = [*ids[:3], ids[-1]]
    assert wide.text(half) == r"a\xf0\x9fb"
    assert not wide.round_trips(half)


def test_words_that_read_back_as_other_ids_are_flagged(wide):
    pair = wide.encode(" ab")
    assert len(pair) == 1  # one token for the whole word
    apart = [*wide.encode(" "), *wide.encode("a"), *wide.encode("b")]
    assert wide.text(apart) == " ab"
    assert not wide.round_trips(apart)


def test_byte_tokens_of_the_other_kind_are_shown_as_bytes():
    vocabulary = {"<unk>": 0, "a": 1, "<0xF0>": 2, "<0x9F>": 3, "▁b": 4}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, unk_token="<unk>"))
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    loaded = load(tiny("llama"), tokenizer=PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>"))
    assert loaded.text([1, 2, 3, 4]) == r"a\xf0\x9f b"
    assert loaded.facts.usable == 5


def test_no_start_token_is_added_and_its_name_is_only_text(wide):
    assert wide.facts.bos_id == 0
    assert 0 not in wide.encode("ab")
    assert 0 not in wide.encode("<s>ab")
    assert wide.encode("<s>ab", special=True).tolist()[0] == 0
    assert wide.text([0, 2]) == "<s>a"
    assert wide.round_trips([0, 2])


def test_without_a_tokenizer_ids_are_shown_and_text_is_refused():
    loaded = load(tiny("llama"))
    assert loaded.text([3, 4]) == "⟨3⟩ ⟨4⟩"
    assert not loaded.round_trips([3])
    with pytest.raises(InputError, match="expected a tokenizer to read text with"):
        loaded.encode("x")


def test_an_empty_list_of_ids_is_empty_text(wide):
    assert wide.text([]) == ""
    assert wide.encode("").shape == (0,)


@settings(max_examples=60, deadline=None)
@given(ids=st.lists(st.integers(-3, 420), max_size=12))
def test_any_ids_have_a_printable_line(wide, ids):
    shown = wide.text(torch.tensor(ids, dtype=torch.int64))
    assert shown.isprintable()
    assert (shown == "") == (ids == [])
    assert isinstance(wide.round_trips(ids), bool)


def test_the_byte_alphabet_is_the_tokenizers_own():
    from tokenizers.pre_tokenizers import ByteLevel

    assert set(_byte_alphabet()) == set(ByteLevel.alphabet())
    assert sorted(_byte_alphabet().values()) == list(range(256))


@pytest.mark.parametrize("size", [4, 64, 300, 1000])
def test_tiny_tokenizers_have_exactly_the_size_asked_for(size):
    assert len(tiny_tokenizer(size).get_vocab()) == size


def test_a_tokenizer_too_small_is_refused():
    with pytest.raises(InputError, match="at least 4; got 3"):
        tiny_tokenizer(3)
