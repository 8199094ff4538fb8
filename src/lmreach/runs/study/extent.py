"""How far out the vectors of a run lie, beside real inputs: which premises they can be held to."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lmreach.engine.store import Store
from lmreach.errors import OutputError
from lmreach.results.records import Certified
from lmreach.runs.certificates.stored import read_certificate

Vector = Float[np.ndarray, " d"]


@dataclass(frozen=True, slots=True)
class Extent:
    """Where one trial's vectors lie.

    Attributes
    ----------
    rms_over_inputs
        RMS coordinate of the m vectors over that of real input vectors.
    inside_input_box
        Whether every coordinate lies between the smallest and the largest of real input vectors: only
        such vectors are bound by limits under the premise *input*.
    """

    rms_over_inputs: float
    inside_input_box: bool


def extents(
    store: Store, trials: Iterable[Certified], *, input_rms: float, box: tuple[Vector, Vector]
) -> dict[str, Extent]:
    """Return the extent of every trial that has a readable certificate, by key.

    Parameters
    ----------
    input_rms
        RMS coordinate of real input vectors.
    box
        Smallest and largest value per coordinate of real input vectors.
    """
    low, high = box
    found = {}
    for trial in trials:
        if trial.reach == 0:
            continue
        try:
            vectors, _, _ = read_certificate(store.certificate_path(trial.key))
        except OutputError:  # `lmreach verify` names it; no statistic is made from what cannot be read
            continue
        rms = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64))))
        inside = bool(((vectors >= low) & (vectors <= high)).all())
        found[trial.key] = Extent(rms / input_rms, inside)
    return found
