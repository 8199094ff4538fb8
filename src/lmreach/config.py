"""What a run is asked to do: frozen settings shared by the command line, Python and the stored record."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Protocol = Literal["frontier", "fixed"]
Bos = Literal["none", "before", "after"]
DType = Literal["float32", "float16", "bfloat16"]


class Settings(BaseModel):
    """Base: frozen, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LoadConfig(Settings):
    """How a model is brought in."""

    dtype: DType = Field(default="float32", description="dtype of the weights while computing")
    device: str = Field(default="auto", description="auto, cpu, cuda, cuda:1, ...")
    revision: str | None = Field(default=None, description="branch, tag or commit of a hub model")
    offline: bool = Field(default=False, description="never open a connection")
    trust_remote_code: bool = Field(default=False, description="allow code shipped with a checkpoint")


class CramConfig(Settings):
    """How prompt vectors are optimised, and what counts as reached (see docs/cramming.md).

    ``lr`` and ``lr_end`` are in units of the root mean square coordinate of the row's vectors as they stand,
    at least that of real inputs.
    """

    protocol: Protocol = Field(
        default="frontier", description="frontier (one run per string) or fixed (one n)"
    )
    strings: Annotated[int, Field(ge=1)] = Field(
        default=32, description="target strings per (m, target kind)"
    )
    n_max: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="length limit in tokens; a string that reaches it is censored there"
    )
    max_steps: Annotated[int, Field(ge=1)] = Field(default=300, description="optimiser steps per string")
    patience: Annotated[int, Field(ge=1)] = Field(
        default=150, description="stop after so many steps without growth"
    )
    lookahead: Annotated[int, Field(ge=1)] = Field(
        default=4, description="first tokens beyond the solved prefix in the loss"
    )
    lr: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="first step size, in units of the vectors' RMS"
    )
    lr_end: Annotated[float, Field(gt=0)] = Field(
        default=0.03, description="last step size, in units of the vectors' RMS"
    )
    beta1: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.85, description="Adam's first decay")
    beta2: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.9, description="Adam's second decay")
    restarts: Annotated[int, Field(ge=1)] = Field(default=1, description="starts per string; the best counts")
    bos: Bos = Field(default="none", description="start token: none, before the vectors, or after them")
    prefix: str = Field(default="", description="text that stands before the vectors, fixed")
    suffix: str = Field(default="", description="text between the vectors and the output, fixed")
    batch_size: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="rows at once; None: found"
    )
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="seed of targets and starts")


class StudyConfig(Settings):
    """The main job: limits, support of hidden states, and cramming at several m, within a budget."""

    model: str = Field(description="Hugging Face id, folder, .gguf file or builtin:NAME")
    load: LoadConfig = LoadConfig()
    m: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(1, 2, 4, 8, 16), min_length=1, description="numbers of prompt vectors"
    )
    targets: tuple[str, ...] = Field(
        default=("random", "self"),
        min_length=1,
        description="random, self, words[:FILE], text:FILE, ids:FILE, dataset:NAME",
    )
    budget_s: Annotated[float, Field(gt=0)] | None = Field(
        default=300.0, description="seconds for the whole run; None: no limit"
    )
    relative_width: Annotated[float, Field(gt=0)] | None = Field(
        default=0.1,
        description="width of an interval over its value at which n50 and slope are known well enough, and "
        "measuring ends early; None: run all strings",
    )
    support_positions: Annotated[int, Field(ge=0)] = Field(
        default=8192, description="hidden states measured; 0 leaves the support out"
    )
    decoder_cells: bool = Field(
        default=True,
        description="decoder cells (shares, refined limit, unreachable tokens, map) and a census of outputs",
    )
    limit_dtype: str = Field(
        default="float16", description="number format whose unit roundoff sets eps in the limits"
    )
    cram: CramConfig = CramConfig()
