"""What stands around the vectors."""

import pytest
import torch

from lmreach.errors import InputError
from lmreach.models.frame import NO_FRAME, frame_of, framed
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer


@pytest.fixture(scope="module")
def speaking():
    return load(tiny("llama", vocab_size=128, bos_token_id=1), tokenizer=tiny_tokenizer(100))


def test_texts_and_start_token_stand_in_their_order(speaking) -> None:
    word, other = speaking.encode("the sea").tolist(), speaking.encode("calm").tolist()
    start = speaking.facts.bos_id
    before = frame_of(speaking, "before", "the sea", "calm")
    after = frame_of(speaking, "after", "the sea", "calm")
    assert (list(before.before), list(before.after)) == ([start, *word], other)
    assert (list(after.before), list(after.after)) == (word, [start, *other])
    assert before.length == len(word) + len(other) + 1


def test_it_becomes_vectors_around_the_vectors(speaking) -> None:
    frame = frame_of(speaking, "none", "the sea", "calm")
    vectors = torch.randn(2, 3, speaking.facts.width)
    out = framed(speaking, vectors, frame)
    k = len(frame.before)
    assert torch.equal(out[:, k : k + 3], vectors)
    for row in out:
        assert torch.equal(row[:k], speaking.input_vectors(torch.tensor(frame.before)))
        assert torch.equal(row[k + 3 :], speaking.input_vectors(torch.tensor(frame.after)))
    assert framed(speaking, vectors, NO_FRAME) is vectors


def test_what_a_model_has_none_for_is_refused(random_model) -> None:
    with pytest.raises(InputError, match="start token"):
        frame_of(random_model, "before")
    with pytest.raises(InputError, match="tokenizer"):
        frame_of(random_model, "none", "the sea")
