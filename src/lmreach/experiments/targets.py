"""Target strings: what the vectors are asked to make the model emit.

Every kind yields strings that do not depend on how many are drawn or how long they are asked to be:
string i of kind k under seed s is a fixed sequence, and a longer request extends it. So one string
can be paired across m, and a bigger run contains the smaller one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int

from lmreach.errors import InputError, problem
from lmreach.models.decode import sample
from lmreach.models.loaded import LoadedModel

_STREAM = {"random": 1, "self": 2}


@dataclass(frozen=True, slots=True)
class Targets:
    """Target ids of one kind.

    Attributes
    ----------
    kind
        ``random``, ``self``, ``text:NAME`` or ``ids:NAME`` (the file's own name, not its path).
    ids
        Shape (strings, n).
    """

    kind: str
    ids: Int[np.ndarray, "strings n"]


def draw(model: LoadedModel, kind: str, strings: int, n: int, *, seed: int) -> Targets:
    """Return ``strings`` targets of ``n`` ids each.

    Parameters
    ----------
    kind
        ``random``: ids uniform over usable, non-special ids. ``self``: sampled from the model itself at
        temperature 1 over the same ids. ``text:FILE``: consecutive pieces of n ids of a text file.
        ``ids:FILE``: one string per line, ids separated by spaces or commas.
    seed
        Seed of the drawing; ``text`` and ``ids`` do not use it.

    Raises
    ------
    InputError
        Unknown kind, missing or empty file, ids out of range, or a text too short for what was asked:
        a shorter string is never put in place of a longer one.
    """
    if strings < 1 or n < 1:
        raise InputError(problem("strings and n of at least 1", f"{strings} and {n}", "ask for more"))
    word, _, rest = kind.partition(":")
    if word == "random" and not rest:
        return Targets(kind, _random(model, strings, n, seed))
    if word == "self" and not rest:
        return Targets(kind, _self_sampled(model, strings, n, seed))
    if word in ("text", "ids") and rest:
        path = Path(rest)
        content = _read(path, word)
        cut = _cut_text if word == "text" else _cut_ids
        return Targets(f"{word}:{path.name}", cut(model, content, path.name, strings, n))
    raise InputError(problem("targets random, self, text:FILE or ids:FILE", repr(kind), "name one of these"))


def _random(model: LoadedModel, strings: int, n: int, seed: int) -> Int[np.ndarray, "strings n"]:
    pool = model.plain_ids
    rows = [
        np.random.default_rng([seed, _STREAM["random"], i]).integers(pool.size, size=n)
        for i in range(strings)
    ]
    return pool[np.stack(rows)]


# Strings are sampled in blocks of one fixed size, so that asking for more changes nothing drawn before.
# A step of 32 rows costs hardly more than one of 8: reading a large head dominates both.
_SELF_BLOCK = 32


def _self_sampled(model: LoadedModel, strings: int, n: int, seed: int) -> Int[np.ndarray, "strings n"]:
    blocks = []
    for block in range(-(-strings // _SELF_BLOCK)):
        generator = torch.Generator().manual_seed(_block_seed(seed, block))
        prompts = torch.empty((_SELF_BLOCK, 0), dtype=torch.int64)
        blocks.append(sample(model, prompts, n, generator=generator).numpy())
    return np.concatenate(blocks)[:strings]


def _block_seed(seed: int, block: int) -> int:
    return int(np.random.SeedSequence([seed, _STREAM["self"], block]).generate_state(1, np.uint64)[0] >> 1)


def _read(path: Path, word: str) -> str:
    if not path.is_file():
        raise InputError(problem(f"a file after {word}:", f"'{path}', which is no file", "check the path"))
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            problem("a UTF-8 text file", f"'{path}' with a bad byte at {error.start}", "convert it to UTF-8")
        ) from error
    if not content.strip():
        raise InputError(problem("a file with content", f"'{path}', which is empty", "put targets into it"))
    return content


def _cut_text(
    model: LoadedModel, content: str, name: str, strings: int, n: int
) -> Int[np.ndarray, "strings n"]:
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


def _cut_ids(
    model: LoadedModel, content: str, name: str, strings: int, n: int
) -> Int[np.ndarray, "strings n"]:
    lines = [line for line in content.splitlines() if line.strip()]
    if len(lines) < strings:
        raise InputError(
            problem(
                f"{strings} lines of ids", f"'{name}' with {len(lines)}", f"lower --strings to {len(lines)}"
            )
        )
    rows = [_parse_ids(line, name, number, n) for number, line in enumerate(lines[:strings], start=1)]
    return model.check_ids(np.asarray(rows, dtype=np.int64)).reshape(strings, n)


def _parse_ids(line: str, name: str, number: int, n: int) -> Sequence[int]:
    try:
        row = [int(word) for word in line.replace(",", " ").split()]
    except ValueError as error:
        raise InputError(
            problem("whole numbers", f"{error} in line {number} of '{name}'", "write ids separated by spaces")
        ) from error
    if len(row) < n:
        raise InputError(
            problem(f"at least {n} ids a line", f"{len(row)} in line {number} of '{name}'", "lower --n-max")
        )
    return row[:n]
