"""Which strings a run asks for, and how long they may get at each m."""

import hashlib
from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from lmreach.config import StudyConfig
from lmreach.config.targets import TargetKind, labels
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.cram import check_lengths
from lmreach.experiments.targets.draw import draw
from lmreach.models.frame import PromptFrame, frame_of
from lmreach.models.loaded import LoadedModel

__all__ = ["Strings"]

# Tokens a vector that are tried at most unless asked for, and at least so many on the published grid.
_LIMIT_PER_VECTOR = 64
_LIMIT_OF_GRID = 120


class Strings:
    """Target strings of every kind, drawn as many and as long as they are needed.

    Parameters
    ----------
    say
        Told before strings are drawn.
    """

    def __init__(self, model: LoadedModel, config: StudyConfig, say: Callable[[str], None]) -> None:
        self._model, self._config, self._say = model, config, say
        self._kinds = labels(config.targets)
        self._drawn: dict[str, Int[np.ndarray, "strings n"]] = {}

    def check(self) -> None:
        """Refuse what cannot be run: every m, every target file.

        Raises
        ------
        InputError
            A length that does not fit, a kind or file that cannot be used, or a model without usable ids.
        """
        for m in self._config.m:
            check_lengths(self._model, m, self.limit(m), self._config.cram)
        for label in self._kinds:
            if label not in ("random", "self"):
                self.ids(label, max(self.limit(m) for m in self._config.m), self._config.cram.strings)
        if not self._model.plain_ids.size:
            raise InputError(problem("a model with usable, non-special ids", "none", "check its tokenizer"))

    def ids(self, label: str, n: int, strings: int) -> Int[np.ndarray, "strings n"]:
        """Return the first n ids of the first strings of a kind, by its label; no more than asked are drawn.

        A larger request adds strings and extends those there are, so what was drawn stays what it is.
        """
        known = self._drawn.get(label)
        if known is None or known.shape[0] < strings or known.shape[1] < n:
            rows, longest = (0, 0) if known is None else known.shape
            rows, longest = max(rows, strings), max(longest, n)
            self._say(f"drawing {rows} {label} targets of {longest} tokens")
            known = draw(self._model, self._kinds[label], rows, longest, seed=self._config.cram.seed).ids
            self._drawn[label] = known
        return known[:strings, :n]

    def files(self) -> dict[str, str]:
        """Return the sha256 of every file of targets that is there, by its label: names alone may agree."""
        named = {label: TargetKind.parse(kind).file for label, kind in self._kinds.items()}
        return {
            label: hashlib.sha256(file.read_bytes()).hexdigest()
            for label, file in named.items()
            if file is not None and file.is_file()
        }

    def limit(self, m: int) -> int:
        """Return the length limit at m: what was asked, or 64 tokens a vector, within the context."""
        asked = self._config.cram
        if asked.length:
            return max(asked.length)
        if asked.n_max is not None:
            return asked.n_max
        longest = _LIMIT_PER_VECTOR * m
        if asked.protocol == "published":
            longest = max(longest, _LIMIT_OF_GRID)
        context = self._model.facts.context
        room = longest if context is None else context - m - self.frame().length
        return max(1, min(longest, room))

    def frame(self) -> PromptFrame:
        """Return what stands around the vectors."""
        asked = self._config.cram
        return frame_of(self._model, asked.bos, asked.prefix, asked.suffix)
