"""Limits from theory at a size (m, n), as they are asked for without a run."""

from typing import ClassVar

from pydantic import Field

from lmreach.results.limits import Limit, tightest
from lmreach.results.shown import Shown

__all__ = ["BoundsResults", "LimitAt"]


class LimitAt(Limit):
    """A limit, and what it says of m vectors and n tokens.

    Attributes
    ----------
    log_count_nats
        ln of the most outputs of m vectors.
    longest_fully_possible
        Longest n at which every sequence may still be possible, in tokens.
    log_share_nats
        ln of the largest possible share of all V^n sequences. None: no n was asked about.
    vectors_needed
        Fewest vectors with which every sequence of the needed length may still be possible. None: not asked
        for, or no number of vectors is enough.
    """

    log_count_nats: float
    longest_fully_possible: int
    log_share_nats: float | None
    vectors_needed: int | None = None


class BoundsResults(Shown):
    """Every limit that a model's weights, or four numbers, allow.

    Attributes
    ----------
    subject
        The model and its sizes, in words.
    need
        Length in tokens that vectors, or a width, were asked for. None: neither was.
    widths_needed
        Smallest width at which a limit, by its name, still allows every sequence of ``need`` tokens from m
        vectors. Empty: not asked for; else ``limits`` are those at the largest of these widths.
    unbounded_log10_tokens
        log10 of the threshold length for prompts of any length (Corollary 4.10), in tokens, by support.
        Empty: not asked for.
    """

    _table: ClassVar[str] = "limits"

    subject: str
    m: int
    n: int | None
    limits: tuple[LimitAt, ...]
    need: int | None = None
    widths_needed: dict[str, int] = Field(default_factory=dict)
    unbounded_log10_tokens: dict[str, float]
    notes: tuple[str, ...]

    def tightest(self, premise: str) -> Limit | None:
        """Return the tightest proved limit of a premise: ``hidden``, ``input`` or ``format``."""
        return tightest(self.limits, premise)
