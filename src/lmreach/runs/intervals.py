"""Statistics as parts of a result: intervals and fitted curves in the one shape that results have."""

from lmreach.results.base import FittedCurve, Interval
from lmreach.stats.posterior import CurveFit

__all__ = ["fitted_curve", "interval"]


def interval(
    ends: tuple[float | None, float | None, float | None] | None, confidence: float | None = None
) -> Interval | None:
    """Return (value, low, high) as an interval; None for none."""
    if ends is None:
        return None
    value, low, high = ends
    return Interval(value=value, low=low, high=high, confidence=confidence)


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
