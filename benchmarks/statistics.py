"""What the intervals are worth: simulated reaches with a known n50, in fifteen shapes.

    python -m benchmarks.statistics [--runs 1000] [--part fixed adaptive grid slope schedule points]

fixed: coverage and bias of n50 from a fixed number of strings. adaptive: the same when measuring stops by
the rule of `study.schedule`. grid: the published design, 20 strings at each of 15 lengths, and how many
strings with a reach give an interval as narrow, without a curve and with the same logistic curve on both
sides. slope: the bootstrap interval. schedule: n50 and slope of whole studies, in which the schedule places
every round over all conditions and ends them, or a budget does. points: n50 where every string is tried at
single lengths that are chosen by what was seen. Prints Markdown tables. One core, 40 minutes.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from lmreach.runs.study.conditions import Answer, Condition
from lmreach.runs.study.length_schedule import LengthSchedule
from lmreach.runs.study.placing import chosen
from lmreach.runs.study.reach_schedule import ReachSchedule
from lmreach.stats.accessibility import HalfLength, half_length
from lmreach.stats.placement import NEARLY, is_narrow, next_look
from lmreach.stats.points import PointCurve, point_curve
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
    print(f"| {' | '.join(map(str, conditions))} |", flush=True)


def head(*cells: str) -> None:
    print()
    row(*conditions)
    row(*["---"] * len(conditions))


def fixed(runs: int) -> None:
    sizes = (16, 32, 64)
    head(
        "shape",
        "n50",
        *(f"covered, {k} strings" for k in sizes),
        *(f"bias, {k}" for k in sizes),
        "bias of the median, 64",
        "width, 32",
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
        middle = f"{100 * (np.median([value(one) for one in found]) / truth - 1):+.1f}"
        row(shape.name, f"{truth:.2f}", *covered, *bias, middle, wide)


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
    """The rule of `study.schedule` for one condition."""
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
        truth, conditions = shape.length(), []
        for wanted in widths:
            for stops in RULES.values():
                rng, covered, used = np.random.default_rng([place, 99]), 0, []
                for _ in range(runs):
                    reach, censored = shape.draw(rng, most)
                    k = stops(reach, censored, shape.limit, wanted)
                    covered += covers(half_length(reach[:k], censored[:k], limit=shape.limit), truth)
                    used.append(k)
                conditions += [percent(covered / runs), f"{np.mean(used):.0f}"]
        row(shape.name, *conditions)


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


def grid_of(shape: Shape) -> np.ndarray:
    """15 lengths evenly up to twice n50, within the limit."""
    truth = shape.length()
    lengths = np.unique(np.maximum(np.round(np.linspace(2 * truth / 15, 2 * truth, 15)), 1).astype(int))
    return lengths[lengths <= shape.limit]


def stopped_early(shape: Shape, place: int, runs: int) -> list[str]:
    """Strings, and coverage, of measuring until our interval is as narrow as the grid's without a curve."""
    rng, lengths, truth = np.random.default_rng([place, 8]), grid_of(shape), shape.length()
    bands = [band_ends(lengths, rng.binomial(20, shape.curve[lengths])) for _ in range(runs)]
    wanted = float(np.median([high - low if high < math.inf else math.inf for low, high in bands])) / truth
    if math.isinf(wanted):
        return ["", ""]
    used, hits = [], 0
    for _ in range(runs):
        reach, censored = shape.draw(rng, 1024)
        k = ours(reach, censored, shape.limit, wanted)
        used.append(k)
        hits += covers(half_length(reach[:k], censored[:k], limit=shape.limit), truth)
    return [f"{np.mean(used):.0f}", percent(hits / runs)]


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
        truth, rng, lengths = shape.length(), np.random.default_rng([place, 7]), grid_of(shape)
        plain, fitted = [], []
        for _ in range(runs):
            reached = rng.binomial(20, shape.curve[lengths])
            plain.append(band_ends(lengths, reached))
            found = fit_points(lengths, reached, np.full(lengths.size, 20)).n50
            fitted.append((math.nan, math.inf) if found is None else found[1:])
        conditions: list[object] = []
        for ends, of, tries in (
            (plain, lambda r, c, shape=shape: width(half_length(r, c, limit=shape.limit)), 100),
            (fitted, curve_width, 10),
        ):
            span = float(np.median([high - low if high < math.inf else math.inf for low, high in ends]))
            held = np.mean([not low > truth and truth <= high for low, high in ends])
            conditions += ["open" if math.isinf(span) else f"{percent(span / truth)} %", percent(held)]
            conditions.append("" if math.isinf(span) else needed(shape, span, rng, of, tries))
        ended = stopped_early(shape, place, runs)
        row(shape.name, 20 * lengths.size, *conditions, *ended)


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


@dataclass(frozen=True)
class Plan:
    """A study to simulate: n50 is 8 tokens a vector, strings are as hard at every m (correlation 0.49).

    ``spread``: scale of the logistic curve over n50; ``budget``: in strings at m = 1, a string costs m;
    ``limits``: length limit per m.
    """

    name: str
    spread: float
    wanted: float
    strings: int = 256
    budget: float | None = None
    limits: tuple[int, ...] = (UNLIMITED,) * 4


PER_VECTOR, PLAN_M = 8, (1, 2, 4, 8)
PLANS = (
    Plan("sharp, 10 %", 0.06, 0.1),
    Plan("middling, 10 %", 0.12, 0.1),
    Plan("wide, 20 %", 0.25, 0.2),
    Plan("wide, 10 %, all strings run", 0.25, 0.1, strings=96),
    Plan("middling, 10 %, budget spent", 0.12, 0.1, budget=700.0),
    Plan("middling, 10 %, m = 8 beyond the limit", 0.12, 0.1, limits=(64, 64, 64, 60)),
)


def plan_reaches(plan: Plan, rng: np.random.Generator) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Reaches and censoring flags of all strings at every m."""
    own = rng.normal(size=plan.strings)
    found = {}
    for m, limit in zip(PLAN_M, plan.limits, strict=True):
        uniform = special.ndtr(0.7 * own + math.sqrt(0.51) * rng.normal(size=plan.strings))
        drawn = np.floor(PER_VECTOR * m * (1 + plan.spread * special.logit(uniform))).clip(0).astype(int)
        found[m] = (np.minimum(drawn, limit), drawn >= limit)
    return found


def run_plan(plan: Plan, reaches: dict[int, tuple[np.ndarray, np.ndarray]]) -> dict[int, int]:
    """Strings that the schedule runs at every m, round by round, as a study does."""
    schedule = ReachSchedule.of(("random",), PLAN_M, plan.strings, 8, plan.wanted)
    left = plan.budget
    while (chunk := schedule.next(left)) is not None:
        seconds = float(chunk.condition.m * chunk.strings)
        left = None if left is None else left - seconds
        own = zip(*reaches[chunk.condition.m], strict=True)
        answers = [Answer(int(reach), bool(whole)) for reach, whole in own]
        schedule.finish(chunk, seconds, answers[chunk.first : chunk.last])
    return {m: schedule.done(Condition("random", m)) for m in PLAN_M}


def schedule(runs: int) -> None:
    head(
        "study",
        "strings at m = 1, 2, 4, 8",
        *(f"covered: n50, m = {m}" for m in PLAN_M),
        "covered: slope",
        "through 0",
        "exponent",
        "bias of slope, %",
        "width of slope, %",
    )
    for place, plan in enumerate(PLANS):
        rng = np.random.default_rng([place, 11])
        truth = {
            m: Shape(
                "", lambda n, m=m, by=plan.spread: falling(n, PER_VECTOR * m, by * PER_VECTOR * m)
            ).length()
            for m in PLAN_M
        }
        hits, slopes, widths, used = np.zeros(len(PLAN_M) + 3), [], [], []
        for _ in range(runs):
            drawn = plan_reaches(plan, rng)
            counts = run_plan(plan, drawn)
            kept = {m: tuple(part[: counts[m]] for part in drawn[m]) for m in PLAN_M if counts[m]}
            n50 = [half_length(*kept[m], limit=limit) for m, limit in zip(PLAN_M, plan.limits, strict=True)]
            found = fit_slope(
                np.array(PLAN_M),
                [kept[m][0] for m in PLAN_M],
                [kept[m][1] for m in PLAN_M],
                plan.limits,
                rng=rng,
                paired=True,
            )
            known = [m for m, one in zip(PLAN_M, n50, strict=True) if one.value is not None]
            values = np.array([truth[m] for m in known])
            wanted = (
                stats.linregress(known, values).slope,
                float(known @ values / (np.square(known).sum())),
                stats.linregress(np.log(known), np.log(values)).slope,
            )
            ends = [(found.low, found.high), found.through_origin[1:], found.exponent[1:]]
            hits += [
                *(covers(one, truth[m]) for m, one in zip(PLAN_M, n50, strict=True)),
                *(
                    (low is None or low <= true) and (high is None or true <= high)
                    for (low, high), true in zip(ends, wanted, strict=True)
                ),
            ]
            slopes.append(found.slope / wanted[0])
            widths.append(math.inf if found.relative_width is None else found.relative_width)
            used.append([counts[m] for m in PLAN_M])
        row(
            plan.name,
            ", ".join(f"{k:.0f}" for k in np.mean(used, axis=0)),
            *(percent(hit / runs) for hit in hits),
            f"{100 * (np.mean(slopes) - 1):+.1f}",
            percent(float(np.median(widths)), 0),
        )


def place_and_try(shape: Shape, rng: np.random.Generator, strings: int) -> PointCurve:
    """Each string at one length, chosen by what the strings before it showed, as protocol *fixed* does."""
    limit = min(shape.limit, 1000)
    reach, _ = shape.draw(rng, strings)
    plan = LengthSchedule.of(("random",), (1,), lambda _: chosen(1, limit, strings), lambda _: limit, strings)
    tried: list[dict[int, bool]] = []
    while (chunk := plan.next(None)) is not None:
        solved = (reach[chunk.first : chunk.last] >= chunk.n).tolist()
        tried += [{chunk.n: one} for one in solved]
        plan.finish(chunk, 0.0, [Answer(chunk.n if one else 0, one) for one in solved])
    return point_curve(tried)


def at_given(shape: Shape, rng: np.random.Generator, strings: int) -> PointCurve:
    """All strings at the same seven lengths, from half to twice n50."""
    spread = np.round(shape.length() * np.geomspace(0.5, 2, 7)).astype(int)
    lengths = sorted({int(n) for n in spread if 1 <= n <= shape.limit})
    reach, _ = shape.draw(rng, strings)
    return point_curve([{n: bool(one >= n) for n in lengths} for one in reach])


def points(runs: int) -> None:
    strings = 48
    ways = {"chosen": place_and_try, "given": at_given}
    parts = ("covered", "bias of the median", "width, %", "curve refused, %")
    head("shape", *(f"{way}: {part}" for way in ways for part in parts), "reaches: width, %")
    for place, shape in enumerate(SHAPES):
        truth, rng, conditions = shape.length(), np.random.default_rng([place, 13]), []
        for of in ways.values():
            found = [of(shape, rng, strings) for _ in range(runs)]
            ends = [(one.n50[1], one.n50[2]) for one in found]
            held = [(lo is None or lo <= truth) and (hi is None or hi >= truth) for lo, hi in ends]
            spans = [math.inf if None in (lo, hi) else hi - lo for lo, hi in ends]
            middles = [one.middle for one in found if one.middle is not None]
            span = float(np.median(spans)) / truth
            conditions += [
                percent(np.mean(held), 0),
                f"{100 * (np.median(middles) / truth - 1):+.1f}" if middles else "",
                "open" if math.isinf(span) else percent(span, 0),
                percent(np.mean([one.verdict == "curve_does_not_fit" for one in found]), 0),
            ]
        beside = [width(half_length(*shape.draw(rng, strings), limit=shape.limit)) for _ in range(100)]
        wide = float(np.median(beside)) / truth
        row(shape.name, *conditions, "open" if math.isinf(wide) else percent(wide, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    every = (fixed, adaptive, grid, slope, schedule, points)
    parts = {part.__name__: part for part in every}
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    words = parser.parse_args()
    for part in words.part:
        # A posterior takes 20 to 40 ms, and where lengths are chosen a run has a dozen: fewer runs.
        share = {"fixed": 1, "adaptive": 1, "points": 10}.get(part, 5)
        parts[part](max(words.runs // share, 1))


if __name__ == "__main__":
    main()
