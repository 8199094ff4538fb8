"""What is known of a loaded model: every number the theory and the measurements take from it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

NormKind = Literal["rms", "layer", "none", "other"]


@dataclass(frozen=True, slots=True)
class FinalNorm:
    """The last normalisation before the head, as applied (found by probing, not by name).

    Attributes
    ----------
    kind
        ``rms``: h = gain * x / rms(x) + bias; ``layer``: the same after subtracting the mean;
        ``none``: the head reads the residual stream; ``other``: a module that fits neither form.
    gain, bias
        Shape (width,), as applied: Gemma stores g and multiplies by 1 + g, so ``gain`` is 1 + g.
        Empty for ``none`` and ``other``.
    """

    kind: NormKind
    gain: Float[np.ndarray, " d"]
    bias: Float[np.ndarray, " d"]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of a model, probed or read; every field is a plain value fit for JSON.

    Attributes
    ----------
    name
        What the user asked for, without the path of this machine (a file's or folder's own name).
    family
        ``config.model_type``.
    width
        d, the number of coordinates of one prompt vector (of the input space).
    hidden_width
        Width of the final hidden state that the head reads (differs from ``width`` on some OPT models).
    rows
        Rows of the output head (logits per step).
    usable
        V, the number of ids that the tokenizer knows and that have a row; padded rows are not counted.
    special_ids
        Ids of special tokens (a subset of the usable ids); random targets never draw them.
    bos_id, eos_id
        Start and end id or None.
    layers, context
        Number of blocks; longest sequence in positions (None: no fixed limit, as in Mamba).
    tied_head
        Whether head and token table are one tensor.
    head_bias
        Whether the head adds a bias.
    soft_cap
        c of logits = c * tanh(x / c), or None.
    logit_scale
        Constant factor between W h + b and the logits before any soft cap (1 for most families).
    norm_kind
        See `FinalNorm`.
    embedding_scale
        Factor between a raw row of the token table and what the first block receives; None where the
        relation is no factor (a projection or a norm stands between).
    vector_scale
        Factor the model itself applies to vectors handed in as ``inputs_embeds`` (Gemma 2: sqrt(d); most: 1).
    parameters
        Number of weights.
    dtype, stored_dtype
        dtype of the weights as computed with, and as found in the file.
    fingerprint
        ``WEIGHTS-SETTINGS``, 16 and 8 hex digits (see `models.fingerprint`).
    revision
        Resolved commit of a hub model, or None.
    cache_ok
        Whether decoding with the cache agreed with a full recompute when the model was loaded; when False
        every decode recomputes. `LoadedModel.current_facts` also says whether it broke since.
    notes
        One line each about what a reader should know (padded rows, ignored settings, no tokenizer).
    """

    name: str
    family: str
    width: int
    hidden_width: int
    rows: int
    usable: int
    special_ids: tuple[int, ...]
    bos_id: int | None
    eos_id: int | None
    layers: int
    context: int | None
    tied_head: bool
    head_bias: bool
    soft_cap: float | None
    logit_scale: float
    norm_kind: NormKind
    embedding_scale: float | None
    vector_scale: float
    parameters: int
    dtype: str
    stored_dtype: str
    fingerprint: str
    revision: str | None
    cache_ok: bool
    notes: tuple[str, ...]
