"""The nouns of a schedule: conditions, chunks of their strings, what became of a string, what was not run."""

from dataclasses import dataclass

__all__ = ["Answer", "Chunk", "Condition", "Skipped"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One target kind at one number of prompt vectors.

    Attributes
    ----------
    steps
        Optimiser steps per string where the run chose them; 0: those of its settings.
    """

    target: str
    m: int
    steps: int = 0

    @property
    def name(self) -> str:
        """Return the name used in the store and on screen; the steps are in the records."""
        return f"{self.target} m={self.m}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Strings ``first`` to ``last`` (exclusive) of a condition, run in one go; ``n``: at this one length."""

    condition: Condition
    first: int
    last: int
    n: int | None = None

    @property
    def strings(self) -> int:
        """Return how many strings the chunk holds."""
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one string of a chunk.

    Attributes
    ----------
    reach
        Tokens that came out.
    whole
        Whether that was all that was asked for: the length limit, or the one length tried.
    failed
        Whether the loss stopped being a number: no evidence, whatever came out.
    """

    reach: int
    whole: bool
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Strings of a condition that were not run, and why."""

    condition: Condition
    strings: int
    why: str
