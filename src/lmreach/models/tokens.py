"""Ids and text: which ids a model can use, and how any list of ids is shown or read back."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Int
from transformers import PreTrainedTokenizerBase

from lmreach.errors import InputError, problem

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BROKEN = "\ufffd"
_NO_ID = 2**31  # beyond what tokenizers take
_SHOWN = 40  # characters of a text in a message


def usable_ids(tokenizer: PreTrainedTokenizerBase | None, rows: int) -> Int[np.ndarray, " usable"]:
    """Return the sorted ids that the tokenizer knows and that have a row; all rows without a tokenizer."""
    if tokenizer is None:
        return np.arange(rows, dtype=np.int64)
    known = np.unique(np.fromiter(tokenizer.get_vocab().values(), dtype=np.int64))
    return known[(known >= 0) & (known < rows)]


def special_ids(tokenizer: PreTrainedTokenizerBase | None, config: Any, rows: int) -> tuple[int, ...]:
    """Return the ids of control tokens: from the tokenizer, or without one from the model's settings."""
    if tokenizer is None:
        named = (_config_id(config, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id"))
        found = {i for i in named if i is not None}
    else:
        added = getattr(tokenizer, "added_tokens_decoder", {})
        found = set(tokenizer.all_special_ids) | {i for i, token in added.items() if token.special}
    return tuple(sorted(i for i in found if 0 <= i < rows))


def start_and_end(
    tokenizer: PreTrainedTokenizerBase | None, config: Any, rows: int
) -> tuple[int | None, int | None]:
    """Return (bos, eos): the tokenizer's own, or without a tokenizer those in the model's settings."""
    if tokenizer is None:
        pair = _config_id(config, "bos_token_id"), _config_id(config, "eos_token_id")
    else:
        pair = tokenizer.bos_token_id, tokenizer.eos_token_id
    bos, eos = (i if i is not None and 0 <= i < rows else None for i in pair)
    return bos, eos


def _config_id(config: Any, name: str) -> int | None:
    value = getattr(config, name, None)
    if isinstance(value, list | tuple):  # several end ids: the first is the one that training used
        value = value[0] if value else None
    return value


def encode(tokenizer: PreTrainedTokenizerBase, text: str, *, special: bool) -> Int[np.ndarray, " n"]:
    """Return the ids of ``text`` with nothing added.

    Text that spells a control token stays text unless ``special``: a file that holds the start token's
    name must not put a start token into a target.

    Raises
    ------
    InputError
        For a text that holds what the tokenizer has no token for: it would drop that or stop there.
    """
    settings: dict[str, Any] = {"add_special_tokens": False, "split_special_tokens": not special}
    try:
        read = tokenizer(text, **settings, verbose=False, return_offsets_mapping=tokenizer.is_fast)
    except Exception as error:  # tokenizers raises nothing narrower where it has no token for a word
        raise _unread(text, str(error)) from error
    ids = np.asarray(read["input_ids"], dtype=np.int64).reshape(-1)
    unknown = tokenizer.unk_token_id
    if unknown is not None and unknown in ids and str(tokenizer.unk_token) not in text:
        places = np.flatnonzero(ids == unknown)
        spans = read["offset_mapping"] if tokenizer.is_fast else []
        first = text[slice(*spans[places[0]])] if spans else ""
        raise _unread(text, f"{first!r} becomes {tokenizer.unk_token}")
    if tokenizer.is_fast and _is_short(text, read["offset_mapping"]):
        # Places are wrong behind what was dropped, so a second look leaves out what may be.
        bare = "".join(c for c in text if _counts(c))
        again = tokenizer(bare, **settings, verbose=False, return_offsets_mapping=True)
        if _is_short(bare, again["offset_mapping"]):
            alone = (c for c in dict.fromkeys(bare) if not tokenizer(c, **settings)["input_ids"])
            lost = next(alone, None)
            raise _unread(text, "a part of it has no token" if lost is None else f"{lost!r} has no token")
    return ids


def _is_short(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a character that counts is in no token."""
    covered = np.zeros(len(text) + 1, dtype=np.int64)
    for begin, end in spans:
        covered[begin] += 1
        covered[end] -= 1
    return any(_counts(text[i]) for i in np.flatnonzero(np.cumsum(covered)[:-1] == 0))


def _counts(character: str) -> bool:
    """Whether a character carries text: tokenizers leave out spaces, controls and accents on purpose."""
    return unicodedata.category(character)[0] not in "ZCM"


def _unread(text: str, reason: str) -> InputError:
    start = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    got = f"{start!r}: {(reason.splitlines() or [''])[0][:120]}"
    return InputError(problem("a text of which the tokenizer has every character", got, "give ids instead"))


def decode(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> str:
    """Return the plain text of known ids, broken UTF-8 as U+FFFD."""
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text if isinstance(text, str) else "".join(text)


def display(tokenizer: PreTrainedTokenizerBase | None, ids: list[int]) -> str:
    r"""Return a printable, one-line form of any ids.

    Known ids are decoded together; what is no whole UTF-8 is shown as bytes (``\xf0\x9f``), control
    characters are escaped, and an id without any text stands as ``⟨120⟩``.
    """
    if tokenizer is None:
        return " ".join(f"⟨{i}⟩" for i in ids)
    shown, run = [], list[int]()
    for i in ids:
        if not 0 <= i < _NO_ID or tokenizer.convert_ids_to_tokens(i) is None:
            shown += [_show_run(tokenizer, run), f"⟨{i}⟩"]
            run = []
        else:
            run.append(i)
    return "".join([*shown, _show_run(tokenizer, run)])


def _show_run(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> str:
    if not ids:
        return ""
    text = decode(tokenizer, ids)
    if text and _BROKEN not in text:
        return _escaped(text)
    if len(ids) == 1:
        return _show_broken(tokenizer, ids[0])
    # The longest whole start is shown as text, then one id in its raw form, then the rest.
    for stop in range(len(ids) - 1, 0, -1):
        text = decode(tokenizer, ids[:stop])
        if text and _BROKEN not in text:
            return _escaped(text) + _show_run(tokenizer, ids[stop:])
    return _show_broken(tokenizer, ids[0]) + _show_run(tokenizer, ids[1:])


def _show_broken(tokenizer: PreTrainedTokenizerBase, i: int) -> str:
    token = str(tokenizer.convert_ids_to_tokens(i))
    as_byte = _BYTE_TOKEN.fullmatch(token)
    if as_byte:
        return f"\\x{as_byte[1].lower()}"
    if token and all(c in _byte_alphabet() for c in token):
        return "".join(_escaped_byte(_byte_alphabet()[c]) for c in token)
    return f"⟨{i}⟩"


def _escaped_byte(byte: int) -> str:
    return chr(byte) if 32 < byte < 127 else f"\\x{byte:02x}"


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@cache
def _byte_alphabet() -> dict[str, int]:
    """Return the characters that byte-level vocabularies write bytes with.

    Printable Latin-1 characters stand for themselves, the other bytes for U+0100 and up, in order
    (Radford et al. 2019, the vocabulary of GPT-2).
    """
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in set(plain)]
    return {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(others)}
