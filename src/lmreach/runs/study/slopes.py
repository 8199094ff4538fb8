"""n50 against m for each target kind, beside every limit."""

from collections.abc import Mapping, Sequence

import numpy as np

from lmreach.maths.bounds import Limit
from lmreach.results import Interval
from lmreach.results import study as of_study
from lmreach.results.study import Accessibility, Extrapolated, Ratio
from lmreach.runs.intervals import interval
from lmreach.runs.study.conditions import Condition
from lmreach.stats.points import PointCurve
from lmreach.stats.slope import Slope, fit_slope, fit_slope_of_curves

__all__ = ["slope_record", "slope_records"]


def slope_records(
    targets: Sequence[str],
    entries: Sequence[Accessibility],
    limits: Sequence[Limit],
    *,
    seed: int,
    points: Mapping[Condition, PointCurve] | None = None,
) -> tuple[of_study.Slope, ...]:
    """Return n50 against m for each target kind that has entries.

    Least squares with a bootstrap over strings; where ``points`` holds the conditions' curves from single
    lengths, with draws from their posteriors.
    """
    found = []
    for target in targets:
        own = _one_line([entry for entry in entries if entry.target == target])
        if own:
            slope = _of_reaches(own, seed) if points is None else _of_points(own, points, seed)
            found.append(slope_record(target, slope, limits, steps_taken=_steps_of_line(own)))
    return tuple(found)


_FOR_A_LINE = 3


def _one_line(own: list[Accessibility]) -> list[Accessibility]:
    """Leave points that were cut out of a line, if the others make one."""
    whole = [entry for entry in own if not entry.cut]
    return whole if len(whole) >= _FOR_A_LINE else own


def _steps_of_line(own: Sequence[Accessibility]) -> tuple[int, int] | None:
    """Return least and most steps that the points of a line were to take, or took where they were cut."""
    asked = [
        entry.steps_taken[1] if entry.cut and entry.steps_taken else entry.max_steps
        for entry in own
        if entry.max_steps is not None
    ]
    known = [steps for steps in asked if steps is not None]
    return (min(known), max(known)) if known else None


def _of_reaches(own: Sequence[Accessibility], seed: int) -> Slope:
    return fit_slope(
        np.asarray([entry.m for entry in own]),
        [np.asarray(entry.reaches) for entry in own],
        [np.asarray(entry.censored, dtype=bool) for entry in own],
        [entry.limit for entry in own],
        rng=np.random.default_rng([seed, 3]),
        # String i is the same text at every m, so whole strings are resampled.
        paired=True,
    )


def _of_points(own: Sequence[Accessibility], points: Mapping[Condition, PointCurve], seed: int) -> Slope:
    """Return the slope through curves that fit; one that does not has no n50 to enter with."""
    curves = {entry.m: points[Condition(entry.target, entry.m)] for entry in own}
    fits = {m: one.fit for m, one in curves.items() if one.verdict != "curve_does_not_fit"}
    return fit_slope_of_curves(
        np.asarray(list(fits), dtype=np.int64), list(fits.values()), rng=np.random.default_rng([seed, 3])
    )


def slope_record(
    target: str, slope: Slope, limits: Sequence[Limit], *, steps_taken: tuple[int, int] | None = None
) -> of_study.Slope:
    """Return a fitted slope as results hold it, beside every limit; ``steps_taken``: behind its points."""
    ratios = [(limit.name, slope.ratio(limit.tokens_per_vector)) for limit in limits]
    return of_study.Slope.from_object(
        slope,
        target=target,
        steps_taken=steps_taken,
        slope=Interval(
            value=slope.slope,
            low=slope.low,
            high=slope.high,
            verdict=slope.verdict,
            confidence=slope.confidence,
            words=slope.words(),
        ),
        through_origin=interval(slope.through_origin, slope.confidence),
        exponent=interval(slope.exponent, slope.confidence),
        ratios=[
            Ratio(limit=name, ratio=Interval(value=value, low=low, high=high))
            for name, (value, low, high) in ratios
            if value is not None
        ],
        extrapolated=_extrapolated(slope),
    )


def _extrapolated(slope: Slope) -> list[Extrapolated]:
    """Return the line's n50 at one and at twice the largest m, and at ten times: far ends have wide bands."""
    far = [max(slope.m, default=0) * factor for factor in (1, 2, 10)]
    found = [(m, interval(slope.at(m), slope.confidence)) for m in far]
    return [Extrapolated(m=m, n50=n50) for m, n50 in found if n50 is not None]
