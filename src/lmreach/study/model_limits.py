"""Every limit that a loaded model's own weights, and what was seen of its hidden states, allow."""

import numpy as np
import torch
from jaxtyping import Float

from lmreach.experiments.geometry import HiddenSupport
from lmreach.maths.bounds import Limit, limits
from lmreach.models.loaded import LoadedModel


def input_box(model: LoadedModel) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Return the smallest and largest value per coordinate over input vectors of non-special ids."""
    plain = torch.from_numpy(model.plain_ids).to(model.device)
    table = model.input_vectors(plain).float().cpu().numpy()
    return table.min(axis=0), table.max(axis=0)


def model_limits(
    model: LoadedModel, *, support: HiddenSupport | None = None, dtype: str = "float16"
) -> tuple[Limit, ...]:
    """Return the limits of a model.

    Parameters
    ----------
    support
        Measured support of final hidden states; None leaves the limits that need samples out.
    dtype
        Number format whose unit roundoff sets eps (the paper uses float16).
    """
    facts, norm = model.facts, model.final_norm
    known = norm.kind in ("rms", "layer")
    return limits(
        width=facts.width,
        hidden_width=facts.hidden_width,
        vocab=facts.usable,
        dtype=dtype,
        input_box=input_box(model),
        hidden_box=None if support is None else (support.low, support.high),
        hidden_radius=None if support is None else support.linf_max,
        norm_kind=norm.kind if known else None,
        norm_gain=norm.gain if known else None,
        norm_bias=norm.bias if known else None,
    )
