"""Prompts for copying: one token per symbol, the same string in every layout."""

import numpy as np
import pytest

from lmreach.errors import InputError
from lmreach.experiments.copying.prompts import (
    draw,
    in_context,
    in_context_layouts,
    letters_in,
    trained_layouts,
)
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel


@pytest.fixture(scope="module")
def verse() -> LoadedModel:
    return load("builtin:verse")


def test_letters() -> None:
    assert letters_in("") == tuple(range(26))
    assert letters_in("a-p") == tuple(range(16))
    assert letters_in("cab") == (0, 1, 2)
    assert letters_in("a-d", 4) == (0, 1, 2, 3)
    for wrong in ("p-a", "A-P", "a1", "x"):
        with pytest.raises(InputError, match="letters from a to"):
            letters_in(wrong, 16)


def test_a_model_is_asked_in_tokens_it_has(verse: LoadedModel) -> None:
    asker = in_context(verse)
    prompt, answer = asker.example(np.random.default_rng(0), 5)
    assert len(answer) == 6
    assert verse.text(prompt).startswith("Input:")
    assert np.isin(answer[:-1], asker.symbols).all()
    assert answer[-1] == asker.end
    assert asker.end not in asker.symbols
    fewer = in_context(verse, "a-c")
    assert 2 <= fewer.symbols.size <= 3
    assert set(fewer.symbols) <= set(asker.symbols)
    tokens = in_context(verse, "tokens")
    assert tokens.symbols.size > asker.symbols.size
    assert not np.isin(tokens.symbols, verse.facts.special_ids).any()


def test_layouts_change_the_prompt_and_not_the_string(verse: LoadedModel) -> None:
    layouts = in_context_layouts(verse, in_context(verse))
    assert layouts[0].name == "examples"
    answers = [[answer.tolist() for _, answer in draw(one, 9, 3, seed=4)] for one in layouts]
    assert all(found == answers[0] for found in answers)
    sizes = [len(draw(one, 9, 1, seed=4)[0][0]) for one in layouts]
    assert len(set(sizes)) == len(layouts)
    if verse.facts.bos_id is not None:
        assert all(draw(one, 9, 1, seed=4)[0][0][0] == verse.facts.bos_id for one in layouts)


def test_a_model_without_a_tokenizer_is_refused(random_model: LoadedModel) -> None:
    with pytest.raises(InputError, match="tokenizer"):
        in_context(random_model)


def test_trained_layouts(verse: LoadedModel) -> None:
    asker = in_context(verse)
    names = [one.name for one in trained_layouts(asker, pad=0, start=1, longest=16)]
    assert names == ["alone", "after examples", "padded with 16", "padded with 64", "start x 8"]
    assert len(trained_layouts(asker, pad=None, start=None, longest=1)) == 2
