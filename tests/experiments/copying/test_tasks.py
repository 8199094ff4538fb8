"""Copy tasks: what a question is, that packed contexts hold whole ones, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.experiments.copying.tasks import IGNORED, TASKS, CopyTask, check_fit, check_targets


def occurrences(string: list[int], gram: list[int]) -> list[int]:
    n = len(gram)
    return [k for k in range(len(string) - n + 1) if string[k : k + n] == gram]


def parse(task: CopyTask, ids: list[int]) -> tuple[list[int], list[int], int]:
    """Read one question from the front of ``ids``, slowly: prompt, answer, what is left."""
    assert ids[0] == task.start
    stop = ids.index(task.end)
    whole = ids[: stop + 1]
    marks = [k for k, i in enumerate(whole) if i == task.separator]
    split = marks[0] + 1 + task.n if task.name == "suffix_ngram" else marks[-1] + 1
    return whole[:split], whole[split:], stop + 1


def check_question(task: CopyTask, prompt: list[int], answer: list[int]) -> int:
    """Check a question against the definition of its task; return its string's length."""
    n, sep = task.n, task.separator
    assert prompt[0] == task.start
    assert answer[-1] == task.end
    letters = set(task.symbols.tolist())
    inner = prompt[1:]
    if task.name in ("copy", "duplicate_ngram"):
        string = inner[:-1]
        assert inner[-1] == sep
        assert answer[:-1] == string
        if task.name == "duplicate_ngram":
            grams = [string[k : k + n] for k in range(len(string) - n + 1)]
            assert any(grams[j] == g for k, g in enumerate(grams) for j in range(k + n, len(grams)))
    else:
        if task.name == "prefix_ngram":
            gram, string = inner[:n], inner[n + 1 : -1]
            assert inner[n] == inner[-1] == sep
        else:
            string, gram = inner[: -n - 1], inner[-n:]
            assert inner[-n - 1] == sep
        (place,) = occurrences(string, gram)
        assert answer[:-1] == string[place + n :]
        assert len(answer) > 1
    assert set(string) <= letters
    return len(string)


@given(
    name=st.sampled_from(TASKS),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 4),
    extra=st.integers(0, 30),
    shifted=st.booleans(),
)
def test_examples_are_what_the_task_says(name: str, seed: int, n: int, extra: int, shifted: bool) -> None:
    ids = tuple(range(100, 130)) if shifted else None
    task = CopyTask(name, 26, n, ids=ids)
    length = task.least + (extra if n > 1 else min(extra, 6))
    prompt, answer = task.example(np.random.default_rng(seed), length)
    assert check_question(task, prompt.tolist(), answer.tolist()) == length
    assert len(prompt) + len(answer) <= task.positions(length)


@pytest.mark.parametrize("name", TASKS)
def test_a_context_is_packed_with_whole_questions(name: str, rng: np.random.Generator) -> None:
    task = CopyTask(name, 26, 2)
    ids, labels = task.batch(rng, 16, 90, task.least, 12)
    assert ids.shape == labels.shape == (16, 90)
    for row, label in zip(ids.tolist(), labels.tolist(), strict=True):
        at = 0
        while at < len(row) and row[at] == task.start:
            prompt, answer, size = parse(task, row[at:])
            assert task.least <= check_question(task, prompt, answer) <= 12
            assert label[at : at + size] == [IGNORED] * len(prompt) + answer
            at += size
        assert at > 0
        assert row[at:] == [task.pad] * (len(row) - at)
        assert label[at:] == [IGNORED] * (len(row) - at)


def test_lengths_are_uniform_where_a_context_holds_one(rng: np.random.Generator) -> None:
    task = CopyTask()
    ids, _ = task.batch(rng, 4000, 2 * 8 + 3, 5, 8)
    sizes = (ids == task.end).argmax(axis=1) + 1
    counts = np.bincount((sizes - 3) // 2, minlength=9)[5:]
    assert counts.sum() == 4000
    assert (np.abs(counts - 1000) < 5 * np.sqrt(1000)).all()


def test_every_place_of_a_duplicate_is_used(rng: np.random.Generator) -> None:
    task = CopyTask("duplicate_ngram", 26, 2)
    seen = set()
    for _ in range(400):
        string = task.example(rng, 6)[1][:-1].tolist()
        seen |= {(i, j) for i in range(5) for j in range(i + 2, 5) if string[i : i + 2] == string[j : j + 2]}
    assert seen == {(i, j) for i in range(5) for j in range(i + 2, 5)}


def test_the_same_seed_gives_the_same_strings() -> None:
    task = CopyTask("suffix_ngram", n=2)
    one, two = (task.batch(np.random.default_rng(5), 4, 60, 3, 9) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, two, strict=True))


def test_letters_in_use_and_their_ids() -> None:
    """B24: strings of p-z for a model trained on a-p keep the model's ids."""
    trained = CopyTask(letters=tuple(range(16)))
    other = trained.with_letters(tuple(range(15, 26)))
    assert trained.symbols.tolist() == list(range(16))
    assert other.symbols.tolist() == list(range(15, 26))
    assert len(set(other.symbols.tolist()) - set(trained.symbols.tolist())) == 10
    assert (other.start, other.separator, other.end, other.pad) == (26, 27, 28, 29)
    prompt, _ = other.example(np.random.default_rng(0), 40)
    assert set(prompt[1:-1].tolist()) <= set(range(15, 26))


def test_text_shows_letters_and_marks() -> None:
    task = CopyTask(ids=tuple(range(10, 40)))
    prompt, answer = task.example(np.random.default_rng(0), 2)
    assert task.text(prompt).startswith("<start>")
    assert task.text(answer).endswith("<end>")
    assert task.text([10, 35, 99]) == "az⟨99⟩"


def test_what_cannot_be_asked_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(InputError, match=r"one of copy, .*'paste'"):
        CopyTask("paste")
    with pytest.raises(InputError, match="30 different ids; got 29"):
        CopyTask(ids=(1, *range(1, 30)))
    with pytest.raises(InputError, match="letters below 26"):
        CopyTask(letters=(30,))
    with pytest.raises(InputError, match="at least 4 letters for prefix_ngram with n = 3; got 3"):
        CopyTask("prefix_ngram").example(rng, 3)
    with pytest.raises(InputError, match="some 1-gram stands once"):
        CopyTask("suffix_ngram", 2, 1).example(rng, 200)


def test_a_string_that_does_not_fit_is_refused_before_training(rng: np.random.Generator) -> None:
    """B25: the string of 20 letters and the 16 positions are both named."""
    with pytest.raises(InputError, match=r"43 positions for strings of 20 letters \(copy\); got .* 16;"):
        CopyTask().batch(rng, 4, 16, 1, 20)
    check_fit(CopyTask(), 20, 43)


def test_labels_that_are_all_masked_are_refused() -> None:
    labels = np.full((64, 16), IGNORED)
    labels[:, 0] = 3  # nothing predicts the first token
    with pytest.raises(InputError, match="0 of 64 samples keep a target"):
        check_targets(labels)
    labels[5, 1] = 3
    check_targets(labels)
