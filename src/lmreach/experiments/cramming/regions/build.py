"""The set that a premise means for one model, and vectors read back from how they were stored."""

import math
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float

from lmreach.config import OptimiserConfig
from lmreach.config.within import Within, parse_within
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.regions.areas import Ball, Box, Everywhere, SignBasis, Subspace
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.grid import Grid, positive_scales
from lmreach.maths.levels import levels, unpack
from lmreach.models.loaded import LoadedModel

__all__ = ["build", "describe", "held_by", "held_to", "restore"]

_CHUNK = 1 << 14  # ids looked up at once
_UNSCALED = ("float16", "bfloat16")
# Scales under which given vectors may be members, from the one that puts the largest at the top upward.
_SCALES_TRIED, _SMALLEST = 24, 2.0**-120
_TYPICAL = {"e4m3": 16.0, "e5m2": 1024.0}  # largest value over a typical coordinate's


def held_to(config: OptimiserConfig, model: LoadedModel) -> VectorSet:
    """Return the set that a search is held to; without a premise, every finite vector.

    Raises
    ------
    InputError
        As `build`.
    """
    if not config.within:
        return Everywhere(Within(), model.facts.width)
    return build(parse_within(config.within), model, start_scale=config.start_scale)


def build(within: Within, model: LoadedModel, *, start_scale: float = 1.0) -> VectorSet:
    """Return the set for a model.

    Parameters
    ----------
    start_scale
        Root mean square coordinate of typical vectors, in units of real inputs: it fixes a run's scale, a
        power of two. Regions and formats without a scale do not use it.

    Raises
    ------
    InputError
        A subspace larger than the space, or a grid that the model's dtype cannot hold.
    """
    width = model.facts.width
    if within.free is not None and within.free > width:
        got = f"{within.free}"
        raise InputError(problem(f"a subspace of at most {width} dimensions, the width", got, "use fewer"))
    if within.region == "box":
        return Box(within, width, *input_range(model))
    if within.region == "ball":
        assert within.radius is not None, "the parser reads one"
        return Ball(within, width, within.radius * longest_input(model))
    basis = None
    if within.free is not None:
        basis = SignBasis.draw(within.free, width, within.seed, model.device)
    if within.format is None:
        assert basis is not None, "the parser reads a region, a subspace or a format"
        return Subspace(within, width, basis)
    scale = None if within.vector_scale else run_scale(within, model.input_rms * start_scale)
    grid = Grid(within, width, levels(within.format), scale, basis, model.device)
    grid.check_dtype(model.dtype)
    return grid


def held_by(within: Within, model: LoadedModel, vectors: Float[torch.Tensor, "m d"]) -> VectorSet:
    """Return the set for given vectors: a run's scale is the power of two under which they are members.

    Raises
    ------
    InputError
        They are members under none, with the first coordinate that is outside; else as `build`.
    """
    held = build(within, model)
    if isinstance(held, Grid) and held.run_scale is not None and within.format not in _UNSCALED:
        largest = float(held.free_of(vectors).abs().max())
        least = math.frexp(max(largest, _SMALLEST) / held.levels.largest)[1] - 1
        for power in range(least, least + _SCALES_TRIED):
            other = replace(held, run_scale=2.0**power)
            if other.outside(vectors) is None:
                held = other
                break
        else:
            held = replace(held, run_scale=2.0 ** (least + 1))
        held.check_dtype(model.dtype)
    held.check(vectors)
    return held


def run_scale(within: Within, rms: float) -> float:
    """Return the power of two with which typical vectors have coordinates of root mean square ``rms``."""
    assert within.format is not None, "only formats have a scale"
    if within.format in _UNSCALED:
        return 1.0
    table = levels(within.format)
    typical = table.largest / _TYPICAL[table.name] if table.name in _TYPICAL else table.rms
    # A coordinate in a subspace is a sum of K signed coefficients.
    return float(2.0 ** round(math.log2(rms / (typical * math.sqrt(within.free or 1)))))


def input_range(
    model: LoadedModel,
) -> tuple[Float[torch.Tensor, " d"], Float[torch.Tensor, " d"]]:
    """Return the smallest and largest value per coordinate over input vectors of non-special ids."""
    low = torch.full((model.facts.width,), torch.inf, device=model.device)
    high = -low
    for ids in torch.from_numpy(model.plain_ids).split(_CHUNK):
        vectors = model.input_vectors(ids)
        low, high = torch.minimum(low, vectors.amin(dim=0)), torch.maximum(high, vectors.amax(dim=0))
    return low, high


def longest_input(model: LoadedModel) -> float:
    """Return the largest L2 norm of input vectors of non-special ids."""
    chunks = torch.from_numpy(model.plain_ids).split(_CHUNK)
    return max(float(model.input_vectors(ids).double().norm(dim=-1).max()) for ids in chunks)


def describe(held: VectorSet) -> dict[str, str]:
    """Return what a certificate says beside the stored tensors, so that `restore` needs no model."""
    scale = {} if held.scale is None else {"scale": repr(held.scale)}
    return {"within": held.within.text, "width": str(held.width), **scale}


def restore(
    tensors: dict[str, np.ndarray], claim: dict[str, str], m: int
) -> tuple[Float[torch.Tensor, "m k"], Float[torch.Tensor, "m d"]]:
    """Return the free coordinates and the vectors that were stored.

    Parameters
    ----------
    tensors, claim
        As `VectorSet.encode` and `describe` made them.
    m
        Number of vectors.

    Raises
    ------
    InputError
        Something is missing, of another size, or no number of the format.
    """
    try:
        within, width = parse_within(claim["within"]), int(claim["width"])
        free = _free_coordinates(within, tensors, claim, m, within.free or width)
    except (KeyError, ValueError) as error:
        got = f"{type(error).__name__}: {error}"
        raise InputError(problem("vectors stored in their format", got, "store them again")) from error
    if within.free is None:
        return free, free
    return free, SignBasis.draw(within.free, width, within.seed).point(free)


def _free_coordinates(
    within: Within, tensors: dict[str, np.ndarray], claim: dict[str, str], m: int, k: int
) -> Float[torch.Tensor, "m k"]:
    if within.format is None:
        values = tensors["vectors" if within.free is None else "coefficients"]
        if values.shape != (m, k) or values.dtype != np.float32 or not np.isfinite(values).all():
            got = f"{values.dtype} of shape {values.shape}"
            raise InputError(problem(f"finite float32 values of shape ({m}, {k})", got, "store them again"))
        return torch.from_numpy(values)
    table = levels(within.format)
    values = table.decode(unpack(tensors["codes"], table.bits, m * k)).reshape(m, k)
    if within.vector_scale:
        scales = positive_scales()
        own = scales.decode(unpack(tensors["scales"], scales.bits, m))[:, None]
    else:
        own = np.full((m, 1), float(claim["scale"]))
    return torch.from_numpy((values * own).astype(np.float32))
