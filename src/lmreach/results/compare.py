"""Several studies beside one another: one entry per study and target kind, and where they differ."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from lmreach.results.base import Interval, Result
from lmreach.results.shown import Shown
from lmreach.results.study import Accessibility
from lmreach.results.utilisation import utilisation

__all__ = ["PUBLISHED", "Comparison", "ComparisonEntry", "ComparisonRow", "Difference", "LimitBeside"]

PUBLISHED = " (published)"
"""What the name of a published entry's study ends with."""


class LimitBeside(Result):
    """A limit of one study, and what it is of that study's slope.

    Attributes
    ----------
    tokens_per_vector
        C = ln P / ln V.
    ratio
        C over the measured slope. None: there is no slope.
    """

    name: str
    tokens_per_vector: float
    ratio: Interval | None


class ComparisonEntry(Result):
    """One target kind of one study, or one published slope.

    Attributes
    ----------
    study
        What tells it from the others: the model's name, with the folder's where two share one.
    origin
        ``measured`` by a run, or ``published``: taken from a paper, nothing checked here.
    width, vocab
        d, coordinates of a prompt vector, and V, usable ids. None: not published.
    dtype
        Arithmetic of the weights. None: published, not stated per model.
    m
        Numbers of prompt vectors.
    strings
        Strings finished at each m.
    steps
        Optimiser steps per string (per trial where strings were tried at single lengths), the mean over all
        m; of a published slope the most that were allowed. None: nothing was finished.
    still_growing
        Strings that still grew in the last tenth of their steps, at all m. None: not recorded.
    slope, intercept
        The line of n50 against m, in tokens per vector and in tokens.
    bits_per_coordinate
        Of the slope: slope log2(V) / d, which compares across vocabularies and widths. None: not known.
    hidden, input, format
        The tightest proved limit under each premise. None: there is none.
    ball
        The paper's ball, which needs d, V and a number format only.
    conditions
        What was measured at each m. Empty: published.
    """

    study: str
    origin: Literal["measured", "published"]
    model: str
    width: int | None
    vocab: int | None
    dtype: str | None
    target: str
    protocol: str
    m: tuple[int, ...]
    strings: tuple[int, ...]
    steps: float | None
    still_growing: int | None = None
    slope: Interval
    intercept: float | None = None
    bits_per_coordinate: float | None
    hidden: LimitBeside | None = None
    input: LimitBeside | None = None
    format: LimitBeside | None = None
    ball: LimitBeside | None = None
    conditions: tuple[Accessibility, ...] = ()

    @property
    def name(self) -> str:
        """Study and target kind in words."""
        return f"{self.study}, {self.target}"


class ComparisonRow(Result):
    """One line of the long table: an entry at one number of vectors; a published entry has one line, no m.

    Attributes
    ----------
    within
        What the vectors were held to. Empty: nothing.
    utilisation
        Bits of the reached ids, n50 log2 V, over ``bits_vectors``, those that all m vectors are stored in.
    """

    study: str
    origin: str
    model: str
    width: int | None
    vocab: int | None
    dtype: str | None
    target: str
    protocol: str
    m: int | None
    n50: Interval
    n50_bits_per_coordinate: float | None
    within: str
    bits_vectors: int | None
    utilisation: Interval
    strings: int | None
    steps: float | None
    levelling: str | None
    slope: Interval
    slope_bits_per_coordinate: float | None
    limit_hidden: float | None
    ratio_hidden: Interval
    limit_input: float | None
    ratio_input: Interval
    limit_format: float | None
    ratio_format: Interval
    limit_ball: float | None
    ratio_ball: Interval


class Difference(Result):
    """Something in which the studies differ.

    Attributes
    ----------
    what
        Its name, such as ``steps``.
    serious
        Whether it moves n50 or the slope, so that a difference between two studies may be no difference
        between their models.
    values
        What each study has, by its name.
    words
        What that means, in one or two sentences.
    """

    what: str
    serious: bool
    values: dict[str, str] = Field(default_factory=dict)
    words: str


class Comparison(Shown):
    """Several studies beside one another.

    Attributes
    ----------
    entries
        In the order in which the studies were given; published ones last.
    differences
        Where protocols, steps, targets or settings differ; what moves the numbers first.
    """

    _table: ClassVar[str] = "entries"

    entries: tuple[ComparisonEntry, ...]
    differences: tuple[Difference, ...] = ()

    @property
    def measured(self) -> tuple[ComparisonEntry, ...]:
        """Entries of runs, without published ones."""
        return tuple(entry for entry in self.entries if entry.origin == "measured")

    @property
    def warnings(self) -> tuple[Difference, ...]:
        """Differences that move the numbers."""
        return tuple(one for one in self.differences if one.serious)

    def rows(self) -> Sequence[ComparisonRow]:
        """Return one row per study, target kind and number of vectors."""
        return [row for entry in self.entries for row in _rows(entry)]


_NONE = Interval(value=None, verdict="no_data")


def _rows(entry: ComparisonEntry) -> list[ComparisonRow]:
    return [_row(entry, condition) for condition in entry.conditions or (None,)]


def _row(entry: ComparisonEntry, condition: Accessibility | None) -> ComparisonRow:
    beside = {
        f"{kind}_{premise}": value
        for premise in ("hidden", "input", "format", "ball")
        for kind, value in _limit(getattr(entry, premise))
    }
    told: dict[str, Interval | str | float | None] = {
        "within": "",
        "bits_vectors": None,
        "utilisation": _NONE,
    }
    if condition is None:
        told |= {"m": None, "n50": _NONE, "strings": None, "steps": entry.steps, "levelling": None}
        carried = None
    else:
        counted = condition.trials or condition.finished
        steps = condition.steps / counted if counted else None
        if entry.vocab is not None:
            bits = condition.bits_vectors
            told["utilisation"] = utilisation(condition.n50, vocab=entry.vocab, bits=bits)
        told |= {
            "m": condition.m,
            "within": condition.within,
            "bits_vectors": condition.bits_vectors,
            "n50": condition.n50,
            "strings": condition.finished,
            "steps": steps,
            "levelling": condition.levelling,
        }
        carried = condition.bits_per_coordinate
    return ComparisonRow.from_object(
        entry,
        **told,
        **beside,
        n50_bits_per_coordinate=carried,
        slope_bits_per_coordinate=entry.bits_per_coordinate,
    )


def _limit(limit: LimitBeside | None) -> tuple[tuple[str, float | None], tuple[str, Interval]]:
    if limit is None:
        return ("limit", None), ("ratio", _NONE)
    return ("limit", limit.tokens_per_vector), ("ratio", limit.ratio or _NONE)
