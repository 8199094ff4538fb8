"""Target strings that come from files: texts, lists of ids, word lists and datasets."""

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from lmreach.config.written import ids_of
from lmreach.errors import InputError, problem
from lmreach.models.loaded import LoadedModel

# Where systems keep their word list.
_WORD_LISTS = ("/usr/share/dict/words", "/usr/dict/words")
_WORDS_AT_ONCE = 64


def read(path: Path, word: str) -> str:
    """Return the text of a file of targets.

    Raises
    ------
    InputError
        No file, not UTF-8, or nothing in it.
    """
    if not path.is_file():
        raise InputError(problem(f"a file after {word}:", f"'{path}', which is no file", "check the path"))
    content = text_of(path)
    if not content.strip():
        raise InputError(problem("a file with content", f"'{path}', which is empty", "put targets into it"))
    return content


def text_of(path: Path) -> str:
    """Return the text of a UTF-8 file without the byte order mark that some editors put first.

    Raises
    ------
    InputError
        It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            problem("a UTF-8 text file", f"'{path}' with a bad byte at {error.start}", "convert it to UTF-8")
        ) from error
    except OSError as error:
        raise InputError(
            problem("a file that can be read", f"'{path}': {error.strerror}", "check the path")
        ) from error


def cut_text(
    model: LoadedModel, content: str, name: str, strings: int, n: int
) -> Int[np.ndarray, "strings n"]:
    """Cut a text into consecutive strings of n ids; one too short is an error, not a shorter string."""
    ids = model.encode(content)
    if ids.size < strings * n:
        raise InputError(
            problem(
                f"a text of at least {strings} x {n} = {strings * n} ids",
                f"'{name}' with {ids.size}",
                "give a longer text, or lower --strings or --n-max",
            )
        )
    return model.check_ids(ids[: strings * n]).reshape(strings, n)


def cut_ids(
    model: LoadedModel, content: str, name: str, strings: int, n: int
) -> Int[np.ndarray, "strings n"]:
    """Read one string per line, ids separated by spaces or commas; each line is cut to n ids."""
    lines = lines_of_ids(content)
    if len(lines) < strings:
        raise InputError(
            problem(
                f"{strings} lines of ids", f"'{name}' with {len(lines)}", f"lower --strings to {len(lines)}"
            )
        )
    return np.stack([_cut_line(model, line, name, number, n) for number, line in lines[:strings]])


def lines_of_ids(content: str) -> list[tuple[int, str]]:
    """Return the lines that hold something, each with its number in the file (from 1)."""
    return [
        (number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip(", \t\r")
    ]


def ids_of_line(model: LoadedModel, line: str, name: str, number: int) -> Int[np.ndarray, " n"]:
    """Return the ids of a line, each checked to be usable.

    Raises
    ------
    InputError
        Naming the id and its line.
    """
    where = f"line {number} of '{name}'"
    return model.check_ids(ids_of(line, where), where)


def _cut_line(model: LoadedModel, line: str, name: str, number: int, n: int) -> Int[np.ndarray, " n"]:
    row = ids_of_line(model, line, name, number)
    if len(row) < n:
        raise InputError(
            problem(f"at least {n} ids a line", f"{len(row)} in line {number} of '{name}'", "lower --n-max")
        )
    return row[:n]


def random_words(
    model: LoadedModel, path: Path | None, rngs: Sequence[np.random.Generator], n: int
) -> Int[np.ndarray, "strings n"]:
    """Return one string of random words per generator.

    Parameters
    ----------
    path
        One word per line; None: the system's list.

    Raises
    ------
    InputError
        No list, or a list without words.
    """
    found = path or next((Path(name) for name in _WORD_LISTS if Path(name).is_file()), None)
    if found is None:
        raise InputError(
            problem("a word list of the system", "none", "install one (package wamerican) or use words:FILE")
        )
    words = list(dict.fromkeys(line.strip() for line in read(found, "words").splitlines() if line.strip()))
    rows = [_words_to_ids(model, words, rng, n) for rng in rngs]
    return model.check_ids(np.concatenate(rows)).reshape(len(rngs), n)


def _words_to_ids(
    model: LoadedModel, words: list[str], rng: np.random.Generator, n: int
) -> Int[np.ndarray, " n"]:
    """Add words until n ids are surely settled: what follows the last word kept cannot merge into it."""
    chosen: list[str] = []
    while True:
        chosen += [words[i] for i in rng.integers(len(words), size=_WORDS_AT_ONCE)]
        settled = model.encode(" ".join(chosen[:-1]))
        if settled.size >= n:
            return settled[:n]


def from_dataset(model: LoadedModel, rest: str, strings: int, n: int) -> Int[np.ndarray, "strings n"]:
    """Take the first n ids of each row's text, rows with fewer left out and counted in the error.

    Parameters
    ----------
    rest
        ``NAME``, ``NAME:SPLIT`` or ``NAME:SPLIT:COLUMN``; split ``train`` and column ``text`` unless named.

    Raises
    ------
    InputError
        The extra is not installed, the dataset cannot be read, or it has too few rows that are long enough.
    """
    if importlib.util.find_spec("datasets") is None:
        raise InputError(
            problem(
                "the extra 'data' for dataset:NAME", "none", "pip install 'lmreach[data]' or use text:FILE"
            )
        )
    name, _, more = rest.partition(":")
    split, _, column = more.partition(":")
    kept: list[Int[np.ndarray, " n"]] = []
    short = 0
    for text in _texts(name, split or "train", column or "text"):
        ids = model.encode(text)
        if ids.size >= n:
            kept.append(ids[:n])
        else:
            short += 1
        if len(kept) == strings:
            return model.check_ids(np.concatenate(kept)).reshape(strings, n)
    got = f"{len(kept)} in '{name}' ({short} shorter)"
    raise InputError(problem(f"{strings} rows of at least {n} ids", got, "lower --strings or --n-max"))


def _texts(name: str, split: str, column: str) -> Iterator[str]:
    from datasets import load_dataset

    try:
        rows: Any = load_dataset(name, split=split, streaming=True)
        for row in rows:
            if column not in row:
                raise InputError(
                    problem(f"a column '{column}'", f"{', '.join(row)}", "name it: dataset:NAME:SPLIT:COLUMN")
                )
            yield str(row[column])
    except (OSError, ValueError, LookupError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            problem("a dataset that can be read", f"'{name}' split '{split}': {first}", "check the name")
        ) from error
