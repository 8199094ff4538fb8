"""Log probability of a polyhedron under a standard Gaussian, however small: multilevel splitting.

The event A z + b > 0 (all rows), z ~ N(0, I_d), is cut into nested events A z + b > gamma_k (rows of unit
norm) with gamma_1 < ... < gamma_L = 0, each holding about 1/e of the one before. Particles that reach a level
are copied and moved by elliptical slice sampling restricted to it; with linear constraints the allowed angles
of an ellipse are known exactly, so no try is rejected (Gessner, Kanjilal, Hennig, "Integrals over Gaussians
under linear domain constraints", AISTATS 2020).

What differs from the paper: it takes the product over one run with adaptive levels as the answer. Here a
pilot run fixes levels and numbers of moves, and R runs that share nothing else each give an estimate that is
unbiased however badly the moves mix (Del Moral, "Feynman-Kac formulae", 2004, chapter 7), so the spread over
runs is an honest standard error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from lmreach.errors import InputError, problem
from lmreach.maths.checks import whole

__all__ = ["LogProbability", "Splitting", "copies", "log_polyhedron", "lognormal_mean", "next_level"]

_FEWEST_MOVES, _MOST_MOVES = 4, 64
_FORGET = 0.5  # a level is left when the mean of cos(angle) over its moves multiplies to this
_RETRIES = 2  # with doubled particles, after a run died out

Points = Float[np.ndarray, "n d"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """How much work is spent.

    Attributes
    ----------
    particles
        N per run. The relative variance of one run is about 1.7 levels / N when the moves mix.
    replicates
        R runs, at least 2; they set the degrees of freedom of the interval.
    start
        Independent draws per run before the first level, at least N: they save ln(start / N) nats.
    floor
        Nats: a probability that the pilot finds below exp(floor) is only reported as below it.
    confidence
        Level of the interval.
    """

    particles: int = 128
    replicates: int = 10
    start: int = 1024
    floor: float = -300.0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        whole("particles", self.particles, least=8)
        whole("replicates", self.replicates, least=2)
        whole("draws at the start", self.start, least=self.particles)
        if not (math.isfinite(self.floor) and self.floor < 0):
            raise InputError(problem("a finite floor below 0 nats", f"{self.floor}", "use -300"))
        if not 0 < self.confidence < 1:
            raise InputError(problem("confidence in (0, 1)", f"{self.confidence}", "use 0.95"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogProbability:
    """A log probability with its uncertainty, in nats.

    Attributes
    ----------
    verdict
        ``estimated``, or ``below``: not more than exp(at_most).
    value, se, low, high
        ln P, its standard error and interval; None for ``below``.
    at_most
        For ``below``: the floor, or the estimated log probability of the deepest level that all runs reached.
    confidence
        Level of the interval.
    levels
        Number of nested events.
    logs
        Estimates of the single runs, shape (R,), nats; empty for ``below``. Their exponentials are unbiased.
    """

    verdict: Literal["estimated", "below"]
    confidence: float
    levels: int
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    at_most: float | None = None
    logs: tuple[float, ...] = ()

    def words(self) -> str:
        """Return the result as a person would say it."""
        if self.value is None:
            return f"below {self.at_most:.6g} nats"
        level = f"{self.confidence * 100:g} % interval"
        return f"{self.value:.6g} nats ({level} {self.low:.6g} to {self.high:.6g})"

    @classmethod
    def of(cls, logs: Float[np.ndarray, " r"], levels: int, confidence: float) -> "LogProbability":
        """Combine runs that all reached the last level."""
        value, se, low, high = lognormal_mean(logs, confidence)
        return cls(
            verdict="estimated",
            confidence=confidence,
            levels=levels,
            value=value,
            se=se,
            # A log probability is at most 0, so the part of the interval above says nothing.
            low=min(low, 0.0),
            high=min(high, 0.0),
            logs=tuple(float(log) for log in logs),
        )


def lognormal_mean(
    logs: Float[np.ndarray, " r"], confidence: float = 0.95
) -> tuple[float, float, float, float]:
    """Return ln E[v] from r independent unbiased estimates v whose logs are close to normal (Cox's method).

    With mean m and variance s^2 of the logs: ln E[v] = m + s^2 / 2, with squared standard error
    s^2 / r + s^4 / (2 (r - 1)), and a Student interval of r - 1 degrees of freedom (Zhou, Gao, "Confidence
    intervals for the log-normal mean", 1997, with Student's quantile for the normal one as r is small). A
    product of many independent level shares is close to lognormal; the plain mean of v would be ruled by its
    largest value as soon as s exceeds 1.

    Returns
    -------
    value, se, low, high
        Nats.
    """
    r = len(logs)
    mean, variance = float(np.mean(logs)), float(np.var(logs, ddof=1))
    value = mean + variance / 2
    se = math.sqrt(variance / r + variance**2 / (2 * (r - 1)))
    reach = float(special.stdtrit(r - 1, 0.5 + confidence / 2)) * se
    return value, se, value - reach, value + reach


def copies(
    alive: Bool[np.ndarray, "r n"], particles: int, rng: np.random.Generator
) -> Int[np.ndarray, "r p"]:
    """Return which particle each of the next ones starts from: survivors in random order, over and over.

    Every survivor gets the same number of copies up to one, in expectation exactly the same, which keeps the
    runs unbiased. Every run must have a survivor.
    """
    order = np.argsort(np.where(alive, rng.random(alive.shape), 2.0), axis=1)
    turn = np.arange(particles)[None, :] % alive.sum(axis=1, keepdims=True)
    chosen: Int[np.ndarray, "r p"] = np.take_along_axis(order, turn, axis=1)
    return chosen


def next_level(margins: Float[np.ndarray, " n"], keep: int) -> float:
    """Return the level that ``keep`` of the margins exceed, at most 0 (ties aside)."""
    descending = np.sort(margins)[::-1]
    return float(min(descending[min(keep, len(descending) - 1)], 0.0))


def log_polyhedron(
    rows: Float[np.ndarray, "c d"],
    offset: Float[np.ndarray, " c"],
    *,
    rng: np.random.Generator,
    options: Splitting | None = None,
) -> LogProbability:
    """Estimate ln P[rows z + offset > 0 in every row] for z ~ N(0, I_d).

    Slow and plain: the reference for faster routines. Cost grows as c d per particle and move, and the number
    of moves that forget a level with the square of the constraints active at once.

    Parameters
    ----------
    rows, offset
        Shapes (c, d) and (c,); scaling a row together with its offset changes nothing.
    rng
        Source of randomness.
    options
        Work to spend, see `Splitting`.

    Raises
    ------
    InputError
        For shapes that do not fit or numbers that are not finite.
    """
    asked = options if options is not None else Splitting()
    a, b = _unit_rows(rows, offset)
    zero = ~a.any(axis=1)
    if (b[zero] <= 0).any():  # 0 > 0: no z does it
        return LogProbability(verdict="below", confidence=asked.confidence, levels=0, at_most=asked.floor)
    event = _Event(a[~zero], b[~zero])
    if not len(event.b):
        return LogProbability.of(np.zeros(asked.replicates), 0, asked.confidence)
    particles = asked.particles
    for attempt in range(_RETRIES + 1):
        last = attempt == _RETRIES
        plan = _pilot(event, asked, particles, rng)
        if plan is None:
            break
        found = _runs(event, asked, particles, plan, rng, last=last)
        if found is not None:
            return found
        particles *= 2
    return LogProbability(verdict="below", confidence=asked.confidence, levels=0, at_most=asked.floor)


@dataclass(frozen=True, slots=True)
class _Event:
    """Rows of unit norm and offsets of A z + b > level."""

    a: Float[np.ndarray, "c d"]
    b: Float[np.ndarray, " c"]

    def margins(self, z: Points) -> Float[np.ndarray, " n"]:
        smallest: Float[np.ndarray, " n"] = (z @ self.a.T + self.b).min(axis=1)
        return smallest

    def move(self, z: Points, level: float, rng: np.random.Generator) -> tuple[Points, float]:
        """Make one elliptical slice move inside the level; return the points and the mean |cos| of angles."""
        nu = rng.standard_normal(z.shape)
        angle = uniform_angles(z @ self.a.T, nu @ self.a.T, self.b - level, rng.random(len(z)))
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        moved = z * cos + nu * sin
        # Rounding may put a point a hair outside: it then stays where it was.
        inside = self.margins(moved) > level
        return np.where(inside[:, None], moved, z), float(np.abs(cos).mean())


def uniform_angles(
    at: Float[np.ndarray, "n c"],
    towards: Float[np.ndarray, "n c"],
    offset: Float[np.ndarray, " c"],
    uniforms: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Return angles uniform over all t with at cos(t) + towards sin(t) + offset > 0 in every constraint.

    Angle 0 must be allowed. A constraint is r cos(t - phi) + offset > 0 and forbids one open arc of (0, 2 pi)
    or none; forbidden arcs are merged in order of their starts, and the gaps between them are drawn from.
    """
    r = np.hypot(at, towards)
    cuts = r > np.abs(offset)
    half = np.arccos(np.clip(-offset / np.where(cuts, r, np.inf), -1.0, 1.0))
    begin = np.where(cuts, (np.arctan2(towards, at) + half) % (2 * np.pi), 2 * np.pi)
    end = np.where(cuts, np.minimum(begin + 2 * (np.pi - half), 2 * np.pi), 2 * np.pi)
    order = np.argsort(begin, axis=1)
    begin, end = np.take_along_axis(begin, order, axis=1), np.take_along_axis(end, order, axis=1)
    n = len(at)
    opens = np.concatenate([np.zeros((n, 1)), np.maximum.accumulate(end, axis=1)], axis=1)
    closes = np.concatenate([begin, np.full((n, 1), 2 * np.pi)], axis=1)
    summed = np.cumsum(np.maximum(closes - opens, 0.0), axis=1)
    wanted = uniforms * summed[:, -1]
    gap = np.minimum((summed <= wanted[:, None]).sum(axis=1), summed.shape[1] - 1)[:, None]
    left = np.take_along_axis(summed, gap, axis=1)[:, 0] - wanted
    angle: Float[np.ndarray, " n"] = np.take_along_axis(closes, gap, axis=1)[:, 0] - left
    return angle


@dataclass(frozen=True, slots=True)
class _Plan:
    """Levels (the last is 0) and how many moves to make inside each but the last."""

    levels: tuple[float, ...]
    moves: tuple[int, ...]


def _unit_rows(
    rows: Float[np.ndarray, "c d"], offset: Float[np.ndarray, " c"]
) -> tuple[Float[np.ndarray, "c d"], Float[np.ndarray, " c"]]:
    a, b = np.asarray(rows, dtype=np.float64), np.asarray(offset, dtype=np.float64)
    if a.ndim != 2 or a.shape[1] < 1 or b.shape != a.shape[:1]:
        got = f"shapes {a.shape} and {b.shape}"
        raise InputError(problem("rows (c, d) with d >= 1 and offsets (c,)", got, "one offset per row"))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError(problem("finite rows and offsets", "NaN or infinity", "check the constraints"))
    norms = np.linalg.norm(a, axis=1)
    unit = np.where(norms > 0, norms, 1.0)
    return a / unit[:, None], b / unit


def _pilot(event: _Event, asked: Splitting, particles: int, rng: np.random.Generator) -> _Plan | None:
    """Return levels found by one adaptive run, or None if it falls below the floor."""
    draws = _start(event, max(asked.start, particles), 1, rng)
    margins = event.margins(draws)
    levels, moves = [next_level(margins, particles)], list[int]()
    reached = math.log(max(float((margins > levels[0]).mean()), 1 / len(margins)))
    z = draws
    while levels[-1] < 0:
        if reached < asked.floor:
            return None
        alive = margins > levels[-1]
        if not alive.any():
            return None
        z = z[copies(alive[None], particles, rng)[0]]
        z, made = _forget(lambda p: event.move(p, levels[-1], rng), z)
        moves.append(made)
        margins = event.margins(z)
        level = next_level(margins, round(particles / math.e))
        reached += math.log(max(float((margins > level).mean()), 1 / particles))
        levels.append(level)
    return _Plan(tuple(levels), tuple(moves))


def _forget(move: Callable[[Points], tuple[Points, float]], z: Points) -> tuple[Points, int]:
    """Move until the product of the mean |cos| falls below its limit; return how many moves that took."""
    left, made = 1.0, 0
    while made < _FEWEST_MOVES or (left > _FORGET and made < _MOST_MOVES):
        z, cos = move(z)
        left *= cos
        made += 1
    return z, made


def _start(event: _Event, draws: int, runs: int, rng: np.random.Generator) -> Points:
    return rng.standard_normal((runs * draws, event.a.shape[1]))


def _runs(
    event: _Event, asked: Splitting, particles: int, plan: _Plan, rng: np.random.Generator, *, last: bool
) -> LogProbability | None:
    """Run the replicates on fixed levels; None if one died out, unless this was the last try."""
    r, draws = asked.replicates, max(asked.start, particles)
    z = _start(event, draws, r, rng)
    logs = np.zeros(r)
    for k, level in enumerate(plan.levels):
        alive = (event.margins(z) > level).reshape(r, -1)
        if not alive.any(axis=1).all():
            return _died(logs, k, asked) if last else None
        logs += np.log(alive.mean(axis=1))
        if level < 0:
            first = np.arange(r)[:, None] * alive.shape[1]
            z = z[(first + copies(alive, particles, rng)).ravel()]
            for _ in range(plan.moves[k]):
                z, _cos = event.move(z, level, rng)
    return LogProbability.of(logs, len(plan.levels), asked.confidence)


def _died(logs: Float[np.ndarray, " r"], passed: int, asked: Splitting) -> LogProbability:
    at_most = max(asked.floor, min(0.0, lognormal_mean(logs)[0]))
    return LogProbability(verdict="below", confidence=asked.confidence, levels=passed, at_most=at_most)
