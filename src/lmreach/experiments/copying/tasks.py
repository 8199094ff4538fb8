"""Strings to copy, and look-ups in them: single questions, and contexts packed with them for training.

Tasks after Jelassi et al. 2024 (arXiv 2402.01032), sections 3 and 4; s is a random string, g an n-gram of it:

=============== ==================================== ================================================
name            prompt                               answer
=============== ==================================== ================================================
copy            start s separator                    s end
prefix_ngram    start g separator s separator        what follows g in s, end
suffix_ngram    start s separator g                  what follows g in s, end
duplicate_ngram start s separator                    s end; in s, an n-gram stands at two places
=============== ==================================== ================================================

In the look-ups g stands once in s, and at least one letter follows it. Theirs looks for g among the places
that a fixed answer length leaves, and cuts the last example of a packed context; here every place with a
letter behind it may be asked for, and a context ends in padding where no further example fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from lmreach.errors import InputError, problem

TASKS = ("copy", "prefix_ngram", "suffix_ngram", "duplicate_ngram")
"""Names of tasks."""

IGNORED = -100
"""Label of what is not scored."""

_DRAWS = 200  # of a string in which some n-gram stands once
_MARKS = ("<start>", "<separator>", "<end>", "<pad>")

Part = tuple[Int[np.ndarray, "k width"], Int[np.ndarray, " k"]]
"""One piece of k examples: ids, of which the first so many of each row count."""


@dataclass(frozen=True)
class CopyTask:
    """What is asked.

    Attributes
    ----------
    name
        One of `TASKS`.
    alphabet
        Number of letters that have an id.
    n
        Length of the n-gram, in letters; the copy task has none.
    letters
        Which of them strings are made of, as numbers below ``alphabet``; None: all.
    ids
        The model's ids of the letters, then of start, separator, end and pad; None: 0, 1, 2, ...
    """

    name: str = "copy"
    alphabet: int = 26
    n: int = 3
    letters: tuple[int, ...] | None = None
    ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.name not in TASKS:
            raise InputError(problem(f"one of {', '.join(TASKS)}", repr(self.name), "choose one of these"))
        if min(self.alphabet - 1, self.n) < 1:
            got = f"{self.alphabet} letters and n = {self.n}"
            raise InputError(problem("at least 2 letters and n of at least 1", got, "use more"))
        used = self.letters
        if used is not None and not (used and set(used) <= set(range(self.alphabet))):
            raise InputError(
                problem(f"letters below {self.alphabet}", f"{used}", "use letters that have an id")
            )
        wanted = self.alphabet + len(_MARKS)
        if self.ids is not None and len(set(self.ids)) != wanted:
            raise InputError(problem(f"{wanted} different ids", f"{len(set(self.ids))}", "give one each"))

    def _id(self, k: int) -> int:
        return k if self.ids is None else self.ids[k]

    @property
    def start(self) -> int:
        """Id that begins a question."""
        return self._id(self.alphabet)

    @property
    def separator(self) -> int:
        """Id that stands behind the string."""
        return self._id(self.alphabet + 1)

    @property
    def end(self) -> int:
        """Id that ends an answer."""
        return self._id(self.alphabet + 2)

    @property
    def pad(self) -> int:
        """Id that fills up a context."""
        return self._id(self.alphabet + 3)

    @property
    def symbols(self) -> Int[np.ndarray, " used"]:
        """The model's ids of the letters that strings are made of."""
        used = range(self.alphabet) if self.letters is None else sorted(set(self.letters))
        return np.array([self._id(k) for k in used], dtype=np.int64)

    @property
    def least(self) -> int:
        """Length of the shortest string the task can be asked about, in letters."""
        return {"copy": 1, "duplicate_ngram": 2 * self.n}.get(self.name, self.n + 1)

    def with_letters(self, letters: tuple[int, ...] | None) -> "CopyTask":
        """Return the same task with strings of other letters."""
        return replace(self, letters=letters)

    def positions(self, length: int) -> int:
        """Return the most positions that a question about ``length`` letters and its answer take."""
        extra = {"prefix_ngram": self.n + 1, "suffix_ngram": 0}.get(self.name, 0)
        answer = length if self.name in ("copy", "duplicate_ngram") else length - self.n
        key = self.n if self.name == "suffix_ngram" else 0
        return 2 + length + extra + key + answer + 1

    def text(self, ids: Sequence[int] | Int[np.ndarray, " k"]) -> str:
        """Return ids as letters and the names of marks; any other id as ``⟨id⟩``."""
        names = [chr(ord("a") + k) if k < 26 else f"⟨{k}⟩" for k in range(self.alphabet)]
        shown = {self._id(k): name for k, name in enumerate([*names, *_MARKS])}
        return "".join(shown.get(int(i), f"⟨{int(i)}⟩") for i in ids)

    def example(
        self, rng: np.random.Generator, length: int
    ) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " a"]]:
        """Return one question about a string of ``length`` letters: prompt, and answer with its end mark.

        Raises
        ------
        InputError
            For a length below `least`, or if no string with an n-gram that stands once is found.
        """
        prompt, answer = self._examples(rng, np.array([length]))
        return _flat(prompt), _flat(answer)

    def batch(
        self, rng: np.random.Generator, rows: int, context: int, shortest: int, longest: int
    ) -> tuple[Int[np.ndarray, "rows context"], Int[np.ndarray, "rows context"]]:
        """Return contexts packed with examples, and labels: the ids of answers, `IGNORED` elsewhere.

        Labels stand where their ids stand (the id at k is predicted from k - 1: shift once).

        Parameters
        ----------
        rows, context
            Contexts, and positions of each.
        shortest, longest
            Lengths of strings in letters, drawn uniformly; a context ends at the first that does not fit.

        Raises
        ------
        InputError
            As `example`, or if the longest string does not fit the context.
        """
        check_fit(self, longest, context)
        most = context // self.positions(max(shortest, self.least)) + 1
        lengths = rng.integers(shortest, longest + 1, size=(rows, most))
        prompt, answer = self._examples(rng, lengths.reshape(-1))
        sizes = _sizes(prompt) + _sizes(answer)
        ends = sizes.reshape(rows, most).cumsum(axis=1)
        kept = (ends <= context).reshape(-1)
        starts = (np.arange(rows)[:, None] * context + ends).reshape(-1) - sizes
        ids = np.full(rows * context, self.pad, dtype=np.int64)
        labels = np.full(rows * context, IGNORED, dtype=np.int64)
        starts = _put(ids, starts, prompt, kept)
        _put(labels, starts, answer, kept)
        _put(ids, starts, answer, kept)
        return ids.reshape(rows, context), labels.reshape(rows, context)

    def _examples(
        self, rng: np.random.Generator, lengths: Int[np.ndarray, " k"]
    ) -> tuple[list[Part], list[Part]]:
        """Return prompts and answers of one question per length, each as its pieces."""
        if len(lengths) and int(lengths.min()) < self.least:
            wanted = f"strings of at least {self.least} letters for {self.name} with n = {self.n}"
            raise InputError(problem(wanted, f"{int(lengths.min())}", "ask for longer strings"))
        count, width = len(lengths), int(lengths.max(initial=1))
        string = rng.choice(self.symbols, size=(count, width))
        mark = {name: _constant(getattr(self, name), count) for name in ("start", "separator", "end")}
        if self.name == "duplicate_ngram":
            string = _duplicated(rng, string, lengths, self.n)
        whole: Part = (string, lengths)
        if self.name in ("copy", "duplicate_ngram"):
            return [mark["start"], whole, mark["separator"]], [whole, mark["end"]]
        string, place = _with_single_ngram(rng, self.symbols, string, lengths, self.n)
        whole = (string, lengths)
        key: Part = (_taken(string, place, self.n), np.full(count, self.n))
        rest = place + self.n
        answer = [(_taken(string, rest, width), lengths - rest), mark["end"]]
        if self.name == "prefix_ngram":
            return [mark["start"], key, mark["separator"], whole, mark["separator"]], answer
        return [mark["start"], whole, mark["separator"], key], answer


def check_fit(task: CopyTask, longest: int, context: int) -> None:
    """Refuse strings that do not fit.

    Raises
    ------
    InputError
        Naming both the string and the context.
    """
    needed = task.positions(max(longest, task.least))
    if needed > context:
        raise InputError(
            problem(
                f"a context of at least {needed} positions for strings of {longest} letters ({task.name})",
                f"a context of {context}",
                "use shorter strings or a longer context: a cut string loses its answer",
            )
        )


def check_targets(labels: Int[np.ndarray, "rows context"]) -> None:
    """Refuse labels of which none is scored: their mean loss would be no number.

    Raises
    ------
    InputError
        ``0 of 64 samples keep a target``.
    """
    kept = int((labels[:, 1:] != IGNORED).any(axis=1).sum())
    if kept == 0:
        raise InputError(
            problem(
                "samples with an answer to learn from",
                f"0 of {len(labels)} samples keep a target",
                "use a context that holds whole examples",
            )
        )


def _constant(value: int, count: int) -> Part:
    return np.full((count, 1), value, dtype=np.int64), np.ones(count, dtype=np.int64)


def _sizes(parts: list[Part]) -> Int[np.ndarray, " k"]:
    total: Int[np.ndarray, " k"] = np.sum([size for _, size in parts], axis=0)
    return total


def _flat(parts: list[Part]) -> Int[np.ndarray, " total"]:
    """Return the pieces of a single example in one row."""
    return np.concatenate([values[0, : size[0]] for values, size in parts])


def _put(
    flat: Int[np.ndarray, " total"],
    starts: Int[np.ndarray, " k"],
    parts: list[Part],
    kept: Bool[np.ndarray, " k"],
) -> Int[np.ndarray, " k"]:
    """Write pieces behind each other from ``starts`` on, of kept examples only; return where they end."""
    for values, size in parts:
        column = np.arange(values.shape[1])
        there = (column < size[:, None]) & kept[:, None]
        flat[(starts[:, None] + column)[there]] = values[there]
        starts = starts + size
    return starts


def _taken(
    string: Int[np.ndarray, "k width"], place: Int[np.ndarray, " k"], count: int
) -> Int[np.ndarray, "k count"]:
    """Return ``count`` letters from each row's place on; past the end the last letter repeats."""
    at = np.minimum(place[:, None] + np.arange(count), string.shape[1] - 1)
    return np.take_along_axis(string, at, axis=1)


def _duplicated(
    rng: np.random.Generator, string: Int[np.ndarray, "k width"], lengths: Int[np.ndarray, " k"], n: int
) -> Int[np.ndarray, "k width"]:
    """Write one n-gram of each string over another that does not overlap with it."""
    # Two places at least n apart are two different ones among lengths - 2n + 2, the later moved on by n - 1.
    choices = lengths - 2 * n + 2
    first = rng.integers(choices)
    second = (first + rng.integers(1, choices)) % choices
    low, high = np.minimum(first, second), np.maximum(first, second) + n - 1
    swap = (first > second)[:, None]  # as often copied forwards as backwards
    source, target = np.where(swap, high[:, None], low[:, None]), np.where(swap, low[:, None], high[:, None])
    string = string.copy()
    np.put_along_axis(
        string, target + np.arange(n), np.take_along_axis(string, source + np.arange(n), axis=1), axis=1
    )
    return string


def _with_single_ngram(
    rng: np.random.Generator,
    symbols: Int[np.ndarray, " used"],
    string: Int[np.ndarray, "k width"],
    lengths: Int[np.ndarray, " k"],
    n: int,
) -> tuple[Int[np.ndarray, "k width"], Int[np.ndarray, " k"]]:
    """Return strings, drawn again where necessary, and a place in each of an n-gram that stands once."""
    string = string.copy()
    open_places = _single_places(string, lengths, n)
    for _ in range(_DRAWS):
        bad = ~open_places.any(axis=1)
        if not bad.any():
            score = np.where(open_places, rng.random(open_places.shape), -1.0)
            return string, score.argmax(axis=1)
        string[bad] = rng.choice(symbols, size=(int(bad.sum()), string.shape[1]))
        open_places[bad] = _single_places(string[bad], lengths[bad], n)
    got = f"none in {_DRAWS} draws of {len(symbols)} letters, up to {int(lengths.max())} long"
    raise InputError(problem(f"strings in which some {n}-gram stands once", got, "use a larger n"))


def _single_places(
    string: Int[np.ndarray, "k width"], lengths: Int[np.ndarray, " k"], n: int
) -> Bool[np.ndarray, "k places"]:
    """Return where an n-gram stands that stands nowhere else in its string and has a letter behind it."""
    count, places = len(string), string.shape[1] - n + 1
    code = np.zeros((count, places), dtype=np.int64)
    for k in range(n):  # ranks instead of powers: no n is too large for an integer
        code = code * (int(string.max()) + 1) + string[:, k : k + places]
        code = np.unique(code, return_inverse=True)[1].reshape(count, places)
    at = np.arange(places)
    code = np.where(at <= (lengths - n)[:, None], code, -1 - at)  # behind the string, all differ
    order = np.argsort(code, axis=1, kind="stable")
    ranked = np.take_along_axis(code, order, axis=1)
    same = ranked[:, 1:] == ranked[:, :-1]
    twice = np.zeros((count, places), dtype=bool)
    twice[:, 1:] |= same
    twice[:, :-1] |= same
    single = np.zeros_like(twice)
    np.put_along_axis(single, order, ~twice, axis=1)
    return single & (at < (lengths - n)[:, None])
