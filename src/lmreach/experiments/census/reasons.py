"""What a model's decoder says about missing sequences: tokens proved unreachable, and shares of cells."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from lmreach.experiments.cells.decoder import decoder_of
from lmreach.experiments.cells.shares import count_cells
from lmreach.experiments.census.missing import Explained, Missing, explain
from lmreach.experiments.reach.reachability import reachability_of
from lmreach.experiments.states.measures import gaussian
from lmreach.models.loaded import LoadedModel

__all__ = ["reasons"]

_SAMPLES = 1 << 16


def reasons(model: LoadedModel, missing: Missing, *, seed: int = 0) -> Explained | None:
    """Test the known reasons on the missing sequences; None for a model whose final norm is not known.

    Shares are those of the norm-shaped Gaussian, counted over 65,536 states.
    """
    if model.final_norm.kind not in ("rms", "layer"):
        return None
    unreachable = tuple(reachability_of(model).having("unreachable").tolist())
    found = explain(missing, _shares(model, seed), unreachable)
    return replace(found, measure="norm-shaped Gaussian")


def _shares(model: LoadedModel, seed: int) -> Float[np.ndarray, " V"]:
    counted = count_cells(decoder_of(model), gaussian(model.final_norm, seed=seed), _SAMPLES)
    shares = np.zeros(model.facts.rows)
    shares[counted.ids] = counted.counts / counted.samples
    return shares
