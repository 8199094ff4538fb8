"""Target strings: what the vectors are asked to make the model emit.

Every kind yields strings that do not depend on how many are drawn or how long they are asked to be:
string i of kind k under seed s is a fixed sequence, and a longer request extends it. So one string
can be paired across m, and a bigger run contains the smaller one.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from lmreach.config.targets import TargetKind
from lmreach.errors import InputError, problem
from lmreach.experiments.targets import files as target_files
from lmreach.models.decode import sample
from lmreach.models.loaded import LoadedModel

_STREAM = {"random": 1, "self": 2, "words": 3}


@dataclass(frozen=True, slots=True)
class Targets:
    """Target ids of one kind.

    Attributes
    ----------
    kind
        ``random``, ``self``, ``words``, or ``words:NAME``, ``text:NAME``, ``ids:NAME``, ``dataset:NAME`` (a
        file's own name, not its path).
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
        temperature 1 over the same ids. ``words``: words drawn uniformly from the system's word list, or
        ``words:FILE`` from a file with one word per line, set apart by single spaces, read as text and cut
        to n ids. ``text:FILE``: consecutive pieces of n ids of a text file. ``ids:FILE``: one string per
        line, ids separated by spaces or commas. ``dataset:NAME[:SPLIT[:COLUMN]]``: the first n ids of each
        row's text that has as many (needs the extra ``data``).
    seed
        Seed of ``random``, ``self`` and ``words``; the others take the strings in their order.

    Raises
    ------
    InputError
        Unknown kind, missing or empty file, ids out of range, or a text too short for what was asked:
        a shorter string is never put in place of a longer one.
    """
    if strings < 1 or n < 1:
        raise InputError(problem("strings and n of at least 1", f"{strings} and {n}", "ask for more"))
    asked = TargetKind.parse(kind)
    return Targets(asked.label, _ids(model, asked, strings, n, seed))


def _ids(
    model: LoadedModel, asked: TargetKind, strings: int, n: int, seed: int
) -> Int[np.ndarray, "strings n"]:
    match asked.word:
        case "random":
            return _random(model, strings, n, seed)
        case "self":
            return _self_sampled(model, strings, n, seed)
        case "words":
            rngs = [np.random.default_rng([seed, _STREAM["words"], i]) for i in range(strings)]
            return target_files.random_words(model, asked.file, rngs, n)
        case "dataset":
            return target_files.from_dataset(model, asked.rest, strings, n)
        case "text" | "ids":
            assert asked.file is not None, "parse asks for one"
            content = target_files.read(asked.file, asked.word)
            cut = target_files.cut_text if asked.word == "text" else target_files.cut_ids
            return cut(model, content, asked.file.name, strings, n)


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
