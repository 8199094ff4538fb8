"""Limits on what a prompt can make a model say: counts, shares, slopes and thresholds (M26, Section 4).

Units: nats per vector inside, tokens per vector and bits per coordinate for people. No count or share leaves
log space, so no width, vocabulary or length overflows.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from lmreach.maths import checks
from lmreach.errors import InputError, problem
from lmreach.maths.precision import number_format, precision_of, unit_roundoff
from lmreach.maths.supports import (
    AbstractSupport,
    Ball,
    Box,
    BoxEllipsoid,
    FloatGrid,
    Packing,
    Premise,
    norm_ellipsoid,
)

Vector = Float[np.ndarray, " d"]
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
        """C = ln P / ln V: up to C m tokens may all be reachable, beyond it the share falls (Corollary 4.6)."""
        return self.log_packing / math.log(self.vocab)

    @property
    def bits_per_coordinate(self) -> float:
        """ln P in bits, divided by the width."""
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
        """Return the log of the largest share of all V^n sequences that m vectors can reach, in nats, at most 0."""
        asked = checks.whole("n", n) * math.log(self.vocab)
        excess = self.log_count(m) - asked
        return excess if excess < -_SAME * asked else 0.0

    def longest_fully_possible(self, m: int) -> int:
        """Return the longest n at which this limit still allows every sequence, floor(C m), in tokens."""
        n = math.floor(self.log_count(m) / math.log(self.vocab))
        return n + 1 if self.log_share(n + 1, m) == 0.0 else n

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

    Precision is the paper's eps = u(dtype) r, with r the largest |coordinate| of the support: that of the inputs
    for input supports; for hidden supports the measured one where there is one, else the support's own.
    So two hidden limits compare at one eps only when a hidden box or radius is given.

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
        For sizes below 1 (V below 2), an unknown dtype, a radius that is not above 0, arrays of another shape.
    """
    width, vocab = checks.whole("width", width), checks.whole("vocabulary size", vocab, least=2)
    deep = width if hidden_width is None else checks.whole("hidden width", hidden_width)
    unit_roundoff(dtype)
    found = [_paper_ball(deep, vocab, dtype, radius if radius is not None else hidden_radius)]
    if hidden_box is not None or norm_kind in ("rms", "layer"):
        found += _hidden_limits(
            deep, vocab, dtype, hidden_box, hidden_radius, norm_kind, norm_gain, norm_bias
        )
    if input_box is not None or input_radius is not None:
        found += _input_limits(width, vocab, dtype, input_box, input_radius, vector_dtype)
    found.append(_every_value(width, vocab, vector_dtype))
    return tuple(found)


def tightest(found: Iterable[Limit]) -> dict[Premise, Limit]:
    """Return the smallest limit under each premise among those that are proved or counted."""
    best: dict[Premise, Limit] = {}
    for item in found:
        if item.packing == "convention":
            continue
        if item.premise not in best or item.log_packing < best[item.premise].log_packing:
            best[item.premise] = item
    return best


class _Metric(Protocol):
    """A support that has a diameter in its own norm."""

    @property
    def diameter(self) -> float: ...

    def log_packing(self, eps: float) -> float: ...


def unbounded_context(support: _Metric, *, eps: float, vocab: int, order: int = 1) -> float:
    """Return log10 of the threshold length, in tokens, when the prompt may be of any length (Corollary 4.10).

    A prompt is then a probability measure on S. Measures closer than eps in Wasserstein distance of order p
    are not told apart, so at most N_W are, with ln N_W <= p K ln(8 e D / eps): D the diameter of S and K the
    number of balls of radius eps/2 that cover it (Bolley, Guillin, Villani 2007, Theorem A.1). A
    largest packing at eps/2 covers at that scale, so ln K <= ln P(S, eps/2); the ball gives d ln(1 + 4 r / eps).

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


def _paper_ball(width: int, vocab: int, dtype: str, radius: float | None) -> Limit:
    r = 1.0 if radius is None else checks.positive("radius", radius)
    measured = "" if radius is None else f" (r = {r:.6g})"
    ball = Ball(width, r, premise="hidden", source="width and dtype only")
    note = (
        f"eps = u({dtype}) r{measured}, so 1 + 2 r / eps = {1 + 2 / unit_roundoff(dtype):.0f} whatever r is: "
        "this limit carries no information about the model beyond d and V"
    )
    return limit_from(ball, name="ball (paper)", eps=precision_of(dtype, r), vocab=vocab, note=note)


def _hidden_limits(
    width: int,
    vocab: int,
    dtype: str,
    corners: tuple[Vector, Vector] | None,
    radius: float | None,
    norm_kind: str | None,
    gain: Vector | None,
    bias: Vector | None,
) -> list[Limit]:
    box = ellipsoid = None
    if corners is not None:
        box = Box(*checks.interval("hidden box", *corners, width=width), source="sampled final hidden states")
    if norm_kind in ("rms", "layer"):
        gain = checks.vector("norm gain", gain if gain is not None else [], width=width)
        ellipsoid = norm_ellipsoid(norm_kind, gain, bias)
    r, whose = _hidden_radius(radius, box, ellipsoid)
    eps = precision_of(dtype, r)
    used = f"eps = u({dtype}) r = {eps:.4g}, r = {r:.6g} the largest |coordinate| of {whose}"
    found = []
    if box is not None:
        note = f"{used}; the sampled box grows with the number of samples"
        found.append(limit_from(box, name="box of hidden states", eps=eps, vocab=vocab, note=note))
    if ellipsoid is not None:
        note = f"{used}; holds for every hidden state the model can have"
        found.append(limit_from(ellipsoid, name="norm ellipsoid", eps=eps, vocab=vocab, note=note))
    if box is not None and ellipsoid is not None:
        both = BoxEllipsoid(box, ellipsoid, source=f"{box.source} and {ellipsoid.source}")
        note = f"{used}; the sampled box grows with the number of samples"
        found.append(limit_from(both, name="box and norm ellipsoid", eps=eps, vocab=vocab, note=note))
    return found


def _hidden_radius(radius: float | None, box: Box | None, ellipsoid: object) -> tuple[float, str]:
    """Return r and whose it is: measured if there are samples, else that of the norm ellipsoid."""
    if radius is not None:
        return checks.positive("hidden radius", radius), "the sampled hidden states"
    support = box if box is not None else ellipsoid
    whose = "the sampled hidden states" if box is not None else "the norm ellipsoid"
    return checks.positive("largest |coordinate|", getattr(support, "radius")), whose


def _input_limits(
    width: int,
    vocab: int,
    dtype: str,
    corners: tuple[Vector, Vector] | None,
    radius: float | None,
    vector_dtype: str,
) -> list[Limit]:
    source = "real token embeddings"
    box = None
    if corners is not None:
        box = Box(*checks.interval("input box", *corners, width=width), premise="input", source=source)
        radius = box.radius if radius is None else radius
    r = checks.positive("input radius", 0.0 if radius is None else radius)
    eps = precision_of(dtype, r)
    used = f"eps = u({dtype}) r = {eps:.4g}, r = {r:.6g} the largest |coordinate| of the inputs"
    ball = Ball(width, r, premise="input", source=source)
    note = f"{used}; r cancels as in the paper's ball"
    found = [limit_from(ball, name="ball of inputs", eps=eps, vocab=vocab, note=note)]
    if box is not None:
        note = f"{used}; holds for vectors kept inside the box"
        found.append(limit_from(box, name="box of inputs", eps=eps, vocab=vocab, note=note))
        grid = FloatGrid(
            width, vector_dtype, box.lo, box.hi, premise="input", source=f"{source}, {vector_dtype}"
        )
        note = (
            f"number of {vector_dtype} vectors inside the box; no eps; holds for vectors kept inside the box"
        )
        found.append(limit_from(grid, name="float grid of inputs", eps=None, vocab=vocab, note=note))
    return found


def _every_value(width: int, vocab: int, vector_dtype: str) -> Limit:
    grid = FloatGrid(width, vector_dtype, premise="format", source=f"format {vector_dtype}")
    values = number_format(vector_dtype).finite_values
    note = f"{values} finite values per coordinate; no eps; holds for every vector stored in {vector_dtype}"
    return limit_from(grid, name="every finite value", eps=None, vocab=vocab, note=note)
