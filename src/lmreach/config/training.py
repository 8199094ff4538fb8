"""How a model is trained to copy: frozen settings, and presets of them."""

from typing import Annotated, Any, ClassVar, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from lmreach.config.load import LoadConfig
from lmreach.config.settings import Count, Seed, Settings

CopyKind = Literal["rope", "nope", "alibi", "hard_alibi", "mamba", "lstm"]
CopyTaskName = Literal["copy", "prefix_ngram", "suffix_ngram", "duplicate_ngram"]
Precision = Literal["no", "bf16", "fp16"]
Optimiser = Literal["adamw", "muon"]

Rate = Annotated[float, Field(gt=0)]

# Given to a command in another way: with the model, or with the strings that are asked for.
_BESIDE = Parameter(parse=False)


class CopyTrainConfig(Settings):
    """What is trained on which strings, how, and when it is good enough.

    Training stops at the first test at which every held-out string is copied without a mistake, provided they
    are enough for the lower 95 % limit of that share to be over ``mark``.
    """

    of_a_preset: ClassVar[bool] = True

    kind: CopyKind = Field(default="rope", description="architecture, when trained from scratch")
    fine_tune: Annotated[str | None, _BESIDE] = Field(
        default=None, description="model to fine-tune instead of training from scratch"
    )
    revision: Annotated[str | None, _BESIDE] = Field(
        default=None, description="branch, tag or commit of a hub model to fine-tune"
    )
    offline: Annotated[bool, _BESIDE] = Field(default=False, description="never open a connection for it")
    trust_remote_code: Annotated[bool, _BESIDE] = Field(
        default=False, description="allow code shipped with it"
    )
    resize: Annotated[bool, Parameter(negative="")] = Field(
        default=False,
        description="fine-tuning: give every symbol a new row instead of taking tokens the model has",
    )
    width: Count = Field(default=128, description="d of a model trained from scratch")
    layers: Count = Field(default=2, description="its blocks")
    heads: Count = Field(default=8, description="its attention heads")
    state: Count = Field(default=64, description="numbers kept per channel (mamba)")

    task: CopyTaskName = Field(
        default="copy", description="copy, prefix_ngram, suffix_ngram, duplicate_ngram"
    )
    alphabet: Annotated[int, Field(ge=2, le=26), _BESIDE] = Field(
        default=26, description="letters that have an id"
    )
    letters: Annotated[str, _BESIDE] = Field(
        default="", description='letters that strings are made of, e.g. "a-p" or "abc"; empty: all'
    )
    n: Annotated[Count, Parameter(name="--ngram")] = Field(
        default=3, description="length of the n-gram in tasks that have one"
    )
    shortest: Annotated[Count, Parameter(name="--train-shortest")] = Field(
        default=1, description="length of the shortest training string, in letters"
    )
    longest: Annotated[Count, Parameter(name="--train-longest")] = Field(
        default=16, description="length of the longest training string, in letters"
    )

    pack: Count = Field(default=48, description="positions of a training context, filled with examples")
    batch: Count = Field(default=64, description="contexts per step")
    positions: Count | None = Field(
        default=None,
        description="longest sequence the model takes; default: 20 x the longest string fits twice",
    )
    max_steps: Annotated[Count, Parameter(name="--steps")] = Field(
        default=3000, description="steps after which training gives up"
    )
    lr: Rate = Field(default=2e-3, description="largest learning rate")
    matrix_lr: Rate = Field(default=0.02, description="largest learning rate of hidden matrices (muon)")
    warmup: Annotated[int, Field(ge=0)] = Field(default=100, description="steps of linear warm-up")
    decay: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.7, description="share of max_steps, at the end, over which the rate falls linearly to 0"
    )
    optimiser: Optimiser = Field(default="adamw", description="adamw, or muon for the hidden matrices")
    weight_decay: Annotated[float, Field(ge=0)] = Field(default=0.0, description="decoupled weight decay")
    clip: Rate = Field(default=1.0, description="largest norm of the gradient")
    precision: Precision = Field(default="no", description="mixed precision: no, bf16 or fp16")
    device: Annotated[Literal["auto", "cpu"], _BESIDE] = Field(
        default="auto", description="auto (an accelerator if any) or cpu"
    )
    seed: Annotated[Seed, _BESIDE] = Field(default=0, description="seed of weights and strings")

    test_every: Count = Field(default=100, description="steps between tests on held-out strings")
    test_strings: Count = Field(default=512, description="held-out strings of training lengths per test")
    mark: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.99, description="what the lower 95 % limit of exact match must be over"
    )
    save_every: Count = Field(default=200, description="steps between checkpoints")

    @property
    def load_parent(self) -> LoadConfig:
        """Return how the model to fine-tune is brought in: float32, on the CPU until training places it."""
        return LoadConfig(
            device="cpu",
            revision=self.revision,
            offline=self.offline,
            trust_remote_code=self.trust_remote_code,
        )

    @model_validator(mode="after")
    def _lengths_in_order(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"--train-shortest {self.shortest} above --train-longest {self.longest}")
        return self

    @property
    def context(self) -> int:
        """Positions that the model takes: asked for, or room for strings of 20 x the training length."""
        return self.positions if self.positions is not None else max(self.pack, 2 * 20 * self.longest + 64)

    @classmethod
    def preset(cls, name: Literal["quick", "paper"], kind: CopyKind = "rope", **changes: Any) -> Self:
        """Return ``quick`` (strings of up to 16 letters) or ``paper`` (up to 50) for a kind of model.

        Parameters
        ----------
        name
            Which preset.
        kind
            Kind of model; what is found to train well differs between them.
        changes
            Settings that replace those of the preset. The shortest string and the packed context follow task
            and longest string where they are not among them.
        """
        found = {**_PRESETS[name], **_OF_KIND[name].get(kind, {}), "kind": kind, **changes}
        found.setdefault("shortest", _least(found.get("task", "copy"), found.get("n", 3)))
        if "pack" not in changes:
            marks = 4 if found.get("task") == "prefix_ngram" else 3
            found["pack"] = max(found["pack"], 2 * found["longest"] + marks)
        return cls(**found)


def _least(task: str, n: int) -> int:
    """Return the length of the shortest string a task can be asked about, in letters."""
    return {"copy": 1, "duplicate_ngram": 2 * n}.get(task, n + 1)


_LONG_PACK: dict[str, Any] = {"heads": 4, "pack": 128, "batch": 32}

_PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"longest": 16, "pack": 48, "batch": 64},
    "paper": {"longest": 50, "pack": 256, "batch": 16, "max_steps": 12_000, "test_every": 200},
}
# Found by trying, one run each. A short context leaves fewer earlier strings to confuse a look-up with, but
# ends more often before a long string. Held-out strings right, of 512: RoPE after 700 steps 428 with 4
# heads and 128 positions, 313 with 8 heads and 48 positions (failing mostly at 13 to 16 letters); NoPE
# after 500 steps 334 with a third block and contexts no longer than the longest question, 136 with two
# blocks and 48 positions.
_OF_KIND: dict[str, dict[str, dict[str, Any]]] = {
    "quick": {
        "rope": {**_LONG_PACK, "max_steps": 2000},
        "nope": {"layers": 3, "pack": 35, "max_steps": 4000},
        "alibi": {"max_steps": 2500},
        "mamba": {"pack": 64, "batch": 48, "max_steps": 2000},
        "lstm": {"lr": 3e-3, "max_steps": 12_000, "test_every": 250},
    },
    "paper": {
        "rope": {"heads": 4, "max_steps": 5000},
        "hard_alibi": {"pack": 128, "batch": 32},
        "nope": {"layers": 3, "pack": 103, "batch": 32},
        "lstm": {"lr": 3e-3, "pack": 128, "batch": 32, "max_steps": 40_000, "test_every": 1000},
    },
}
