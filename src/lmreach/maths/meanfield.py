"""Attention on weighted point clouds: why a prompt of any length is a probability measure (M26, Cor. 4.10).

Without positions and masks, attention sees only how much mass sits where. A list of n vectors is the measure
with mass 1/n on each: listing every vector twice, or in another order, changes nothing.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lmreach.errors import InputError, problem
from lmreach.maths import checks

Points = Float[np.ndarray, "n d"]
Masses = Float[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Attention:
    """One layer with a residual stream, x -> x + sum_j p_j(x) V x_j, on points x_j with masses w_j.

    p_j(x) is proportional to w_j exp(Q x . K x_j).

    Attributes
    ----------
    query, key, value
        Matrices of shape (d, d).
    """

    query: Float[np.ndarray, "d d"]
    key: Float[np.ndarray, "d d"]
    value: Float[np.ndarray, "d d"]

    def __call__(self, points: Points, masses: Masses) -> Points:
        """Return where the points go; their masses stay.

        Parameters
        ----------
        points, masses
            Shapes (n, d) and (n,); masses at least 0, in any common unit.

        Raises
        ------
        InputError
            For a negative mass, or none above 0.
        """
        share = _shares(masses, len(points))
        scores = (points @ self.query.T) @ (points @ self.key.T).T
        # Without the largest score taken out the exponentials would leave float64.
        attention = share * np.exp(scores - scores.max(axis=1, keepdims=True))
        attention /= attention.sum(axis=1, keepdims=True)
        return np.asarray(points + attention @ (points @ self.value.T))


def center_of_mass(points: Points, masses: Masses) -> Float[np.ndarray, " d"]:
    """Return the mean of the points weighted by their masses: what a pooling head would read."""
    return np.asarray(_shares(masses, len(points)) @ points)


def _shares(masses: Masses, count: int) -> Masses:
    found = checks.vector("masses", masses, width=count)
    total = found.sum()
    if (found < 0).any() or not total > 0:
        got = f"{found.min()} among them, {total} in all"
        raise InputError(problem("masses of at least 0, some above", got, "pass counts or shares"))
    return np.asarray(found / total)
