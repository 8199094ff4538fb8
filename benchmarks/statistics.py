"""What the intervals are worth: simulated reaches with a known n50, in fifteen shapes.

    python benchmarks/statistics.py [--runs 1000] [--part fixed adaptive grid slope]

fixed: coverage and bias of n50 from a fixed number of strings. adaptive: the same when measuring stops by
the rule of `study.schedule`. grid: the published design, 20 strings at each of 15 lengths, and how many
strings with a reach give an interval as narrow, without a curve and with the same logistic curve on both
sides. slope: the bootstrap interval. Prints Markdown tables. One core, 20 minutes.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from lmreach.stats.accessibility import HalfLength, half_length
from lmreach.stats.placement import NEARLY, is_narrow, next_look
from lmreach.stats.posterior import fit_points, posterior_of_reaches
from lmreach.stats.slope import fit_slope
from lmreach.stats.survival import clopper_pearson

N = np.arange(1.0, 3001.0)
UNLIMITED = 3000


def falling(n: np.ndarray, middle: float, scale: float) -> np.ndarray:
    return special.expit((middle - n) / scale)


@dataclass(frozen=True)
class Shape:
    """Share of strings with a reach of at least n, and the length limit of the measurement."""

    name: str
    share: Callable[[np.ndarray], np.ndarray]
    limit: int = UNLIMITED

    @property
    def curve(self) -> np.ndarray:
        """Shares at 0, 1, 2, ..."""
        return np.concatenate([[1.0], self.share(N)])

    def length(self, level: float = 0.5) -> float:
        """The true crossing, the curve joined as the estimate joins its own."""
        share = self.curve
        j = int(np.flatnonzero(share >= level)[-1])
        return j + (share[j] - level) / (share[j] - share[j + 1])

    def draw(self, rng: np.random.Generator, strings: int) -> tuple[np.ndarray, np.ndarray]:
        uniform = 1.0 - rng.random(strings)
        reach = np.searchsorted(-self.curve, -uniform, side="right") - 1
        return np.minimum(reach, self.limit), reach >= self.limit


SHAPES = (
    Shape("logistic", lambda n: falling(n, 40, 4)),
    Shape("log-logistic", lambda n: 1 / (1 + (n / 25) ** 4)),
    Shape("Weibull", lambda n: np.exp(-((n / 30) ** 2.5))),
    Shape("sharp step", lambda n: (n <= 12).astype(float)),
    Shape("near step", lambda n: np.select([n <= 11, n <= 12, n <= 13], [1, 0.93, 0.05], 0.0)),
    Shape("two values", lambda n: np.select([n <= 5, n <= 6], [1, 0.8], 0.0)),
    Shape("two populations", lambda n: 0.6 * falling(n, 12, 1.5) + 0.4 * falling(n, 40, 3)),
    Shape("lapse 10 %", lambda n: 0.9 * falling(n, 30, 3)),
    Shape("plateau at the limit", lambda n: 0.3 + 0.7 * falling(n, 20, 2), 64),
    Shape("heavy tail", lambda n: 1 / (1 + (n / 15) ** 1.3), 400),
    Shape(
        "n50 of 1 to 3", lambda n: np.select([n == 1, n == 2, n == 3, n == 4], [0.92, 0.45, 0.1, 0.02], 0.0)
    ),
    Shape("geometric", lambda n: 0.96**n),
    Shape("Poisson", lambda n: stats.poisson(9).sf(n - 1)),
    Shape("long", lambda n: falling(n, 400, 20)),
    Shape("half censored", lambda n: falling(n, 40, 8), 41),
)


def covers(found: HalfLength, truth: float) -> bool:
    """Whether the interval holds the truth; a missing end excludes nothing."""
    low = -math.inf if found.low is None else found.low
    high = math.inf if found.high is None else found.high
    return low - 1e-9 <= truth <= high + 1e-9


def width(found: HalfLength) -> float:
    return math.inf if found.low is None or found.high is None else found.high - found.low


def value(found: HalfLength) -> float:
    """The estimate; beyond the limit it counts as the limit, so that its median is still right."""
    return float(found.last) if found.value is None else found.value


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}"


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(*cells: str) -> None:
    print()
    row(*cells)
    row(*["---"] * len(cells))


def fixed(runs: int) -> None:
    sizes = (16, 32, 64)
    head(
        "shape", "n50", *(f"covered, {k} strings" for k in sizes), *(f"bias, {k}" for k in sizes), "width, 32"
    )
    for place, shape in enumerate(SHAPES):
        truth, covered, bias, widths = shape.length(), [], [], []
        for strings in sizes:
            rng = np.random.default_rng([place, strings])
            found = [half_length(*shape.draw(rng, strings), limit=shape.limit) for _ in range(runs)]
            covered.append(percent(np.mean([covers(one, truth) for one in found])))
            inside = all(one.value is not None for one in found)
            middle = np.mean([value(o) for o in found]) if inside else np.median([value(o) for o in found])
            bias.append(f"{100 * (middle / truth - 1):+.1f}{'' if inside else ' (median)'}")
            widths.append(np.median([width(one) for one in found]) / truth)
        wide = "open" if math.isinf(widths[1]) else percent(widths[1], 0)
        row(shape.name, f"{truth:.2f}", *covered, *bias, wide)


def first_narrow(
    reach: np.ndarray, censored: np.ndarray, limit: int, wanted: float, looks: Callable[[int], int]
) -> int:
    """Number of strings at the first look with an interval as narrow as wanted."""
    strings = looks(0)
    while strings < reach.size:
        if is_narrow(half_length(reach[:strings], censored[:strings], limit=limit), wanted):
            break
        strings = min(looks(strings), reach.size)
    return strings


def naive(reach: np.ndarray, censored: np.ndarray, limit: int, wanted: float) -> int:
    """Look after every fourth string (later every sixteenth part) and stop at the first narrow interval."""
    return first_narrow(reach, censored, limit, wanted, lambda strings: strings + max(4, strings // 16))


def ours(reach: np.ndarray, censored: np.ndarray, limit: int, wanted: float) -> int:
    """The rule of `study.schedule` for one cell."""
    strings = first_narrow(reach, censored, limit, NEARLY * wanted, next_look)
    return min(next_look(strings), reach.size)


RULES = {"naive": naive, "ours": ours}


def adaptive(runs: int) -> None:
    most, widths = 512, (0.3, 0.1)
    columns = [
        f"{part}, {w * 100:g} %, {rule}" for w in widths for rule in RULES for part in ("covered", "strings")
    ]
    head("shape", *columns)
    for place, shape in enumerate(SHAPES):
        truth, cells = shape.length(), []
        for wanted in widths:
            for stops in RULES.values():
                rng, covered, used = np.random.default_rng([place, 99]), 0, []
                for _ in range(runs):
                    reach, censored = shape.draw(rng, most)
                    k = stops(reach, censored, shape.limit, wanted)
                    covered += covers(half_length(reach[:k], censored[:k], limit=shape.limit), truth)
                    used.append(k)
                cells += [percent(covered / runs), f"{np.mean(used):.0f}"]
        row(shape.name, *cells)


def band_ends(lengths: np.ndarray, reached: np.ndarray) -> tuple[float, float]:
    """Interval of n50 from binomial points alone: where Clopper-Pearson's band of them crosses 1/2."""
    low, high = clopper_pearson(reached.astype(float), np.full(lengths.size, 20.0), 0.95)
    ends = []
    n = np.concatenate([[0], lengths])
    for band in (np.minimum.accumulate(low), np.minimum.accumulate(high)):
        share = np.concatenate([[1.0], band])
        if share[-1] >= 0.5:
            return math.nan, math.inf
        j = int((share < 0.5).argmax())
        ends.append(n[j - 1] + (share[j - 1] - 0.5) / (share[j - 1] - share[j]) * (n[j] - n[j - 1]))
    return ends[0], ends[1]


def curve_width(reach: np.ndarray, censored: np.ndarray) -> float:
    found = posterior_of_reaches(reach, censored, shape="logistic")
    _, low, high = found.interval(found.n50, 0.95)
    return high - low


def needed(shape: Shape, span: float, rng: np.random.Generator, of: Callable, tries: int) -> str:
    """Fewest strings whose median interval is as narrow."""
    strings = 8
    while strings <= 2048:
        if np.median([of(*shape.draw(rng, strings)) for _ in range(tries)]) <= span:
            return str(strings)
        strings = math.ceil(strings * 1.15)
    return "above 2048"


def grid(runs: int) -> None:
    """15 lengths evenly up to twice n50, as a grid laid knowing about where n50 is."""
    head(
        "shape",
        "grid's trials",
        "width, no curve",
        "covered",
        "strings, no curve",
        "width, curve",
        "covered",
        "strings, curve",
        "adaptive, no curve: strings",
        "covered",
    )
    for place, shape in enumerate(SHAPES):
        truth, rng = shape.length(), np.random.default_rng([place, 7])
        lengths = np.unique(np.maximum(np.round(np.linspace(2 * truth / 15, 2 * truth, 15)), 1).astype(int))
        lengths = lengths[lengths <= shape.limit]
        plain, fitted = [], []
        for _ in range(runs):
            reached = rng.binomial(20, shape.curve[lengths])
            plain.append(band_ends(lengths, reached))
            found = fit_points(lengths, reached, np.full(lengths.size, 20)).n50
            fitted.append((math.nan, math.inf) if found is None else found[1:])
        cells: list[object] = []
        wanted = math.inf
        for ends, of, tries in (
            (plain, lambda r, c, shape=shape: width(half_length(r, c, limit=shape.limit)), 100),
            (fitted, curve_width, 10),
        ):
            span = float(np.median([high - low if high < math.inf else math.inf for low, high in ends]))
            held = np.mean([not low > truth and truth <= high for low, high in ends])
            cells += ["open" if math.isinf(span) else f"{percent(span / truth)} %", percent(held)]
            cells.append("" if math.isinf(span) else needed(shape, span, rng, of, tries))
            wanted = span / truth if of is not curve_width else wanted
        used, hits = [], 0
        for _ in range(runs if math.isfinite(wanted) else 0):
            reach, censored = shape.draw(rng, 1024)
            k = ours(reach, censored, shape.limit, wanted)
            used.append(k)
            hits += covers(half_length(reach[:k], censored[:k], limit=shape.limit), truth)
        ended = [f"{np.mean(used):.0f}", percent(hits / runs)] if used else ["", ""]
        row(shape.name, 20 * lengths.size, *cells, *ended)


def slope(runs: int) -> None:
    """n50 in proportion to m, strings with a hardness of their own that is the same at every m."""
    head("strings per m", "covered: slope", "covered: through 0", "covered: exponent", "bias of slope, %")
    m = np.array([1, 2, 4, 8])
    truth = [Shape("", lambda n, at=at: falling(n, 10 * at + 0.0, 1.2 * at)).length() for at in m]
    wanted = stats.linregress(m, truth).slope
    origin = float(m @ np.array(truth) / (m @ m))
    power = stats.linregress(np.log(m), np.log(truth)).slope
    for strings in (16, 32, 64):
        rng, hits, values = np.random.default_rng(strings), np.zeros(3), []
        for _ in range(runs):
            own = rng.normal(size=strings)
            uniform = [special.ndtr(0.7 * own + math.sqrt(0.51) * rng.normal(size=strings)) for _ in m]
            reach = [
                np.floor(10 * at + 1.2 * at * special.logit(u)).clip(0).astype(int)
                for at, u in zip(m, uniform, strict=True)
            ]
            flags = [np.zeros(strings, dtype=bool)] * m.size
            found = fit_slope(m, reach, flags, [UNLIMITED] * m.size, rng=rng, resamples=400, paired=True)
            values.append(found.slope)
            hits += [
                found.low <= wanted <= found.high,
                found.through_origin[1] <= origin <= found.through_origin[2],
                found.exponent[1] <= power <= found.exponent[2],
            ]
        row(strings, *(percent(hit / runs) for hit in hits), f"{100 * (np.mean(values) / wanted - 1):+.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parts = {"fixed": fixed, "adaptive": adaptive, "grid": grid, "slope": slope}
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    words = parser.parse_args()
    for part in words.part:
        # The grid's posterior takes 40 ms a run: a fifth of the runs.
        parts[part](words.runs if part in ("fixed", "adaptive") else max(words.runs // 5, 1))


if __name__ == "__main__":
    main()
