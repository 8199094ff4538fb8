"""Tiny models by name, for questions that can be answered by trying every prompt: ``tiny:llama,width=3,...``.

One line says everything: family, sizes, seed, to how many bits the weights are rounded, whether positions are
encoded, and how long it was trained. Commas, not ``?`` and ``&``, so that no shell needs quotes.
"""

from dataclasses import dataclass, fields
from typing import Any, Self

from lmreach.config.written import whole_number
from lmreach.errors import InputError, problem

__all__ = ["PREFIX", "TinySpec"]

PREFIX = "tiny:"
_FAMILIES = ("llama", "gpt2", "mamba")
_EXAMPLE = "tiny:llama,width=3,vocab=8,layers=1,bits=8,seed=0"
_SIZES = {"width": 64, "vocab": 4096, "layers": 8, "heads": 8}  # the largest that is still tiny


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
