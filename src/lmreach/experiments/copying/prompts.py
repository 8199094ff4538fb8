"""What a copying prompt looks like: the string asked for, and what may stand around it.

Whoever asks (an `Asker`) gives, for a length, the ids of a prompt and of its answer. The answer ends with an
end mark, which is scored like a character. A layout puts more before the prompt and leaves the string alone,
so that the length of the string and the length of the prompt can be told apart.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Int

from lmreach.errors import InputError, problem
from lmreach.models.loaded import LoadedModel

__all__ = [
    "TOKENS",
    "Asker",
    "InContext",
    "Laid",
    "Pair",
    "draw",
    "in_context",
    "in_context_layouts",
    "letters_in",
    "trained_layouts",
]

Pair = tuple[Int[np.ndarray, " p"], Int[np.ndarray, " n"]]
TOKENS = "tokens"
"""Name of the alphabet of all tokens."""

_INPUT, _OUTPUT, _BREAK = "Input:", "Output:", "\n"
_INSTRUCTION = "Copy the input exactly."
_SHOTS, _SHOT_LENGTH = 3, 8


class Asker(Protocol):
    """Gives prompts and answers of a length."""

    @property
    def symbols(self) -> Int[np.ndarray, " alphabet"]:
        """Return the ids that strings are drawn from."""

    def example(self, rng: np.random.Generator, length: int) -> Pair:
        """Return the ids of a prompt about a string of ``length``, and of its answer with end mark."""


@dataclass(frozen=True, slots=True)
class Laid:
    """An asker with more before each prompt.

    Attributes
    ----------
    name
        Of the layout.
    inner
        Who asks.
    before
        Ids that stand before everything.
    shots
        Solved prompts that stand before the one asked for, each with a string of its own.
    shot_length
        Length of their strings; None: as long as the one asked for.
    first
        Ids before ``before`` (a start token).
    """

    name: str
    inner: Asker
    before: tuple[int, ...] = ()
    shots: int = 0
    shot_length: int | None = None
    first: tuple[int, ...] = ()

    @property
    def symbols(self) -> Int[np.ndarray, " alphabet"]:
        """Return the ids that strings are drawn from."""
        return self.inner.symbols

    def example(self, rng: np.random.Generator, length: int) -> Pair:
        """Return prompt and answer; the string asked for is drawn first, so layouts share it."""
        prompt, answer = self.inner.example(rng, length)
        size = length if self.shot_length is None else self.shot_length
        solved = [part for _ in range(self.shots) for part in self.inner.example(rng, size)]
        lead = np.asarray([*self.first, *self.before], dtype=np.int64)
        return np.concatenate([lead, *solved, prompt]), answer


@dataclass(frozen=True, slots=True)
class InContext:
    """Asks a pretrained model to copy, in ids it knows: ``Input: a b c``, a line break, ``Output:``.

    Attributes
    ----------
    symbols
        Ids that strings are drawn from, each a token of its own.
    opening, asking
        Ids before the string, and between the string and the answer.
    end
        Id of the line break that ends an answer.
    """

    symbols: Int[np.ndarray, " alphabet"]
    opening: tuple[int, ...]
    asking: tuple[int, ...]
    end: int

    def example(self, rng: np.random.Generator, length: int) -> Pair:
        """Return prompt and answer of one random string."""
        drawn = self.symbols[rng.integers(self.symbols.size, size=length)]
        prompt = np.concatenate([self.opening, drawn, self.asking]).astype(np.int64)
        return prompt, np.append(drawn, self.end).astype(np.int64)


def in_context(model: LoadedModel, alphabet: str = "") -> InContext:
    """Return how a pretrained model is asked.

    Parameters
    ----------
    alphabet
        Letters such as ``a-p`` or ``abc`` (empty: all), each with a space before it where the tokenizer has
        such tokens; or ``tokens``: every usable id that is not special and not part of the frame.

    Raises
    ------
    InputError
        The model has no tokenizer, or (letters) fewer than two letters that are one token each, or a line
        break that is no token of its own.
    """
    end = model.encode(_BREAK)
    if len(end) != 1:
        got = f"{len(end)} tokens with {model.facts.name}"
        raise InputError(problem("a line break that is one token", got, "train a copier instead"))
    opening, output = (tuple(int(i) for i in model.encode(text)) for text in (_INPUT, _OUTPUT))
    frame = np.asarray([*opening, *output, *end])
    wanted = model.plain_ids if alphabet == TOKENS else _letters(model, letters_in(alphabet))
    pool = np.setdiff1d(wanted, frame)
    if pool.size < 2:
        got, remedy = f"{pool.size} with {model.facts.name}", f"use the alphabet {TOKENS!r}"
        raise InputError(problem("two symbols or more that are one token each", got, remedy))
    return InContext(pool, opening, (int(end[0]), *output), int(end[0]))


def letters_in(text: str, alphabet: int = 26) -> tuple[int, ...]:
    """Read letters such as ``a-p``, ``abc`` or (empty) all of them, as sorted numbers from 0.

    Raises
    ------
    InputError
        For anything else, or a letter beyond the first ``alphabet``.
    """
    known = string.ascii_lowercase[:alphabet]
    ends = re.fullmatch(r"([a-z])-([a-z])", text)
    named = string.ascii_lowercase[ord(ends[1]) - 97 : ord(ends[2]) - 96] if ends else text or known
    if not named or not set(named) <= set(known):
        got, remedy = repr(text), "write e.g. a-p or abc"
        raise InputError(problem(f"letters from a to {known[-1]}", got, remedy))
    return tuple(sorted({ord(letter) - 97 for letter in named}))


def _letters(model: LoadedModel, chosen: tuple[int, ...]) -> Int[np.ndarray, " letters"]:
    """Return the ids of single letters, all with a space before them or all without: as has more of them."""
    kinds = [
        {k: i for k, i in enumerate(map(model.single_id, names)) if i is not None}
        for names in ([f" {letter}" for letter in string.ascii_lowercase], string.ascii_lowercase)
    ]
    most = max(kinds, key=len)
    return np.asarray([most[k] for k in chosen if k in most], dtype=np.int64)


def in_context_layouts(model: LoadedModel, asker: InContext) -> list[Laid]:
    """Return the layouts of an in-context prompt, the usual one first.

    ``examples``: three solved prompts of eight symbols before the one asked for. ``padded``: 64 line breaks
    before these. ``instructions``: a sentence before these; ``instructions x 16``: the sentence 16 times.
    ``long examples``: two solved prompts as long as the one asked for. All begin with the start token if the
    model has one.
    """
    start = () if model.facts.bos_id is None else (model.facts.bos_id,)
    sentence = tuple(int(i) for i in model.encode(_INSTRUCTION + _BREAK))

    def laid(
        name: str,
        before: Sequence[int] = (),
        shots: int = _SHOTS,
        length: int | None = _SHOT_LENGTH,
    ) -> Laid:
        return Laid(name, asker, tuple(before), shots, length, start)

    return [
        laid("examples"),
        laid("padded", (asker.end,) * 64),
        laid("instructions", sentence),
        laid("instructions x 16", sentence * 16),
        laid("long examples", shots=2, length=None),
    ]


def trained_layouts(asker: Asker, *, pad: int | None, start: int | None, longest: int) -> list[Laid]:
    """Return the layouts of a trained copier's prompt, the usual one first.

    ``alone``: nothing before the prompt. ``after examples``: three solved prompts, as in packed training
    contexts. ``padded``: pad marks before it, as many as the longest training string has characters, and
    four times as many. ``start x 8``: the mark that opens a prompt eight times more.

    Parameters
    ----------
    pad, start
        Ids of the marks; None leaves the layout out.
    longest
        Length of the longest training string.
    """
    found = [Laid("alone", asker), Laid("after examples", asker, shots=3, shot_length=max(longest // 2, 1))]
    if pad is not None:
        found += [Laid(f"padded with {k}", asker, (pad,) * k) for k in (longest, 4 * longest)]
    if start is not None:
        found.append(Laid("start x 8", asker, (start,) * 8))
    return found


def draw(asker: Asker, length: int, strings: int, *, seed: int) -> list[Pair]:
    """Return prompts and answers of a length; string i of a length is the same whatever else is asked."""
    return [asker.example(np.random.default_rng([seed, 11, length, i]), length) for i in range(strings)]
