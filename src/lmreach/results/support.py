"""Where the final hidden states of a model lie, measured."""

from typing import ClassVar

from lmreach.results.base import Result
from lmreach.results.shown import Shown

__all__ = ["SupportGrowth", "SupportResults"]


class SupportGrowth(Result):
    """The support of the first states, or of prompts of one length.

    Attributes
    ----------
    by, value
        ``samples`` or ``length``, and how many or which.
    box, box_and_ellipsoid
        Tokens per vector of the two limits that move with the samples. None: the norm has no known gain.
    """

    by: str
    value: int
    states: int
    l1_max: float
    l2_max: float
    linf_max: float
    mean_cos: float
    box: float
    box_and_ellipsoid: float | None


class SupportResults(Shown):
    """Radii, cosines and the narrowest cone of final hidden states; angles in radians.

    Attributes
    ----------
    lengths, lengths_end_at
        Prompt lengths in tokens, and what set the longest: ``context``, ``positions`` or ``asked``.
    ellipsoid_fraction
        Where the furthest state lies: 1 on the surface of the norm ellipsoid. None: no known gain.
    mean_angle, half_angle, least_half_angle
        Of the cone about the mean direction, of the narrowest found, and what none that holds all is below.
    kept, kept_min_cos, min_cos_bound
        Size of a uniform sample, smallest cosine in it, and what that of all states is at least.
    limit_dtype
        Number format whose roundoff sets eps in the limits of ``growth``.
    file
        The support file that was written, by its name. None: none was.
    """

    _table: ClassVar[str] = "growth"

    model: str
    fingerprint: str
    dtype: str
    context: int | None
    samples: int
    kinds: tuple[str, ...]
    lengths: tuple[int, ...]
    lengths_end_at: str
    l1_max: float
    l2_max: float
    linf_max: float
    mean_cos: float
    ellipsoid_fraction: float | None
    mean_angle: float
    half_angle: float
    least_half_angle: float
    kept: int
    kept_min_cos: float
    min_cos_bound: float
    limit_dtype: str
    growth: tuple[SupportGrowth, ...]
    file: str | None = None

    @property
    def inside(self) -> bool:
        """Whether no state left the norm ellipsoid, the rounding of a norm in 16 bits aside."""
        return self.ellipsoid_fraction is None or self.ellipsoid_fraction <= _ROUNDED


_ROUNDED = 1.02
