"""How n50 grows with a quantity: the exponent of a power law through points with intervals; 1 is linear."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmreach.stats.line import fit_line

__all__ = ["PowerLaw", "power_law"]

_NORMAL = 1.959964  # of a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """y = c x^exponent.

    Attributes
    ----------
    exponent, low, high
        And its 95 % interval.
    points
        Behind it.
    """

    exponent: float
    low: float
    high: float
    points: int


def power_law(
    x: Sequence[float], y: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> PowerLaw | None:
    """Return the exponent by least squares on logarithms, weighted by the intervals of y.

    Parameters
    ----------
    x, y
        Above 0.
    low, high
        Ends of the 95 % intervals of y; points with an end that is not above 0, or without width, are left
        out.

    Returns
    -------
    PowerLaw or None
        None: fewer than two different x.

    Notes
    -----
    Where points scatter more than their intervals, the interval of the exponent is widened by that much
    (Birge's ratio): it then says how well a power law holds, too.
    """
    kept = [one for one in zip(x, y, low, high, strict=True) if one[2] > 0 and one[3] > one[2]]
    if len({one[0] for one in kept}) < 2:
        return None
    log_x, log_y, log_low, log_high = (
        np.log(np.asarray(part, dtype=np.float64)) for part in zip(*kept, strict=True)
    )
    weights = (2 * _NORMAL / (log_high - log_low)) ** 2
    line = fit_line(log_x, log_y, weights)
    centred = log_x - np.average(log_x, weights=weights)
    se = 1 / math.sqrt(float(weights @ centred**2))
    if len(kept) > 2:
        left = float(weights @ (log_y - line.intercept - line.slope * log_x) ** 2)
        se *= math.sqrt(max(1.0, left / (len(kept) - 2)))
    reach = _NORMAL * se
    return PowerLaw(line.slope, line.slope - reach, line.slope + reach, len(kept))
