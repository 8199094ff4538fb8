"""A measured support on disk: a safetensors file whose metadata says what was measured, of which model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from lmreach.config.targets import TargetKind
from lmreach.errors import InputError, problem
from lmreach.experiments.states.support import SupportReport
from lmreach.files import write_whole
from lmreach.identity import same_model
from lmreach.models.loaded import LoadedModel

_KIND = "lmreach support 1"
_GAIN = 1e-3  # gains of one model differ by the rounding of the dtype it was loaded in


@dataclass(frozen=True, eq=False)
class SavedSupport:
    """What `bounds` takes from a support file.

    Attributes
    ----------
    facts
        Metadata: model, fingerprint, samples, kinds, lengths, radii, cosines, angles (radians).
    low, high
        Box of final hidden states, shape (h,).
    axis, mean_direction
        Unit vectors, shape (h,).
    gain
        Gain of the final norm, shape (h,), or empty: tells whether a file belongs to a model.
    """

    facts: dict[str, Any]
    low: Float[np.ndarray, " h"]
    high: Float[np.ndarray, " h"]
    axis: Float[np.ndarray, " h"]
    mean_direction: Float[np.ndarray, " h"]
    gain: Float[np.ndarray, " g"]

    @property
    def samples(self) -> int:
        """Number of states."""
        return int(self.facts["samples"])

    @property
    def linf_max(self) -> float:
        """Largest |coordinate|."""
        return float(self.facts["linf_max"])

    @property
    def l2_max(self) -> float:
        """Largest L2 norm."""
        return float(self.facts["l2_max"])

    @property
    def half_angle(self) -> float:
        """Half-angle of a cone that holds every state, radians."""
        return float(self.facts["half_angle"])

    @property
    def min_cos(self) -> float:
        """Smallest cosine between two states of the uniform sample."""
        return float(self.facts["kept_min_cos"])

    def check(
        self, *, name: str, width: int, gain: Float[np.ndarray, " g"], fingerprint: str | None = None
    ) -> None:
        """Refuse a model that this support was not measured on.

        The fingerprint decides where all weights were read; else width and gain of the final norm do.

        Raises
        ------
        InputError
            Naming what differs.
        """
        told = f"a support file of {name}"
        remedy = "measure it again: lmreach support MODEL"
        if self.low.size != width:
            raise InputError(problem(f"{told}, {width} wide", f"one of width {self.low.size}", remedy))
        other = f"one of {self.facts['model']}"
        comparable = fingerprint is not None and self.facts["dtype"] == "float32"
        if comparable and not same_model(self.facts["fingerprint"], fingerprint or ""):
            raise InputError(problem(told, f"{other} with other weights", remedy))
        if self.gain.shape != gain.shape or not np.allclose(self.gain, gain, rtol=_GAIN, atol=_GAIN):
            raise InputError(problem(told, f"{other} with another final norm", remedy))


def saved_support(model: LoadedModel, found: SupportReport, *, ends_at: str) -> SavedSupport:
    """Return what a support file holds of what was measured.

    Parameters
    ----------
    ends_at
        What set the longest prompt length: ``context``, ``positions``, or ``asked``.
    """
    seen = found.seen
    facts = {
        "model": model.facts.name,
        "fingerprint": model.facts.fingerprint,
        "dtype": model.facts.dtype,
        "context": model.facts.context,
        "samples": seen.samples,
        "kinds": [TargetKind.parse(kind).label for kind in seen.kinds],
        "lengths": list(found.lengths),
        "lengths_end_at": ends_at,
        "l1_max": seen.l1_max,
        "l2_max": seen.l2_max,
        "linf_max": seen.linf_max,
        "mean_cos": seen.mean_cos,
        "ellipsoid_fraction": seen.ellipsoid_fraction,
        "mean_angle": found.mean_angle,
        "half_angle": found.half_angle,
        "least_half_angle": found.least_half_angle,
        "kept": found.kept,
        "kept_min_cos": found.kept_min_cos,
        "min_cos_bound": found.min_cos_bound,
    }
    return SavedSupport(facts, seen.low, seen.high, found.axis, found.mean_direction, model.final_norm.gain)


def write_support(path: Path, support: SavedSupport) -> None:
    """Write a support file, whole or not at all.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    arrays = {
        "low": support.low,
        "high": support.high,
        "axis": support.axis,
        "mean_direction": support.mean_direction,
        "gain": support.gain,
    }
    content = save(
        {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()},
        metadata={"kind": _KIND, "facts": json.dumps(support.facts, allow_nan=False)},
    )
    write_whole(path, content, remedy="choose another with --out")


def read_support(path: Path) -> SavedSupport:
    """Read a support file.

    Raises
    ------
    InputError
        For a file that is missing, damaged, or something else.
    """
    if not path.is_file():
        raise InputError(
            problem("a support file", f"'{path}', which is no file", "make one: lmreach support")
        )
    try:
        with safe_open(path, framework="numpy") as file:
            meta = file.metadata() or {}
            if meta.get("kind") != _KIND:
                raise InputError(
                    problem("a support file", f"'{path}', which is none", "make one: lmreach support MODEL")
                )
            names = ("low", "high", "axis", "mean_direction", "gain")
            arrays = {name: file.get_tensor(name) for name in names}
        return SavedSupport(json.loads(meta["facts"]), **arrays)
    except (SafetensorError, KeyError, ValueError) as error:
        got = f"'{path}', which is damaged or no safetensors file ({str(error).splitlines()[0][:120]})"
        raise InputError(
            problem("a whole support file", got, "make it again: lmreach support MODEL")
        ) from error
