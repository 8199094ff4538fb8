"""Targets: extending or adding strings changes none drawn before; bad files are refused in one line."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.config.targets import TargetKind, labels
from lmreach.errors import InputError
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer


@pytest.mark.parametrize("kind", ["random", "self"])
@given(strings=st.integers(1, 10), n=st.integers(1, 12), seed=st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_asking_for_more_extends(random_model, kind: str, strings: int, n: int, seed: int) -> None:
    small = draw(random_model, kind, strings, n, seed=seed).ids
    large = draw(random_model, kind, strings + 3, n + 5, seed=seed).ids
    assert small.shape == (strings, n)
    np.testing.assert_array_equal(small, large[:strings, :n])


def test_seeds_and_kinds_differ(random_model) -> None:
    draws = [draw(random_model, kind, 4, 16, seed=s).ids for kind in ("random", "self") for s in (0, 1)]
    assert len({ids.tobytes() for ids in draws}) == 4


def test_random_targets_are_uniform_over_usable_ids(random_model) -> None:
    """Chi-square over 512 ids with a fixed seed: within four standard deviations of its mean."""
    ids = draw(random_model, "random", 64, 400, seed=5).ids
    counts = np.bincount(ids.ravel(), minlength=512)
    expected = ids.size / 512
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi2 - 511) < 4 * np.sqrt(2 * 511)


def test_padded_and_special_rows_are_never_drawn() -> None:
    """A head of 128 rows and a tokenizer of 100 ids: nothing of 100 or more is drawn."""
    model = load(tiny("llama", vocab_size=128), tokenizer=tiny_tokenizer(100))
    for kind in ("random", "self"):
        ids = draw(model, kind, 16, 20, seed=0).ids
        assert ids.max() < 100
        assert not np.isin(ids, model.facts.special_ids).any()


@pytest.fixture(scope="module")
def speaking():
    return load(tiny("llama", vocab_size=128), tokenizer=tiny_tokenizer(100))


def test_text_is_cut_into_whole_strings(speaking, tmp_path: Path) -> None:
    path = tmp_path / "verse.txt"
    path.write_text("the sea is calm tonight " * 40, encoding="utf-8")
    ids = speaking.encode(path.read_text(encoding="utf-8"))
    found = draw(speaking, f"text:{path}", 3, 7, seed=0)
    assert found.kind == "text:verse.txt"
    np.testing.assert_array_equal(found.ids.ravel(), ids[:21])


def test_ids_files_take_spaces_and_commas(random_model, tmp_path: Path) -> None:
    path = tmp_path / "a.ids"
    path.write_text("1 2 3 4\n\n5,6,7,8\n", encoding="utf-8")
    assert draw(random_model, f"ids:{path}", 2, 3, seed=0).ids.tolist() == [[1, 2, 3], [5, 6, 7]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("1 2 x", "whole numbers"),
        ("1 2", "at least 3 ids"),
        ("1 2 512", "id 512"),
        ("1 2 -1", "id -1"),
    ],
)
def test_bad_ids_files_are_refused(random_model, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "a.ids"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        draw(random_model, f"ids:{path}", 1, 3, seed=0)


def test_what_cannot_be_drawn_is_refused(random_model, speaking, tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("the sea", encoding="utf-8")
    binary = tmp_path / "b.txt"
    binary.write_bytes(b"abc\xff\xfe")
    for model, kind, words in [
        (random_model, "randm", "random, self, words"),
        (random_model, f"ids:{tmp_path / 'none'}", "no file"),
        (random_model, f"text:{short}", "tokenizer"),
        (speaking, f"text:{short}", "at least 4 x 50"),
        (speaking, f"text:{binary}", "UTF-8"),
    ]:
        with pytest.raises(InputError, match=words):
            draw(model, kind, 4, 50, seed=0)
    with pytest.raises(InputError, match="at least 1"):
        draw(random_model, "random", 0, 5, seed=0)


def word_list(folder: Path) -> Path:
    path = folder / "list.txt"
    path.write_text("sea\ncalm\n\ntonight\ntide\nsea\n", encoding="utf-8")
    return path


@given(strings=st.integers(1, 5), n=st.integers(1, 12), seed=st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_words_are_drawn_from_the_list_and_asking_for_more_extends(
    speaking, tmp_path_factory, strings: int, n: int, seed: int
) -> None:
    kind = f"words:{word_list(tmp_path_factory.mktemp('words'))}"
    small = draw(speaking, kind, strings, n, seed=seed)
    large = draw(speaking, kind, strings + 2, n + 7, seed=seed)
    assert small.kind == "words:list.txt"
    np.testing.assert_array_equal(small.ids, large.ids[:strings, :n])
    text = speaking.tokenizer.decode(large.ids[0])
    assert set("".join(text.split())) <= set("seacalmtonighttide")


def test_without_a_word_list_a_file_is_asked_for(speaking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmreach.experiments.targets.files._WORD_LISTS", ())
    with pytest.raises(InputError, match="words:FILE"):
        draw(speaking, "words", 2, 3, seed=0)


def test_a_dataset_gives_its_rows_that_are_long_enough(speaking, tmp_path: Path) -> None:
    lines = ['{"text": "sea"}', '{"text": "the sea is calm tonight"}', '{"text": "the tide is full tonight"}']
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = draw(speaking, f"dataset:{tmp_path / 'data'}", 2, 5, seed=0)
    assert found.kind == "dataset:data"
    for row, text in zip(found.ids, ("the sea is calm tonight", "the tide is full tonight"), strict=True):
        np.testing.assert_array_equal(row, speaking.encode(text)[:5])
    with pytest.raises(InputError, match=r"3 rows of at least 5.*1 shorter"):
        draw(speaking, f"dataset:{tmp_path / 'data'}", 3, 5, seed=0)
    with pytest.raises(InputError, match="column 'body'"):
        draw(speaking, f"dataset:{tmp_path / 'data'}:train:body", 1, 5, seed=0)
    with pytest.raises(InputError, match="split 'other'"):
        draw(speaking, f"dataset:{tmp_path / 'data'}:other", 1, 5, seed=0)


def test_without_the_extra_a_dataset_is_refused_in_one_line(
    speaking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"lmreach\[data\]"):
        draw(speaking, "dataset:anything", 1, 5, seed=0)


@pytest.mark.parametrize(
    ("word", "content"),
    [("text", "the sea is calm tonight"), ("words", "sea\ncalm\n"), ("ids", "1 2 3 4 5\n")],
)
def test_a_byte_order_mark_is_no_part_of_a_target(speaking, tmp_path: Path, word: str, content: str) -> None:
    plain, marked = tmp_path / "plain.txt", tmp_path / "marked.txt"
    plain.write_bytes(content.encode())
    marked.write_bytes(b"\xef\xbb\xbf" + content.encode())
    first, second = (draw(speaking, f"{word}:{path}", 1, 4, seed=0).ids for path in (plain, marked))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 2 3\n\n\n4 5 x\n", "'x' in line 4 of 'a.ids'"),
        ("1 2 3\r\n\r\n4 -5 6\r\n", "id -5 in line 3 of 'a.ids'"),
        ("1 2 3\n4 512 6\n", "id 512 in line 2 of 'a.ids'"),
        ("1 2 3\n4 5 12345678901234567890\n", "'12345678901234567890' in line 2"),
        ("1 2 3\n1_0 5 6\n", "'1_0' in line 2"),
        ("1 2 3\n4 5 6.0\n", "'6.0' in line 2"),
        ("1 2 3\n[4, 5, 6]\n", "'[4' in line 2"),
        ("1 2 3\n4 5 ３\n", "'３' in line 2"),
    ],
)
def test_a_bad_id_is_named_with_its_line_in_the_file(
    random_model, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "a.ids"
    path.write_bytes(content.encode())
    with pytest.raises(InputError, match=re.escape(said)):
        draw(random_model, f"ids:{path}", 2, 3, seed=0)


def test_a_line_of_a_million_ids_is_cut(random_model, tmp_path: Path) -> None:
    path = tmp_path / "a.ids"
    path.write_text(",\t".join(str(k % 512) for k in range(1_000_000)), encoding="utf-8")
    assert draw(random_model, f"ids:{path}", 1, 3, seed=0).ids.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("random", "random"),
        ("words", "words"),
        ("text:/a/b/my notes.txt", "text:my notes.txt"),
        ("ids:c/d.ids", "ids:d.ids"),
        ("words:../w.txt", "words:w.txt"),
        ("dataset:/a/b:train:body", "dataset:b:train:body"),
        ("dataset:org/name:test", "dataset:org/name:test"),
    ],
)
def test_a_label_names_a_file_without_its_path(kind: str, label: str) -> None:
    assert TargetKind.parse(kind).label == label


@pytest.mark.parametrize("kind", ["", "foo", "text", "text:", "ids:", "random:3", "self:", "words:"])
def test_other_kinds_are_refused(kind: str) -> None:
    with pytest.raises(InputError, match="random, self, words"):
        TargetKind.parse(kind)


def test_two_files_of_one_name_are_refused() -> None:
    assert labels(["text:/a/x.txt", "random", "text:/a/x.txt"]) == {
        "text:x.txt": "text:/a/x.txt",
        "random": "random",
    }
    with pytest.raises(InputError, match=r"two files of the name 'x\.txt'"):
        labels(["text:/a/x.txt", "text:/b/x.txt"])
