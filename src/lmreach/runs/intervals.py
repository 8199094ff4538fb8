"""Statistics as parts of a result: intervals and fitted curves in the one shape that results have."""

from lmreach.results.base import FittedCurve, Interval
from lmreach.stats.posterior import CurveFit

__all__ = ["fitted_curve", "half_of", "interval"]


def interval(
    ends: tuple[float | None, float | None, float | None] | None, confidence: float | None = None
) -> Interval | None:
    """Return (value, low, high) as an interval; None for none."""
    if ends is None:
        return None
    value, low, high = ends
    return Interval(value=value, low=low, high=high, confidence=confidence)


def half_of(fit: CurveFit) -> Interval:
    """Return n50 of a fitted curve; the middle of the bracket where the data are separated."""
    value, low, high = (None, *fit.ends) if fit.n50 is None else fit.n50
    return Interval(
        value=value,
        low=low,
        high=high,
        verdict=fit.verdict,
        confidence=fit.confidence,
        words=fit.words(),
    )


def fitted_curve(fit: CurveFit) -> FittedCurve:
    """Return a fitted curve without its n50, which stands beside it."""
    return FittedCurve(
        shape=fit.shape,
        n90=interval(fit.n90, fit.confidence),
        n10=interval(fit.n10, fit.confidence),
        width=interval(fit.width, fit.confidence),
        lapse=interval(fit.lapse, fit.confidence),
        bracket=fit.bracket,
    )
