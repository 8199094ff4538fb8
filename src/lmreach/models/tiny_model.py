"""Tiny models built from one line of words (`lmreach.models.tiny_spec`)."""

from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from lmreach.models.tiny import tiny
from lmreach.models.tiny_spec import TinySpec

__all__ = ["tiny_model"]

_TRAIN_ROWS, _TRAIN_LENGTH, _TRAIN_LR = 128, 16, 0.02


def tiny_model(spec: str | TinySpec, dtype: str = "float32") -> PreTrainedModel:
    """Build the model that a spec names; the caller's random state is left as it was.

    Parameters
    ----------
    dtype
        Number format it computes in.

    Raises
    ------
    InputError
        See `TinySpec.parse`.
    """
    spec = TinySpec.parse(spec) if isinstance(spec, str) else spec
    spec.check()
    model = tiny(spec.family, seed=spec.seed, **_settings(spec))
    if not spec.positions:
        _without_positions(model)
    if spec.train:
        _train(model, spec)
    if spec.bits:
        _round_weights(model, spec.bits)
    model.config._name_or_path = spec.name
    return model.to(getattr(torch, dtype)).eval()  # type: ignore[no-any-return]


def _settings(spec: TinySpec) -> dict[str, Any]:
    common = {"vocab_size": spec.vocab, "initializer_range": spec.std}
    if spec.family == "gpt2":
        sizes = {"n_embd": spec.width, "n_layer": spec.layers, "n_head": spec.heads}
        return {**common, **sizes, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    common |= {"hidden_size": spec.width, "num_hidden_layers": spec.layers}
    if spec.family == "mamba":
        return {**common, "state_size": 4, "time_step_rank": 1}
    size = spec.width // spec.heads
    heads = {"num_attention_heads": spec.heads, "num_key_value_heads": spec.heads}
    # Rotary pairs coordinates, so an odd head is one coordinate larger.
    return {**common, **heads, "head_dim": size + size % 2, "intermediate_size": 2 * spec.width}


@torch.no_grad()
def _without_positions(model: PreTrainedModel) -> None:
    """Turn by angle zero, or add a position vector of zeros: the blocks then see no positions."""
    for name, tensor in [*model.named_buffers(), *model.named_parameters()]:
        if name.endswith(("inv_freq", "wpe.weight")):
            tensor.zero_()


@torch.no_grad()
def _round_weights(model: PreTrainedModel, bits: int) -> None:
    levels = 2 ** (bits - 1) - 1
    for parameter in model.parameters():
        step = parameter.abs().max() / levels
        if step > 0:
            parameter.copy_((parameter / step).round() * step)


def _train(model: PreTrainedModel, spec: TinySpec) -> None:
    """Fit the next token of a random Markov chain; position tables that were zeroed stay zero."""
    rng = np.random.default_rng([spec.seed, 77])
    chain = rng.dirichlet(np.full(spec.vocab, 0.3), size=spec.vocab).cumsum(axis=1)
    fitted = [p for name, p in model.named_parameters() if spec.positions or not name.endswith("wpe.weight")]
    optimiser = torch.optim.AdamW(fitted, lr=_TRAIN_LR, weight_decay=0.0)
    model.train()
    for step in range(spec.train):
        for group in optimiser.param_groups:
            group["lr"] = _TRAIN_LR * (1 - step / spec.train)
        ids = torch.from_numpy(_walks(chain, rng))
        logits = model(input_ids=ids).logits[:, :-1]
        loss = nn.functional.cross_entropy(logits.reshape(-1, spec.vocab), ids[:, 1:].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.zero_grad(set_to_none=True)
    model.eval()


def _walks(chain: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw walks of the chain whose cumulated rows are given, shape (rows, length)."""
    walks = np.empty((_TRAIN_ROWS, _TRAIN_LENGTH), dtype=np.int64)
    walks[:, 0] = rng.integers(len(chain), size=_TRAIN_ROWS)
    for k in range(1, _TRAIN_LENGTH):
        drawn = rng.random((_TRAIN_ROWS, 1))
        walks[:, k] = np.minimum((chain[walks[:, k - 1]] < drawn).sum(axis=1), len(chain) - 1)
    return walks
