"""Kinds of target strings as they are asked for: random, text:FILE, dataset:NAME."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from lmreach.errors import InputError, problem

__all__ = ["KINDS", "TargetKind", "labels"]

KINDS = "random, self, words, words:FILE, text:FILE, ids:FILE or dataset:NAME"

Word = Literal["random", "self", "words", "text", "ids", "dataset"]


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of target strings, as asked for.

    Attributes
    ----------
    word
        What kind.
    rest
        The file or data set after the colon; empty where the kind needs none.
    """

    word: Word
    rest: str = ""

    @classmethod
    def parse(cls, text: str) -> "TargetKind":
        """Read ``random``, ``text:FILE`` and the like.

        Raises
        ------
        InputError
            Another word, or one without what has to follow it.
        """
        word, colon, rest = text.partition(":")
        wrong = word not in get_args(Word) or (bool(colon) != bool(rest))
        wrong = wrong or (word in ("random", "self") and bool(rest))
        wrong = wrong or (word in ("text", "ids", "dataset") and not rest)
        if wrong:
            raise InputError(problem(f"targets {KINDS}", repr(text), "name one of these"))
        return cls(cast(Word, word), rest)

    @property
    def file(self) -> Path | None:
        """The file that is to be read; None for kinds without one."""
        return Path(self.rest).expanduser() if self.rest and self.word != "dataset" else None

    @property
    def label(self) -> str:
        """How results name it: a file by its own name, never by its path on this machine."""
        if self.file is not None:
            return f"{self.word}:{self.file.name}"
        if self.word != "dataset":
            return self.word
        name, colon, more = self.rest.partition(":")
        own = Path(name).name if Path(name).is_absolute() or Path(name).exists() else name
        return f"dataset:{own}{colon}{more}"

    def require_file(self) -> None:
        """Refuse a file that is not there.

        Raises
        ------
        InputError
            No file at the path.
        """
        if self.file is not None and not self.file.is_file():
            got = f"'{self.rest}', which is no file"
            raise InputError(problem(f"a file after {self.word}:", got, "check the path"))


def labels(kinds: Iterable[str]) -> dict[str, str]:
    """Return, per label, the kind as asked for, in order.

    Raises
    ------
    InputError
        Two files of one name, which results could not tell apart.
    """
    found: dict[str, str] = {}
    for kind in kinds:
        label = TargetKind.parse(kind).label
        if found.setdefault(label, kind) != kind:
            got = f"two files of the name {label.partition(':')[2]!r}"
            raise InputError(problem("target files of different names", got, "rename one of them"))
    return found
