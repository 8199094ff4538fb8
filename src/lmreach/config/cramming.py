"""How prompt vectors are optimised."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from lmreach.config.settings import Bos, Count, Protocol, Seed, Settings, several
from lmreach.config.within import canonical
from lmreach.errors import InputError, problem

__all__ = ["PUBLISHED", "CramPlan", "CramSettings", "OptimiserConfig"]

# The published runs of Meyer et al. 2026: what stands for our defaults under their protocol.
PUBLISHED: dict[str, Any] = {
    "strings": 20,
    "max_steps": 3000,
    "patience": 500,
    "lr": 0.01,
    "lr_end": 0.01,
    "beta1": 0.9,
    "beta2": 0.9,
}


class CramSettings(Settings):
    """What the optimiser of one string and a plan of many have in common.

    ``lr`` and ``lr_end`` are in units of the root mean square coordinate of the row's vectors as they stand,
    at least that of real inputs.
    """

    max_steps: Count = Field(default=300, description="optimiser steps per string")
    patience: Count = Field(
        default=150,
        description="stop after so many steps without growth (frontier: not before 0.9 of the steps)",
    )
    lookahead: Count | None = Field(
        default=None,
        description="tokens in a block of the frontier; none: one for 36 coordinates of the vectors, from 8",
    )
    lr: Annotated[float, Field(gt=0)] = Field(
        default=0.5, description="first step size, in units of the vectors' RMS"
    )
    lr_end: Annotated[float, Field(gt=0)] = Field(
        default=0.03, description="last step size, in units of the vectors' RMS"
    )
    beta1: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.85, description="Adam's first decay")
    beta2: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.9, description="Adam's second decay")
    unsolved_weight: Annotated[float, Field(gt=0)] = Field(
        default=2.0, description="first weight in the loss of a position not yet emitted, beside 1"
    )
    unsolved_weight_end: Annotated[float, Field(gt=0)] = Field(
        default=12.0, description="last weight in the loss of a position not yet emitted, beside 1"
    )
    restarts: Count = Field(default=1, description="starts per string; the best counts")
    bos: Bos = Field(default="none", description="start token: none, before the vectors, or after them")
    prefix: str = Field(default="", description="text that stands before the vectors, fixed")
    suffix: str = Field(default="", description="text between the vectors and the output, fixed")
    within: Annotated[str, BeforeValidator(canonical)] = Field(
        default="",
        description="what vectors are held to: box, ball:R (longest real inputs), subspace:K, a format "
        "(float16, bfloat16, e4m3, e5m2, int8, int4, int3, int2, sign; int4:vector: a scale per vector), or "
        "subspace:K+FORMAT; none: any finite vector",
    )
    flips: Annotated[int, Field(ge=0)] = Field(
        default=20,
        description="rounds of local search that end a search within an evenly spaced format; 0: none",
    )
    seed: Seed = Field(default=0, description="seed of targets and starts")


class OptimiserConfig(CramSettings):
    """What the outcome of one string depends on, with nothing left to be found."""

    protocol: Literal["frontier", "fixed"] = Field(
        default="frontier", description="a frontier that grows, or the whole target from the first step on"
    )
    start_scale: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="length of the first vectors, in units of real inputs"
    )


class CramPlan(CramSettings):
    """Which strings are crammed, how many, up to which length, and how (see docs/cramming.md).

    Under the protocol ``published``, which is there for comparison only, settings that are not given are
    those of `PUBLISHED`, ``lr`` is absolute, and nothing decays.
    """

    protocol: Protocol = Field(
        default="frontier",
        description="frontier (one run per string gives its reach), fixed (success or not at single lengths) "
        "or published (that of Meyer et al. 2026, for comparison)",
    )
    length: Annotated[tuple[Count, ...], several("-n", "--length")] = Field(
        default=(),
        description="length in tokens to try under fixed or published, may be repeated; none: chosen by what "
        "was seen (fixed), or the published grid",
    )
    strings: Count = Field(default=32, description="target strings per (m, target kind)")
    n_max: Count | None = Field(
        default=None, description="length limit in tokens; a string that reaches it is censored there"
    )
    start_scale: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="length of the first vectors, in units of real inputs; none: found by a short probe",
    )
    search_dtype: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        default="auto",
        description="number format of the optimiser's passes; auto: the model's, or bfloat16 where that is "
        "timed to be faster; what is claimed is always computed in the model's",
    )
    batch_size: Count | None = Field(default=None, description="rows at once; None: found")

    def optimiser(self, start_scale: float) -> OptimiserConfig:
        """Return what each string is run with, starts as long as was found (or asked).

        Raises
        ------
        InputError
            The protocol is the published one: its settings mean other things to our optimiser.
        """
        if self.protocol == "published":
            remedy = "run it with lmreach.study or lmreach.cram, or pass protocol='fixed'"
            raise InputError(problem("protocol frontier or fixed", "published", remedy))
        shared = {name: getattr(self, name) for name in CramSettings.model_fields}
        return OptimiserConfig(protocol=self.protocol, start_scale=start_scale, **shared)

    @model_validator(mode="before")
    @classmethod
    def _published_defaults(cls, given: Any) -> Any:
        """Fill in what the published protocol means where nothing else was asked for."""
        if isinstance(given, dict) and given.get("protocol") == "published":
            return {**PUBLISHED, "lr_end": given.get("lr", PUBLISHED["lr"]), **given}
        return given
