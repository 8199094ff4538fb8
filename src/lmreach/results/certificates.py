"""What decoding again says: of a run's certificates, and of somebody's own vectors."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from lmreach.results.base import Result
from lmreach.results.shown import Shown

__all__ = [
    "DecodedCertificate",
    "JudgedCurve",
    "JudgedLimit",
    "Judgement",
    "Quantised",
    "Verdict",
    "Verification",
]


class Verdict(Result):
    """What became of one certificate.

    Attributes
    ----------
    key
        The trial's key.
    cell
        Target kind and m.
    status
        ``held``: the vectors are members of the set that the run was held to, if any, and greedy decoding at
        batch 1 emitted every id, with a top-two gap above 0 at every step, both in the run's dtype and in
        float32, and so did every row of a batch of eight in the run's dtype;
        ``fragile``: some of these failed; ``failed``: neither dtype emitted it at batch 1.
    emitted, emitted_float32, emitted_in_batch
        Tokens emitted in the run's dtype, in float32, and in the run's dtype by the worst row of a batch.
    claimed
        Tokens claimed.
    width
        Coordinates of a vector; 0 where the certificate could not be read.
    quantised
        Tokens emitted after the vectors were rounded to a format, by its name; empty unless asked for.
    why
        Empty when held; else what went wrong.
    """

    key: str
    cell: str
    status: Literal["held", "fragile", "failed"]
    emitted: int
    emitted_float32: int
    emitted_in_batch: int
    claimed: int
    width: int
    quantised: dict[str, int]
    why: str

    @property
    def held(self) -> bool:
        """Whether the claim holds in both dtypes and in company."""
        return self.status == "held"


class Quantised(Result):
    """How much of a run's claims is left after rounding its vectors to a format.

    Attributes
    ----------
    hold_whole
        Claims that still come out whole.
    tokens_kept, tokens_claimed
        Tokens of the longest prefixes that still come out, of those claimed.
    """

    format: str
    bits_per_coordinate: float
    claims: int
    hold_whole: int
    tokens_kept: int
    tokens_claimed: int


class Verification(Shown):
    """Every certificate of a run decoded again, in order of keys."""

    _table: ClassVar[str] = "verdicts"

    verdicts: tuple[Verdict, ...]
    quantised: tuple[Quantised, ...] = ()

    @property
    def held(self) -> bool:
        """Whether every claim holds."""
        return all(verdict.held for verdict in self.verdicts)


class JudgedLimit(Result):
    """A limit beside given vectors.

    Attributes
    ----------
    longest_fully_possible
        Longest length at which the limit leaves every sequence possible, at this m.
    reached_share
        What was reached over C m.
    """

    name: str
    premise: str
    packing: str
    longest_fully_possible: int
    reached_share: float


class JudgedCurve(Result):
    """What a run's cramming brought about at the same m; ``n50``, ``max_steps`` None: not known."""

    target: str
    m: int
    strings: int
    n50: float | None
    max_steps: int | None = None
    share_at_least_as_far: float


class Judgement(Shown):
    """What given vectors do, beside what the model and the theory allow.

    Attributes
    ----------
    m, n
        Vectors given; tokens of the target.
    cut_from
        Tokens of the target as given, where the model's context holds only its first n. None: all of it.
    reach
        Longest prefix of the target that greedy decoding emits from the vectors, in tokens.
    smallest_gap
        Smallest top-two gap over that prefix, in logits; None where reach is 0.
    wanted_next, emitted_next
        Text of the first token that did not come out, and of what came instead; None where all did.
    bits_without, bits_with
        Cross-entropy of the whole target, teacher-forced, without and with the vectors.
    bits_per_coordinate
        Bits gained divided by m d.
    bits_vectors, bits_ids
        Storage of the vectors as given, and n log2 V: what naming the ids takes.
    curve
        Per target kind that a run measured at this m. Empty: no run was named.
    """

    m: int
    n: int
    cut_from: int | None
    reach: int
    smallest_gap: float | None
    wanted_next: str | None
    emitted_next: str | None
    bits_without: float
    bits_with: float
    bits_per_coordinate: float
    bits_vectors: int
    bits_ids: float
    limits: tuple[JudgedLimit, ...]
    curve: tuple[JudgedCurve, ...]

    _table: ClassVar[str] = "limits"

    @property
    def tokens(self) -> int:
        """Tokens of the target that greedy decoding emits from the vectors: ``reach``."""
        return self.reach


class DecodedCertificate(Shown):
    """What greedy decoding emits from a certificate's vectors.

    Attributes
    ----------
    m
        Vectors.
    smallest_gap
        Smallest top-two gap, in logits.
    as_claimed
        Whether it is what the certificate claims, with a gap above 0 at every step.
    """

    model: str
    m: int
    ids: tuple[int, ...]
    text: str
    smallest_gap: float
    as_claimed: bool

    def rows(self) -> Sequence[Result]:
        """Return the whole: it is one row."""
        return (self,)
