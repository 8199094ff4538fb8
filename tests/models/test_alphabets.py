"""Text outside a tokenizer's alphabet is refused in one line, never dropped; text inside it is read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.models import tokens
from lmreach.models.frame import frame_of
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer
from tests.models.alphabets import AMINO_ACIDS, amino_acids, digits


@given(st.text(AMINO_ACIDS, min_size=1, max_size=30))
def test_a_text_of_the_own_alphabet_is_read_whole(text: str) -> None:
    tokenizer = amino_acids()
    ids = tokens.encode(tokenizer, text, special=False)
    assert "".join(tokenizer.convert_ids_to_tokens(ids.tolist())) == text


@pytest.mark.parametrize(
    ("tokenizer", "text", "said"),
    [
        (amino_acids(), "ACDB", "'B' has no token"),
        (amino_acids(), "The capital of France is", "'h' has no token"),
        (digits(), "12 tulips", "tulips"),
        (digits(unknown=True), "12 t", "'t' becomes <unk>"),
    ],
)
def test_a_text_of_another_alphabet_is_refused(tokenizer, text: str, said: str) -> None:
    with pytest.raises(InputError, match="of which the tokenizer has every character") as raised:
        tokens.encode(tokenizer, text, special=False)
    assert "\n" not in str(raised.value)
    assert said in str(raised.value) or "UNK" in str(raised.value)


def test_spaces_that_a_tokenizer_leaves_out_are_no_loss() -> None:
    assert tokens.encode(digits(), "1 2\n3", special=False).tolist() == [2, 3, 4]


def test_marks_in_the_middle_of_a_text_are_no_loss() -> None:
    assert tokens.encode(amino_acids(), "AC\ufeffDE \u200bFG", special=False).tolist() == [1, 2, 3, 4, 5, 6]


def test_any_text_is_read_by_a_tokenizer_of_bytes() -> None:
    tokenizer = tiny_tokenizer(300)
    for text in ("", " ", "the sea", "é", "日本", "\u200b", "<s>"):
        ids = tokens.encode(tokenizer, text, special=False)
        assert tokenizer.decode(ids.tolist(), clean_up_tokenization_spaces=False) == text


@pytest.fixture(scope="module")
def protein():
    return load(tiny("llama", vocab_size=21), tokenizer=amino_acids())


def test_single_ids_and_frames(protein) -> None:
    assert protein.single_id("A") == 1
    assert protein.single_id("AC") is protein.single_id("b") is None
    assert frame_of(protein, prefix="ACD").before == (1, 2, 3)
    with pytest.raises(InputError, match=re.escape("'x' has no token")):
        frame_of(protein, prefix="x")
    assert not protein.round_trips([0, 99])


def test_a_long_text_says_nothing_of_lengths(capfd: pytest.CaptureFixture[str]) -> None:
    tokenizer = tiny_tokenizer(100)
    tokenizer.model_max_length = 8
    assert tokens.encode(tokenizer, "the sea is calm tonight", special=False).size > 8
    assert capfd.readouterr() == ("", "")
