"""A cut-down copy of a model: its config with one narrow block and few rows, probed like any model.

It tells how the model is wired (which modules are the head, the token table and the final norm, and what they
do to vectors) before any weight is read.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from lmreach.config import LoadConfig
from lmreach.errors import ModelError
from lmreach.models import norm
from lmreach.models.checks import CALL_ERRORS
from lmreach.models.folder import LIBRARY_ERRORS
from lmreach.models.probe import Probe, probe
from lmreach.models.stored import NeedsWhole
from lmreach.models.trace import Call, trace

ROWS = 1024
"""Rows of a skeleton's token table."""
_INNER = 64


@dataclass(frozen=True)
class Skeleton:
    """A cut-down model.

    Attributes
    ----------
    model
        With random weights.
    probed
        How it is wired.
    names
        Name of each module, by `id`.
    norm, factor
        The call of its final norm (None where it has none), and the factor between what that returns and
        what the head is given.
    """

    model: PreTrainedModel
    probed: Probe
    names: dict[int, str]
    norm: Call | None
    factor: float

    def name(self, module: nn.Module) -> str:
        """Return a module's name in the model."""
        return self.names[id(module)]


def build(settings: Any, config: LoadConfig) -> Skeleton:
    """Return the skeleton of a model with these settings (a transformers config).

    Raises
    ------
    NeedsWhole
        If it cannot be built or does not run.
    """
    try:
        small = _cut(settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            dtype = getattr(torch, config.dtype)
            model: PreTrainedModel = AutoModelForCausalLM.from_config(small, dtype=dtype)
        model.eval().requires_grad_(False)
        probed = probe(model, np.arange(ROWS, dtype=np.int64))
        seen = trace(model, inputs_embeds=probed.wiring.embed(torch.arange(6)[None]))
    except (*LIBRARY_ERRORS, *CALL_ERRORS, ModelError) as error:
        raise NeedsWhole(f"a one-block copy of it does not run ({type(error).__name__})") from error
    names = {id(module): name for name, module in model.named_modules()}
    given = seen.of(probed.wiring.head)[0].given
    assert given is not None, "the probe found the head"
    before = seen.calls[: next(k for k, c in enumerate(seen.calls) if c.module is probed.wiring.head)]
    for call in before:
        factor = norm.scale_between(call.result, given)
        if factor is not None and norm.fit(call, factor) is not None:
            return Skeleton(model, probed, names, call, factor)
    return Skeleton(model, probed, names, None, 1.0)


def _cut(settings: Any) -> Any:
    """Return the config with one narrow block and few rows; norms and scales hang on widths, which stay."""
    small = copy.deepcopy(settings)
    text = small.get_text_config()
    text.vocab_size, text.num_hidden_layers = ROWS, 1
    padding = getattr(text, "pad_token_id", None)
    if isinstance(padding, int):
        text.pad_token_id = min(padding, ROWS - 1)
    if isinstance(getattr(text, "intermediate_size", None), int):
        text.intermediate_size = _INNER
    if text.__dict__.get("layer_types"):
        text.layer_types = text.layer_types[-1:]
    return small
