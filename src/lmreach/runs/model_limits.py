"""Every limit that a model's own weights, and what was seen of its hidden states, allow."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float

from lmreach.maths.bounds import Limit, limit_from, limits, tightest, unbounded_context
from lmreach.maths.precision import precision_of, unit_roundoff
from lmreach.maths.supports import Ball, Box, Cone, norm_ellipsoid
from lmreach.models.loaded import LoadedModel
from lmreach.models.partial import Parts, whole_parts
from lmreach.results import limits as of_limits


class SeenStates(Protocol):
    """What the limits take from a measured support (see `experiments.states.stream.HiddenSupport`)."""

    @property
    def samples(self) -> int:
        """Number of states."""

    @property
    def linf_max(self) -> float:
        """Largest |coordinate|."""

    @property
    def l2_max(self) -> float:
        """Largest L2 norm."""

    @property
    def low(self) -> Float[np.ndarray, " h"]:
        """Smallest value per coordinate."""

    @property
    def high(self) -> Float[np.ndarray, " h"]:
        """Largest value per coordinate."""


def input_box(model: LoadedModel) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Return the smallest and largest value per coordinate over input vectors of non-special ids."""
    parts = whole_parts(model)
    return parts.low, parts.high


def model_limits(
    model: LoadedModel, *, support: SeenStates | None = None, dtype: str = "float16"
) -> tuple[Limit, ...]:
    """Return the limits of a loaded model.

    Parameters
    ----------
    support
        Measured support of final hidden states; None leaves the limits that need samples out.
    dtype
        Number format whose unit roundoff sets eps (the paper uses float16).
    """
    return parts_limits(whole_parts(model), support=support, dtype=dtype)


def parts_limits(
    parts: Parts, *, support: SeenStates | None = None, dtype: str = "float16", vector_dtype: str = "float32"
) -> tuple[Limit, ...]:
    """Return the limits of a model of which only the parts they need were read; options as `model_limits`."""
    norm = parts.final_norm
    known = norm.kind in ("rms", "layer")
    return limits(
        width=parts.width,
        hidden_width=parts.hidden_width,
        vocab=parts.usable,
        dtype=dtype,
        input_box=(parts.low, parts.high),
        hidden_box=None if support is None else (support.low, support.high),
        hidden_radius=None if support is None else support.linf_max,
        norm_kind=norm.kind if known else None,
        norm_gain=norm.gain if known else None,
        norm_bias=norm.bias if known else None,
        vector_dtype=vector_dtype,
    )


def cone_limits(
    support: SeenStates, *, half_angle: float, min_cos: float, vocab: int, dtype: str
) -> tuple[Limit, ...]:
    """Return the two limits of a cone: the paper's convention and the proved form.

    Parameters
    ----------
    half_angle
        Of a cone with its tip at 0 that holds every state, radians.
    min_cos
        Smallest cosine seen between two states; the convention takes half of that angle.

    Notes
    -----
    eps = u(dtype) r with r the largest L2 norm: a cone is part of an L2 ball, so the radius cancels.
    """
    width, r = support.low.size, support.l2_max
    eps = precision_of(dtype, r)
    source = f"{support.samples} sampled final hidden states"
    angle = float(np.arccos(np.clip(min_cos, -1.0, 1.0)))
    used = f"eps = u({dtype}) r = {eps:.4g}, r = {r:.6g} the largest L2 norm of the sampled hidden states"
    found = []
    if angle > 0:
        cone = Cone(width, r, angle / 2, convention=True, source=source)
        note = f"{used}; half of the largest angle seen, {angle:.4f} rad; a convention, no bound"
        found.append(limit_from(cone, name="cone (paper)", eps=eps, vocab=vocab, note=note))
    if half_angle > 0:
        cone = Cone(width, r, half_angle, source=source)
        note = f"{used}; half-angle {half_angle:.4f} rad; more samples can only widen the cone"
        found.append(limit_from(cone, name="enclosing cone", eps=eps, vocab=vocab, note=note))
    return tuple(found)


def unbounded_limits(parts: Parts, *, dtype: str) -> dict[str, float]:
    """Return log10 of the threshold length for prompts of any length (Corollary 4.10), by support."""
    ball = Ball(parts.hidden_width, 1.0)
    found = {"ball (paper)": unbounded_context(ball, eps=unit_roundoff(dtype), vocab=parts.usable)}
    norm = parts.final_norm
    if norm.kind in ("rms", "layer"):
        ellipsoid = norm_ellipsoid(norm.kind, norm.gain, norm.bias)
        eps = precision_of(dtype, ellipsoid.radius)
        found["norm ellipsoid"] = unbounded_context(ellipsoid, eps=eps, vocab=parts.usable)
    box = Box(parts.low, parts.high, premise="input")
    eps = precision_of(dtype, box.radius)
    found["box of inputs"] = unbounded_context(box, eps=eps, vocab=parts.usable)
    return found


def limit_records(found: Sequence[Limit]) -> tuple[of_limits.Limit, ...]:
    """Return limits as results hold them, with the tightest proved one of each premise marked."""
    best = {limit.name for limit in tightest(found).values()}
    return tuple(
        of_limits.Limit.from_object(
            limit, log_packing_nats=limit.log_packing, tightest_of_premise=limit.name in best
        )
        for limit in found
    )
