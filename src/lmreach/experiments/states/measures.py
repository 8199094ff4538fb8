"""Reference measures of final hidden states: what the share of a decoder cell is a share of.

Every measure is drawn in numbered blocks, each from a seed of its own, so that sample i is the same however
many are asked for and however blocks are shared out.

Symbols: h hidden width, g and b gain and bias of the final norm, z standard normal.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lmreach.config.targets import TargetKind
from lmreach.errors import InputError, problem
from lmreach.experiments.states.stream import state_blocks
from lmreach.experiments.targets.draw import draw
from lmreach.models.facts import FinalNorm
from lmreach.models.loaded import LoadedModel

__all__ = [
    "MEASURES",
    "Measure",
    "MeasureName",
    "ball",
    "box",
    "check_measure",
    "ellipsoid",
    "empirical",
    "gaussian",
]

MeasureName = Literal["gaussian", "ellipsoid", "ball", "box", "empirical"]
MEASURES: tuple[str, ...] = get_args(MeasureName)

_BLOCK = 4096
_PROMPTS, _LENGTH = 64, 64
# Round measures share one stream of directions: their shares then differ by the measure, not by chance.
_ROUND, _BOX, _PROMPT = 11, 12, 13

Draw = Callable[[int], Float[Tensor, "k h"]]


@dataclass(frozen=True, eq=False)
class Measure:
    """A probability measure on hidden states that can be drawn from.

    Attributes
    ----------
    name
        One of `MEASURES`.
    words
        What it is, for a reader.
    block
        States in one block.
    seed
        Of all blocks.
    independent
        Whether states are independent of each other. Those of one prompt are not, so intervals that count
        each state as one trial are too narrow for the empirical measure.
    """

    name: str
    words: str
    block: int
    seed: int
    independent: bool
    _draw: Draw = field(repr=False)

    def draw(self, block: int) -> Float[Tensor, "k h"]:
        """Return the ``block``-th block of states in float32, shape (block, h)."""
        return self._draw(block)


def check_measure(name: str) -> str:
    """Return the name if there is such a measure.

    Raises
    ------
    InputError
        Naming those there are.
    """
    if name not in MEASURES:
        raise InputError(problem(f"a measure: {', '.join(MEASURES)}", repr(name), "name one of these"))
    return name


def gaussian(norm: FinalNorm, *, seed: int) -> Measure:
    """Norm-shaped Gaussian: h = b + g z; after LayerNorm the mean of z is taken out first.

    Raises
    ------
    InputError
        For a final norm without a known gain.
    """
    gain, bias = _shape(norm, "gaussian")

    def states(block: int) -> Float[Tensor, "k h"]:
        z, _ = _normal(seed, block, gain.size)
        return _placed(_centred(z, norm), gain, bias)

    return Measure("gaussian", f"norm-shaped Gaussian ({_NORMS[norm.kind]})", _BLOCK, seed, True, states)


def ellipsoid(norm: FinalNorm, *, seed: int) -> Measure:
    """Uniform on the norm ellipsoid: h = b + g sqrt(h) x, x uniform in the unit ball.

    After LayerNorm x lies in the unit ball of the hyperplane sum(x) = 0, which has h - 1 dimensions.

    Raises
    ------
    InputError
        For a final norm without a known gain.
    """
    gain, bias = _shape(norm, "ellipsoid")
    dimensions = gain.size - (norm.kind == "layer")

    def states(block: int) -> Float[Tensor, "k h"]:
        z, rng = _normal(seed, block, gain.size)
        inside = _in_ball(_centred(z, norm), rng, dimensions)
        return _placed(inside * np.float32(np.sqrt(gain.size)), gain, bias)

    return Measure(
        "ellipsoid", f"uniform in the norm ellipsoid ({_NORMS[norm.kind]})", _BLOCK, seed, True, states
    )


def ball(
    radius: float | None, center: Float[np.ndarray, " h"] | None = None, *, width: int, seed: int
) -> Measure:
    """Uniform in the L2 ball of a radius about a center (default: the origin).

    Raises
    ------
    InputError
        Without a radius (``support missing``), or for one that is not above 0.
    """
    if radius is None:
        raise _missing("ball", "a radius")
    if not (np.isfinite(radius) and radius > 0):
        raise InputError(problem("a finite radius above 0", f"{radius:g}", "measure the support again"))
    middle = np.zeros(width) if center is None else _finite(center, width, "center")

    def states(block: int) -> Float[Tensor, "k h"]:
        z, rng = _normal(seed, block, width)
        return _placed(_in_ball(z, rng, width), np.full(width, radius), middle)

    about = "the origin" if center is None else "a given center"
    return Measure(
        "ball", f"uniform in the L2 ball of radius {radius:.5g} about {about}", _BLOCK, seed, True, states
    )


def box(low: Float[np.ndarray, " h"] | None, high: Float[np.ndarray, " h"] | None, *, seed: int) -> Measure:
    """Uniform in the box [low, high], coordinate by coordinate.

    Raises
    ------
    InputError
        Without an end (``support missing``), or for ends that are not finite or out of order.
    """
    if low is None or high is None:
        raise _missing("box", "two ends per coordinate")
    low, high = _finite(low, np.size(low), "low"), _finite(high, np.size(low), "high")
    if (low > high).any():
        at = int((low > high).argmax())
        raise InputError(
            problem("low <= high", f"{low[at]:g} and {high[at]:g} at coordinate {at}", "measure it again")
        )
    start, side = low.astype(np.float32), (high - low).astype(np.float32)

    def states(block: int) -> Float[Tensor, "k h"]:
        rng = _block_rng(seed, _BOX, block)
        return torch.from_numpy(start + side * rng.random((_BLOCK, start.size), dtype=np.float32))

    return Measure("box", "uniform in the box of hidden states", _BLOCK, seed, True, states)


def empirical(
    model: LoadedModel, *, kinds: tuple[str, ...] = ("random", "self"), length: int = _LENGTH, seed: int
) -> Measure:
    """Hidden states of real prompts: every position of every prompt is one state.

    Parameters
    ----------
    kinds
        Kinds of prompts, as in `lmreach.experiments.targets.draw.draw`; blocks take them in turn.
    length
        Prompt length in tokens, cut to the model's context.

    Raises
    ------
    InputError
        For no kinds; when drawn, for an unknown kind or a text with too few tokens.
    """
    if not kinds:
        raise InputError(problem("a kind of prompts", "none", "name random, self or text:FILE"))
    if model.facts.context is not None:
        length = max(1, min(length, model.facts.context - 1))

    def states(block: int) -> Float[Tensor, "k h"]:
        turn, index = block % len(kinds), block // len(kinds)
        ids = _prompts(model, kinds[turn], length, index, _block_seed(seed, _PROMPT, block))
        return torch.cat([part.float() for part in state_blocks(model, ids)])

    told = ", ".join(TargetKind.parse(kind).label for kind in kinds)
    words = f"hidden states of prompts of {length} tokens ({told})"
    return Measure("empirical", words, _PROMPTS * length, seed, False, states)


_NORMS = {"rms": "RMSNorm", "layer": "LayerNorm"}


def _prompts(model: LoadedModel, kind: str, length: int, index: int, seed: int) -> Tensor:
    if TargetKind.parse(kind).word in ("random", "self", "words"):
        return torch.from_numpy(draw(model, kind, _PROMPTS, length, seed=seed).ids)
    # A file has one sequence of pieces: later blocks go on where earlier ones ended.
    ids = draw(model, kind, (index + 1) * _PROMPTS, length, seed=seed).ids
    return torch.from_numpy(ids[index * _PROMPTS :])


def _missing(name: str, what: str) -> InputError:
    return InputError(
        problem(
            f"{what} of hidden states for the {name} measure",
            "support missing",
            "measure one: lmreach support MODEL --out FILE, then --support FILE",
        )
    )


def _shape(norm: FinalNorm, name: str) -> tuple[Float[np.ndarray, " h"], Float[np.ndarray, " h"]]:
    if norm.kind not in _NORMS:
        raise InputError(
            problem(
                f"a final norm with a known gain for the {name} measure",
                f"norm of kind {norm.kind}",
                "choose box or ball with a support, or empirical",
            )
        )
    return np.asarray(norm.gain, dtype=np.float64), np.asarray(norm.bias, dtype=np.float64)


def _finite(values: Float[np.ndarray, " h"], width: int, what: str) -> Float[np.ndarray, " h"]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (width,) or not np.isfinite(array).all():
        got = f"shape {array.shape}" if array.shape != (width,) else "a value that is not finite"
        raise InputError(problem(f"{what} of {width} finite numbers", got, "measure the support again"))
    return array


def _block_seed(seed: int, stream: int, block: int) -> int:
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, block))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


def _block_rng(seed: int, stream: int, block: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, block)))


def _normal(seed: int, block: int, width: int) -> tuple[Float[np.ndarray, "k h"], np.random.Generator]:
    rng = _block_rng(seed, _ROUND, block)
    return rng.standard_normal((_BLOCK, width), dtype=np.float32), rng


def _centred(z: Float[np.ndarray, "k h"], norm: FinalNorm) -> Float[np.ndarray, "k h"]:
    return z - z.mean(axis=1, keepdims=True) if norm.kind == "layer" else z


def _in_ball(
    z: Float[np.ndarray, "k h"], rng: np.random.Generator, dimensions: int
) -> Float[np.ndarray, "k h"]:
    """Give normal directions the radius of a uniform point in the unit ball: U^(1/dimensions)."""
    radius = rng.random(len(z)) ** (1.0 / max(dimensions, 1))
    factor = (radius / np.linalg.norm(z, axis=1)).astype(np.float32)
    return np.asarray(z * factor[:, None])


def _placed(
    points: Float[np.ndarray, "k h"], scale: Float[np.ndarray, " h"], shift: Float[np.ndarray, " h"]
) -> Float[Tensor, "k h"]:
    return torch.from_numpy(points * scale.astype(np.float32) + shift.astype(np.float32))
