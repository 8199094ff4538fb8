"""Tiny models by name, for questions that can be answered by trying every prompt: ``tiny:llama,width=3,...``.

One line says everything: family, sizes, seed, to how many bits the weights are rounded, whether positions are
encoded, and how long it was trained. Commas, not ``?`` and ``&``, so that no shell needs quotes.
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from lmreach.config.written import whole_number
from lmreach.errors import InputError, problem
from lmreach.models.tiny import tiny

__all__ = ["PREFIX", "TinySpec", "tiny_model"]

PREFIX = "tiny:"
_FAMILIES = ("llama", "gpt2", "mamba")
_EXAMPLE = "tiny:llama,width=3,vocab=8,layers=1,bits=8,seed=0"
_SIZES = {"width": 64, "vocab": 4096, "layers": 8, "heads": 8}  # the largest that is still tiny
_TRAIN_ROWS, _TRAIN_LENGTH, _TRAIN_LR = 128, 16, 0.02


@dataclass(frozen=True, slots=True)
class TinySpec:
    """What a tiny model is.

    Attributes
    ----------
    family
        ``llama`` (RMSNorm, rotary positions), ``gpt2`` (LayerNorm, learned positions) or ``mamba`` (no
        attention).
    width, vocab, layers, heads
        d, V, blocks and attention heads.
    std
        Of the random weights, before training; 1 makes the blocks matter beside the residual stream.
    bits
        Weights rounded to 2^bits - 1 evenly spaced values per tensor, symmetric about 0; 0: not rounded.
    positions
        1, or 0: rotary angles or the position table are set to zero, so order is known from the causal mask
        alone.
    train
        Steps of training on a random Markov chain over the vocabulary; 0: random weights.
    seed
        Of weights and chain.
    """

    family: str = "llama"
    width: int = 3
    vocab: int = 8
    layers: int = 1
    heads: int = 1
    std: float = 1.0
    bits: int = 0
    positions: int = 1
    train: int = 0
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``tiny:FAMILY[,name=value...]``.

        Raises
        ------
        InputError
            For an unknown family or name, or a value out of range.
        """
        family, *settings = text.removeprefix(PREFIX).split(",")
        found: dict[str, Any] = {"family": family}
        for setting in settings:
            name, _, value = setting.partition("=")
            kinds = {f.name: f.type for f in fields(cls) if f.name != "family"}
            if name not in kinds:
                raise InputError(
                    problem(f"one of {', '.join(kinds)}", repr(setting), f"write e.g. {_EXAMPLE}")
                )
            found[name] = _number(name, value, whole=kinds[name] is int)
        spec = cls(**found)
        spec.check()
        return spec

    def check(self) -> None:
        """Refuse what cannot be built."""
        if self.family not in _FAMILIES:
            wanted = f"one of {', '.join(PREFIX + name for name in _FAMILIES)}"
            raise InputError(problem(wanted, PREFIX + self.family, f"write e.g. {_EXAMPLE}"))
        for name, most in _SIZES.items():
            least = 2 if name in ("width", "vocab") else 1
            _within(name, getattr(self, name), least, most)
        for name, least, most in (("positions", 0, 1), ("train", 0, 100_000), ("seed", 0, 2**32 - 1)):
            _within(name, getattr(self, name), least, most)
        if self.bits:
            _within("bits", self.bits, 2, 24)
        if self.width % self.heads:
            got = f"width={self.width}, heads={self.heads}"
            raise InputError(problem("a width that the heads divide", got, "use heads=1"))
        if self.family == "mamba" and not self.positions:
            raise InputError(problem("positions=1 for mamba", "positions=0", "leave it out: it encodes none"))
        if not 0 < self.std < 100:
            raise InputError(problem("std above 0 and below 100", f"{self.std:g}", "use std=1"))

    @property
    def name(self) -> str:
        """The spec in full, differences from the defaults only."""
        plain = TinySpec(self.family)
        changed = [f.name for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name)]
        shown = dict.fromkeys(["width", "vocab", "layers", *changed, "seed"])
        return PREFIX + ",".join([self.family, *(f"{name}={getattr(self, name):g}" for name in shown)])


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


def _number(name: str, value: str, *, whole: bool) -> float:
    number = whole_number(value) if whole else _decimal(value)
    if number is None:
        wanted = f"{name}={'a whole number' if whole else 'a number'}"
        raise InputError(problem(wanted, repr(value), f"write e.g. {_EXAMPLE}"))
    return number


def _decimal(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        got = f"{name}={value}"
        raise InputError(problem(f"{name} from {least} to {most}", got, "choose one in range"))


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
