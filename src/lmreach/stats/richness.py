"""How many kinds there are, from how often each was seen in a sample: richness, coverage, discovery.

A kind is a distinct output here, an individual a prompt; the estimators are those of ecology. Everything is
computed from f_k, the number of kinds seen exactly k times. Chao1 estimates a lower bound: kinds so rare
that no sample would show them cannot be seen in any f_k.

Symbols: N individuals, D kinds seen, f_k as above, z a normal quantile.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import gammaln
from scipy.stats import norm

from lmreach.errors import InputError, problem
from lmreach.stats.accessibility import check_confidence

__all__ = ["Coverage", "Frequencies", "Richness", "ace", "chao1", "coverage", "discovery"]

_RARE = 10  # kinds seen up to so often are "rare" for ACE (Chao and Lee 1992)


@dataclass(frozen=True)
class Frequencies:
    """f_k of a sample.

    Attributes
    ----------
    of
        k to f_k; both at least 1.
    """

    of: Mapping[int, int]

    def __post_init__(self) -> None:
        if not self.of or any(k < 1 or f < 1 for k, f in self.of.items()):
            got = f"{dict(self.of)}"
            raise InputError(
                problem("kinds seen at least once", got, "pass k -> number of kinds seen k times")
            )

    @property
    def seen(self) -> int:
        """D."""
        return sum(self.of.values())

    @property
    def sample(self) -> int:
        """N."""
        return sum(k * f for k, f in self.of.items())

    def __getitem__(self, k: int) -> int:
        return self.of.get(k, 0)


@dataclass(frozen=True, slots=True)
class Richness:
    """An estimate of how many kinds there are, with an interval.

    Attributes
    ----------
    value, low, high
        Kinds; the interval never reaches below the number seen.
    standard_error
        In kinds.
    seen
        D.
    confidence
        Of the interval.
    """

    value: float
    low: float
    high: float
    standard_error: float
    seen: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of all individuals whose kind was seen: 1 minus the chance that the next one is new."""

    value: float
    low: float
    high: float
    confidence: float


def chao1(frequencies: Frequencies, confidence: float = 0.95) -> Richness:
    """Return Chao's lower bound, D + (N - 1)/N f_1^2 / (2 f_2), with its log-normal interval.

    Chao, Scand. J. Statist. 11 (1984) and Biometrics 43 (1987); finite-sample factor and variances as in
    Chao et al., Ecol. Monogr. 84 (2014), Appendix G. With f_2 = 0: D + (N - 1)/N f_1 (f_1 - 1) / 2.
    """
    once, twice, n, seen = frequencies[1], frequencies[2], frequencies.sample, frequencies.seen
    k = (n - 1) / n
    if twice:
        ratio = once / twice
        extra = k * once * ratio / 2
        variance = twice * (k * ratio**2 / 2 + k**2 * ratio**3 + k**2 * ratio**4 / 4)
    else:
        extra = k * once * (once - 1) / 2
        total = seen + extra
        variance = extra + k**2 * once * (2 * once - 1) ** 2 / 4 - k**2 * once**4 / (4 * total)
    return _with_interval(seen, extra, max(variance, 0.0), confidence)


def ace(frequencies: Frequencies, confidence: float = 0.95) -> Richness:
    """Return the abundance-based coverage estimate of Chao and Lee (J. Am. Stat. Assoc. 87, 1992).

    Kinds seen more than 10 times are taken as they are; the rest are corrected by their coverage and by how
    unequal they are. The variance is the delta method's with multinomial f_k, derivatives by differences.
    When every rare kind was seen once there is no coverage to divide by, and `chao1` is returned.
    """
    rare = np.array([frequencies[k] for k in range(1, _RARE + 1)], dtype=np.float64)
    common = float(frequencies.seen - rare.sum())
    individuals = float((rare * np.arange(1, _RARE + 1)).sum())
    if individuals and rare[0] == individuals:
        return chao1(frequencies, confidence)
    total = common + _ace_rare(rare)
    gradient = np.append(_slopes(_ace_rare, rare), 1.0)
    f = np.append(rare, common)
    covariance = np.diag(f) - np.outer(f, f) / total
    variance = float(gradient @ covariance @ gradient)
    return _with_interval(frequencies.seen, total - frequencies.seen, max(variance, 0.0), confidence)


def _ace_rare(rare: Float[np.ndarray, " k"]) -> float:
    """Return the estimated number of rare kinds."""
    k = np.arange(1, len(rare) + 1)
    individuals, kinds = float((k * rare).sum()), float(rare.sum())
    if individuals == 0:
        return 0.0
    covered = 1 - rare[0] / individuals
    unequal = 0.0
    if individuals > 1:
        pairs = float((k * (k - 1) * rare).sum()) / (individuals * (individuals - 1))
        unequal = max(kinds / covered * pairs - 1.0, 0.0)
    return float((kinds + rare[0] * unequal) / covered)


def _slopes(
    function: Callable[[Float[np.ndarray, " k"]], float], at: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """Return derivatives by central differences, 0 where ``at`` is 0: a count of 0 has no variance either."""
    slopes = np.zeros(len(at))
    for i in np.flatnonzero(at):
        step = np.zeros(len(at))
        step[i] = 1e-4
        slopes[i] = (function(at + step) - function(at - step)) / 2e-4
    return slopes


def coverage(frequencies: Frequencies, confidence: float = 0.95) -> Coverage:
    """Return the share of individuals whose kind was seen, as Good and Turing estimate it.

    1 - f_1 / N with the correction of Chao and Jost (Ecology 93, 2012); the interval is that of Esty (Ann.
    Statist. 11, 1983), half-width z sqrt(f_1 (1 - f_1/N) + 2 f_2) / N, cut to [0, 1].
    """
    check_confidence(confidence)
    once, twice, n = frequencies[1], frequencies[2], frequencies.sample
    if twice:
        kept = (n - 1) * once / ((n - 1) * once + 2 * twice)
    elif once:
        kept = (n - 1) * (once - 1) / ((n - 1) * (once - 1) + 2) if n > 1 else 1.0
    else:
        kept = 0.0
    value = 1 - once / n * kept
    half = float(norm.ppf((1 + confidence) / 2)) * math.sqrt(once * (1 - once / n) + 2 * twice) / n
    return Coverage(value, max(value - half, 0.0), min(value + half, 1.0), confidence)


def discovery(frequencies: Frequencies, sizes: ArrayLike) -> Float[np.ndarray, " sizes"]:
    """Return the expected number of kinds in random subsets of the sample, exactly (rarefaction).

    Expected kinds among t of the N individuals, drawn without replacement: sum over kinds of
    1 - C(N - k, t) / C(N, t) (Hurlbert, Ecology 52, 1971).

    Raises
    ------
    InputError
        For a size below 0 or above N.
    """
    t = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
    n = frequencies.sample
    if (t < 0).any() or (t > n).any():
        raise InputError(problem(f"subset sizes from 0 to {n}", f"{t.min():g} to {t.max():g}", "pass fewer"))
    found = np.zeros(len(t))
    for k, f in frequencies.of.items():
        with np.errstate(invalid="ignore"):
            log_none = gammaln(n - k + 1) - gammaln(n - k - t + 1) - gammaln(n + 1) + gammaln(n - t + 1)
        found += f * np.where(t > n - k, 1.0, -np.expm1(np.minimum(log_none, 0.0)))
    return found


def _with_interval(seen: int, extra: float, variance: float, confidence: float) -> Richness:
    """Log-normal interval of the number not seen (Chao 1987): what was seen is certain."""
    check_confidence(confidence)
    if extra <= 0:
        return Richness(float(seen), float(seen), float(seen), 0.0, seen, confidence)
    z = float(norm.ppf((1 + confidence) / 2))
    factor = math.exp(z * math.sqrt(math.log1p(variance / extra**2)))
    return Richness(
        seen + extra, seen + extra / factor, seen + extra * factor, math.sqrt(variance), seen, confidence
    )
