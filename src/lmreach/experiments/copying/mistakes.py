"""Where copying goes wrong, and whether it is the look-up of what came before that fails.

A copier that finds the next character by looking for the last k characters in its prompt (an induction
head, or the n-gram hash tables of Jelassi et al. 2024, "Repeat After Me", arXiv 2402.01032) can only be
misled where those k characters stand in the prompt more than once. So two things are asked of each first
wrong character. Did it follow another occurrence of the last k characters (*order*: the largest such k)? And
was the place one where the last k characters have another occurrence that goes on differently (*ambiguity*:
the largest such k)? A copier that counts positions instead slips by a few of them: so the third question is
how far from the right place the wrong character stands (*distance*). All of this happens by chance too, the
more so the longer the string; what chance alone would give is counted beside it.
"""

import numpy as np
from jaxtyping import Bool, Int

from lmreach.results.records import Mistake, MistakeKind

__all__ = ["ORDERS", "explain", "first_wrong", "last_occurrence"]

ORDERS = (1, 2, 3, 4)
"""Numbers of preceding characters that are looked for; a longer match counts as the last of them. Also the
distances that are looked at."""


def first_wrong(emitted: Int[np.ndarray, " n"], answer: Int[np.ndarray, " n"]) -> int | None:
    """Return the first place at which two equally long lists of ids differ, or None."""
    differs = np.flatnonzero(emitted != answer)
    return int(differs[0]) if differs.size else None


def explain(
    prompt: Int[np.ndarray, " p"],
    answer: Int[np.ndarray, " n"],
    emitted: int,
    place: int,
    symbols: Int[np.ndarray, " alphabet"],
) -> Mistake:
    """Return what the first wrong id of an answer says.

    Parameters
    ----------
    prompt, answer
        Ids; the answer ends with its end mark.
    emitted
        The id that came out at ``place`` instead of ``answer[place]``.
    place
        Position in the answer; everything before it is right.
    symbols
        Ids of the alphabet.
    """
    end, letters = int(answer[-1]), len(answer) - 1
    follows = _matches(prompt, np.concatenate([prompt, answer[:place]]))
    others = prompt[1:] != answer[place]
    same = prompt[1:] == emitted
    orders = np.asarray(ORDERS)[:, None]
    misled = [np.unique(prompt[1:][others & hit]) for hit in follows >= orders]
    wrong = max(len(symbols) - 1, 1)
    chance = tuple(float(np.isin(found, symbols).sum() / wrong) for found in misled)
    distances = _distances(prompt, answer, place, symbols)
    usual = np.mean([_ambiguity(prompt, answer, i) >= np.asarray(ORDERS) for i in range(letters)], axis=0)
    return Mistake(
        place=place,
        emitted=emitted,
        kind=_kind(emitted, place, letters, end, symbols),
        order=int((follows * same).max(initial=0)) if emitted != end else 0,
        chance=chance,
        ambiguity=int((follows * others).max(initial=0)),
        usual=tuple(float(x) for x in usual),
        distance=distances.get(emitted, 0),
        near=tuple(sum(0 < d <= k for d in distances.values()) / wrong for k in ORDERS),
    )


def last_occurrence(prompt: Int[np.ndarray, " p"], part: Int[np.ndarray, " n"]) -> int | None:
    """Return where ``part`` stands last in the prompt; None if it does not."""
    if len(part) > len(prompt) or not len(part):
        return None
    windows = np.lib.stride_tricks.sliding_window_view(prompt, len(part))
    at = np.flatnonzero((windows == part).all(axis=1))
    return int(at[-1]) if at.size else None


def _distances(
    prompt: Int[np.ndarray, " p"],
    answer: Int[np.ndarray, " n"],
    place: int,
    symbols: Int[np.ndarray, " alphabet"],
) -> dict[int, int]:
    """Return how far from the right place each other symbol stands in the string, at the nearest."""
    source = last_occurrence(prompt, answer[:-1])
    if source is None or place >= len(answer) - 1:
        return {}
    right = source + place
    # The string may begin before the answer does (look-ups): it ends where another id than a symbol stands.
    inside = np.isin(prompt, symbols)
    left, stop = right, right + 1
    while left > 0 and inside[left - 1]:
        left -= 1
    while stop < len(prompt) and inside[stop]:
        stop += 1
    found: dict[int, int] = {}
    for at in range(left, stop):
        other = int(prompt[at])
        if other != answer[place]:
            found[other] = min(found.get(other, stop), abs(at - right))
    return found


def _kind(
    emitted: int, place: int, letters: int, end: int, symbols: Int[np.ndarray, " alphabet"]
) -> MistakeKind:
    if place == letters:
        return "did not end"
    if emitted == end:
        return "ended early"
    return "symbol" if emitted in symbols else "other token"


def _ambiguity(prompt: Int[np.ndarray, " p"], answer: Int[np.ndarray, " n"], place: int) -> int:
    follows = _matches(prompt, np.concatenate([prompt, answer[:place]]))
    return int((follows * (prompt[1:] != answer[place])).max(initial=0))


def _matches(prompt: Int[np.ndarray, " p"], told: Int[np.ndarray, " q"]) -> Int[np.ndarray, " p-1"]:
    """Return for each position 1.. of the prompt how many ids before it equal the last ids of ``told``."""
    count = np.zeros(len(prompt) - 1, dtype=np.int64)
    going: Bool[np.ndarray, " p-1"] = np.ones(len(prompt) - 1, dtype=bool)
    for k in ORDERS:
        if k > len(told) or k >= len(prompt):
            return count
        shifted = np.full(len(prompt) - 1, -1, dtype=np.int64)
        shifted[k - 1 :] = prompt[: len(prompt) - k]
        going &= shifted == told[-k]
        count += going
    return count
