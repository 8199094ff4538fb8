"""How many vectors of a floating-point format lie in a ball: a proved upper bound, no eps.

The values of a format crowd around 0, so a ball holds far more of them than its volume says, and no eps of
one size describes them. For every lam >= 0

    #{x : |x|_2 <= r} <= exp(lam r^2) (sum over values v of exp(-lam v^2))^d,

since each x that counts adds at least 1 on the right (Chernoff's bound). lam is found by a convex search.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy import optimize

from lmreach.maths import checks
from lmreach.maths.precision import Format, number_format

__all__ = ["log_ball_count"]

_PARTS = 64  # of a binade: its values are counted exactly part by part, at the part's smallest square


def log_ball_count(dtype: str, radius: float, width: int) -> float:
    """Return an upper bound on the log of the number of ``dtype`` vectors of L2 norm at most ``radius``.

    Parameters
    ----------
    dtype
        A floating-point format of `lmreach.maths.precision`.
    radius
        Of the ball about 0, above 0.
    width
        d.

    Returns
    -------
    float
        Nats; never more than the count of the cube around the ball.
    """
    kind = number_format(dtype)
    r, d = (
        min(checks.positive("radius", radius), kind.largest * math.sqrt(width)),
        checks.whole("width", width),
    )
    edge = min(r, kind.largest)
    lowest, counts = _histogram(kind, edge)
    log_counts, squares = np.log(counts), (lowest / r) ** 2

    def bound(log_lam: float) -> float:
        lam = math.exp(log_lam)
        return lam + d * float(np.logaddexp.reduce(log_counts - lam * squares))

    # d / 2 is the best lam of a uniform density; crowded values need less.
    middle = math.log(d / 2)
    best = optimize.minimize_scalar(bound, bounds=(middle - 25.0, middle + 5.0), method="bounded")
    return min(float(best.fun), d * math.log(int(kind.count(-edge, edge))))


def _histogram(kind: Format, edge: float) -> tuple[Float[np.ndarray, " bins"], Float[np.ndarray, " bins"]]:
    """Return bins of values in [-edge, edge]: smallest magnitude and exact number of values of each."""
    top = math.frexp(edge)[1]
    # From far below any part that matters: everything smaller is one bin at 0.
    starts = np.ldexp(1 + np.arange(_PARTS) / _PARTS, np.arange(top - 80, top)[:, None]).ravel()
    starts = np.concatenate([starts[starts < edge], [edge]])
    below = np.asarray(kind.count(-starts, starts), dtype=np.float64)  # values of magnitude up to each start
    counts = np.diff(below, prepend=0.0)
    # Values of magnitude in (starts[i - 1], starts[i]]: their squares are at least that of the lower end.
    lowest = np.concatenate([[0.0], starts[:-1]])
    seen = counts > 0
    return lowest[seen], counts[seen]
