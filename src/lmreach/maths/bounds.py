"""Limits on what a prompt can make a model say: counts, shares, slopes and thresholds (M26, Section 4).

Units: nats per vector inside, tokens per vector and bits per coordinate for people. No count or share leaves
log space, so no width, vocabulary or length overflows.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from lmreach.errors import InputError, problem
from lmreach.maths import checks
from lmreach.maths.precision import number_format, precision_of, unit_roundoff
from lmreach.maths.supports import (
    AbstractRegion,
    AbstractSupport,
    Ball,
    Box,
    BoxEllipsoid,
    Ellipsoid,
    FloatGrid,
    Packing,
    Premise,
    norm_ellipsoid,
)

Vector = Float[np.ndarray, " _"]
# Two logs that agree to this relative size are the same number written twice.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One upper limit on the outputs of m prompt vectors.

    Attributes
    ----------
    name
        What a table calls it.
    support, norm, premise, packing, source
        See `lmreach.maths.supports`.
    log_packing
        ln P(S, eps), nats per prompt vector.
    width, vocab
        d and V; V counts usable ids.
    note
        What a reader should know, among it the eps that was used.
    """

    name: str
    support: str
    norm: str
    premise: Premise
    packing: Packing
    log_packing: float
    width: int
    vocab: int
    source: str
    note: str

    def __post_init__(self) -> None:
        checks.whole("width", self.width)
        checks.whole("vocabulary size", self.vocab, least=2)

    @property
    def tokens_per_vector(self) -> float:
        """Slope C = ln P / ln V: up to C m tokens may all be reachable, beyond it none need be (Cor. 4.6)."""
        return self.log_packing / math.log(self.vocab)

    @property
    def bits_per_coordinate(self) -> float:
        """Bits (ln P / ln 2) divided by the width."""
        return self.log_packing / (math.log(2.0) * self.width)

    def log_count(self, m: int, n: int | None = None) -> float:
        """Return the log of the most outputs that m vectors can produce (Theorem 4.5), in nats.

        Parameters
        ----------
        m
            Number of prompt vectors, at least 1.
        n
            Output length in tokens; given, the trivial V^n bounds the count too.
        """
        count = checks.whole("m", m) * self.log_packing
        return count if n is None else min(count, checks.whole("n", n) * math.log(self.vocab))

    def log_share(self, n: int, m: int) -> float:
        """Return the log of the largest reachable share of all V^n sequences, in nats, at most 0."""
        asked = checks.whole("n", n) * math.log(self.vocab)
        excess = self.log_count(m) - asked
        return excess if excess < -_SAME * asked else 0.0

    def longest_fully_possible(self, m: int) -> int:
        """Return the longest n at which this limit still allows every sequence, floor(C m), in tokens."""
        n = math.floor(self.log_count(m) / math.log(self.vocab))
        return n + 1 if self.log_share(n + 1, m) == 0.0 else n

    def least_vectors(self, n: int) -> int | None:
        """Return the smallest m at which this limit still allows every sequence of n tokens; None: no m does.

        The inverse of `longest_fully_possible`: ceil(n / C), with the same tolerance.
        """
        if self.log_packing <= 0:
            return None
        m = max(1, math.ceil(checks.whole("n", n) / self.tokens_per_vector))
        while m > 1 and self.log_share(n, m - 1) == 0.0:
            m -= 1
        while self.log_share(n, m) < 0.0:
            m += 1
        return m

    def length_at_share(self, q: float, m: int) -> float:
        """Return the length C m + ln(1/q) / ln V beyond which less than a share q is reachable, in tokens."""
        return (self.log_count(m) - math.log(checks.fraction("share", q))) / math.log(self.vocab)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of ``results.limits``, JSON-ready."""
        return {
            "name": self.name,
            "support": self.support,
            "norm": self.norm,
            "premise": self.premise,
            "packing": self.packing,
            "log_packing_nats": self.log_packing,
            "tokens_per_vector": self.tokens_per_vector,
            "bits_per_coordinate": self.bits_per_coordinate,
            "source": self.source,
            "note": self.note,
        }


def limit_from(support: AbstractSupport, *, name: str, eps: float | None, vocab: int, note: str) -> Limit:
    """Return the limit that a support gives at precision eps (None only for a `FloatGrid`)."""
    if eps is None and not isinstance(support, FloatGrid):
        raise InputError(problem("a precision eps for this support", "none", "pass eps above 0"))
    return Limit(
        name=name,
        support=support.kind,
        norm=support.norm,
        premise=support.premise,
        packing=support.packing,
        log_packing=support.log_packing(eps if eps is not None else 0.0),
        width=support.dimension,
        vocab=vocab,
        source=support.source,
        note=note,
    )


def limits(
    *,
    width: int,
    vocab: int,
    dtype: str = "float16",
    radius: float | None = None,
    input_box: tuple[Vector, Vector] | None = None,
    input_radius: float | None = None,
    hidden_box: tuple[Vector, Vector] | None = None,
    hidden_radius: float | None = None,
    norm_kind: str | None = None,
    norm_gain: Vector | None = None,
    norm_bias: Vector | None = None,
    vector_dtype: str = "float32",
    hidden_width: int | None = None,
) -> tuple[Limit, ...]:
    """Return every limit that the given numbers allow.

    Precision is the paper's eps = u(dtype) r, with r the largest |coordinate|: of the inputs for input
    supports, of the norm ellipsoid wherever that enters, of the samples for their box alone. The ellipsoid
    follows from the weights, so its eps does not move with what was measured, and a measured box beside it
    can only tighten the limit; the eps of samples alone follows the largest of them.

    Parameters
    ----------
    width
        d, coordinates of one prompt vector.
    vocab
        V, usable ids, at least 2.
    dtype
        Format whose unit roundoff defines eps.
    radius
        r of the paper's ball; it cancels in 1 + 2 r / eps and is only named in the note.
    input_box, input_radius
        Corners (each of shape (width,)) and largest |coordinate| of the region the vectors are held to.
    hidden_box, hidden_radius
        The same of sampled final hidden states, shape (hidden_width,).
    norm_kind, norm_gain, norm_bias
        Final norm as applied; kinds other than ``rms`` and ``layer`` give no limit.
    vector_dtype
        Format in which prompt vectors are stored.
    hidden_width
        Width of final hidden states where it is not ``width``.

    Raises
    ------
    InputError
        For sizes below 1 (V below 2), an unknown dtype, a radius that is not above 0, or another shape.
    """
    asked = _Asked(checks.whole("vocabulary size", vocab, least=2), dtype)
    width = checks.whole("width", width)
    deep = width if hidden_width is None else checks.whole("hidden width", hidden_width)
    box = None
    if hidden_box is not None:
        corners = checks.interval("hidden box", *hidden_box, width=deep)
        box = Box(*corners, premise="hidden", source="sampled final hidden states")
    ellipsoid = None
    if norm_kind in ("rms", "layer"):
        gain = checks.vector("norm gain", norm_gain if norm_gain is not None else [], width=deep)
        ellipsoid = norm_ellipsoid(norm_kind, gain, norm_bias)
    region = None
    if input_box is not None:
        corners = checks.interval("input box", *input_box, width=width)
        region = Box(*corners, premise="input", source="real token embeddings")
    return (
        _paper_ball(asked, deep, radius if radius is not None else hidden_radius),
        *_hidden_limits(asked, box, ellipsoid, hidden_radius),
        *_input_limits(asked, width, region, input_radius),
        *_grid_limits(asked, width, region, vector_dtype),
    )


def least_widths(n: int, m: int, *, vocab: int, dtype: str, vector_dtype: str) -> dict[str, int]:
    """Return the smallest width at which each limit allows every sequence of n tokens from m vectors.

    Only limits that need no weights are asked: the paper's ball, and the finite values of the format. Both
    have ln P = c d, so the width is ceil(n ln V / (m c)), with the tolerance of `Limit.log_share`.
    """

    def allowed(width: int) -> dict[str, bool]:
        found = limits(width=width, vocab=vocab, dtype=dtype, vector_dtype=vector_dtype)
        return {one.name: one.log_share(n, m) == 0.0 for one in found}

    needed = {}
    for one in limits(width=1, vocab=vocab, dtype=dtype, vector_dtype=vector_dtype):
        width = max(1, math.ceil(n * math.log(vocab) / (checks.whole("m", m) * one.log_packing)))
        while width > 1 and allowed(width - 1)[one.name]:
            width -= 1
        while not allowed(width)[one.name]:
            width += 1
        needed[one.name] = width
    return needed


def tightest(found: Iterable[Limit]) -> dict[Premise, Limit]:
    """Return the smallest limit under each premise among those that are proved or counted."""
    best: dict[Premise, Limit] = {}
    for item in found:
        if item.packing == "convention":
            continue
        if item.premise not in best or item.log_packing < best[item.premise].log_packing:
            best[item.premise] = item
    return best


def unbounded_context(support: AbstractRegion, *, eps: float, vocab: int, order: int = 1) -> float:
    """Return log10 of the threshold length, in tokens, when the prompt may be of any length (Corollary 4.10).

    A prompt is then a probability measure on S. Measures closer than eps in Wasserstein distance of order p
    are not told apart, so at most N_W are, with ln N_W <= p K ln(8 e D / eps): D the diameter of S and K the
    number of balls of radius eps/2 that cover it (Bolley, Guillin, Villani 2007, Theorem A.1). A largest
    packing at eps/2 covers at that scale, so ln K <= ln P(S, eps/2); for the ball d ln(1 + 4 r / eps).

    Raises
    ------
    InputError
        When eps is not below the diameter: nothing is told apart then.
    """
    eps = checks.positive("eps", eps)
    tokens = math.log(checks.whole("vocabulary size", vocab, least=2))
    if not eps < support.diameter:
        got = f"eps {eps} for diameter {support.diameter}"
        raise InputError(problem("eps below the diameter of the support", got, "pass a finer precision"))
    per_ball = math.log(8.0) + 1.0 + math.log(support.diameter) - math.log(eps)
    log_measures = math.log(checks.whole("order", order)) + support.log_packing(eps / 2) + math.log(per_ball)
    return (log_measures - math.log(tokens)) / math.log(10.0)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Vocabulary size, and the dtype behind eps."""

    vocab: int
    dtype: str

    def limit(self, name: str, support: AbstractSupport, r: float, note: str) -> Limit:
        """Return the limit of a support at eps = u(dtype) r."""
        return limit_from(support, name=name, eps=precision_of(self.dtype, r), vocab=self.vocab, note=note)

    def used(self, r: float, whose: str) -> str:
        """Say which eps was used."""
        return f"eps = u({self.dtype}) r = {precision_of(self.dtype, r):.4g}, r = {r:.6g} {whose}"


def _paper_ball(asked: _Asked, width: int, radius: float | None) -> Limit:
    r = 1.0 if radius is None else checks.positive("radius", radius)
    measured = "" if radius is None else f" with r = {r:.6g}"
    ball = Ball(width, r, premise="hidden", source="width and dtype only")
    steps = 1 + 2 / unit_roundoff(asked.dtype)
    note = (
        f"eps = u({asked.dtype}) r{measured}, so 1 + 2 r / eps = {steps:.0f} whatever r is: this limit "
        "carries no information about the model beyond d and V"
    )
    return asked.limit("ball (paper)", ball, r, note)


def _hidden_limits(
    asked: _Asked, box: Box | None, ellipsoid: Ellipsoid | None, radius: float | None
) -> list[Limit]:
    sampled = "more samples can only enlarge the box"
    certain = "holds for every hidden state the model can have"
    found = []
    if box is not None:
        r = checks.positive("hidden radius", box.radius if radius is None else radius)
        note = f"{asked.used(r, 'the largest |coordinate| of the samples')}, which eps follows; {sampled}"
        found.append(asked.limit("box of hidden states", box, r, note))
    if ellipsoid is not None:
        r = checks.positive("largest |coordinate| of the norm ellipsoid", ellipsoid.radius)
        used = asked.used(r, "the largest |coordinate| of the norm ellipsoid, whatever was measured")
        found.append(asked.limit("norm ellipsoid", ellipsoid, r, f"{used}; {certain}"))
        tighter = BoxEllipsoid(ellipsoid.extent, ellipsoid, premise="hidden", source=ellipsoid.source)
        note = f"{used}; {certain}; grown coordinate by coordinate, which counts short axes better"
        found.append(asked.limit("norm ellipsoid (tighter)", tighter, r, note))
        if box is not None:
            both = BoxEllipsoid(box, ellipsoid, source=f"{box.source} and {ellipsoid.source}")
            found.append(asked.limit("box and norm ellipsoid", both, r, f"{used}; {sampled}"))
    return found


def _input_limits(asked: _Asked, width: int, box: Box | None, radius: float | None) -> list[Limit]:
    if radius is None and box is None:
        return []
    if radius is None and box is not None:
        radius = box.radius
    r = checks.positive("input radius", radius if radius is not None else 0.0)
    used = asked.used(r, "the largest |coordinate| of the inputs")
    ball = Ball(width, r, premise="input", source="real token embeddings")
    found = [asked.limit("ball of inputs", ball, r, f"{used}; r cancels as in the paper's ball")]
    if box is not None:
        found.append(asked.limit("box of inputs", box, r, f"{used}; holds for vectors kept inside the box"))
    return found


def _grid_limits(asked: _Asked, width: int, box: Box | None, dtype: str) -> list[Limit]:
    found = []
    if box is not None:
        grid = FloatGrid(width, dtype, box.lo, box.hi, premise="input", source=f"{box.source}, {dtype}")
        note = f"number of {dtype} vectors inside the box; no eps; holds for vectors kept inside the box"
        found.append(limit_from(grid, name="float grid of inputs", eps=None, vocab=asked.vocab, note=note))
    grid = FloatGrid(width, dtype, premise="format", source=f"format {dtype}")
    values = number_format(dtype).finite_values
    note = f"{values} finite values per coordinate; no eps; holds for every vector stored in {dtype}"
    found.append(limit_from(grid, name="every finite value", eps=None, vocab=asked.vocab, note=note))
    return found
