"""What a copying run is asked to do."""

from typing import Annotated, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from lmreach.config.load import LoadConfig
from lmreach.config.settings import Count, Seconds, Seed, Settings, several
from lmreach.config.training import CopyTrainConfig

Decoding = Literal["free_running", "teacher_forced"]


class CopyPlan(Settings):
    """Which strings are asked for, how answers are decoded, and what is measured beside."""

    budget_s: Annotated[Seconds, Parameter(name="--budget")] = Field(
        default=None, description="time for the whole run: 90s, 5m, 1h, or none for no limit"
    )
    alphabet: str = Field(
        default="",
        description='letters of the strings, e.g. "a-p"; of a model as it is also "tokens"; empty: a to z',
    )
    test_alphabet: str = Field(
        default="", description='letters to measure with, e.g. "p-z"; empty: those of training'
    )
    strings: Count = Field(default=64, description="strings per length")
    lengths: Annotated[tuple[Count, ...], several("-n", "--length")] = Field(
        default=(), description="lengths to measure; none: chosen as results come in"
    )
    longest: Count | None = Field(
        default=None, description="longest string measured; default: 20 x the longest in training, or 256"
    )
    teacher_forced: Annotated[bool, Parameter(negative="")] = Field(
        default=False, description="feed the true answer back, as the published code does"
    )
    layout: str = Field(
        default="", description='prompt layout to measure in, e.g. "long examples"; empty: the usual one'
    )
    layouts: bool = Field(default=True, description="compare prompt layouts around the fall")
    cram: Annotated[tuple[Count, ...], several("--cram-vectors")] = Field(
        default=(1, 2, 4), description="prompt vectors of the cramming beside it (trained copiers)"
    )
    cram_strings: Annotated[int, Field(ge=0)] = Field(
        default=16, description="strings crammed beside it at each m; 0: none"
    )
    cram_steps: Count = Field(default=200, description="optimiser steps per crammed string")
    seed: Seed = Field(default=0, description="seed of the strings asked for, and of training")

    @property
    def decoding(self) -> Decoding:
        """Return how answers are decoded."""
        return "teacher_forced" if self.teacher_forced else "free_running"


class CopyConfig(CopyPlan):
    """Train a model to copy, or take one as it is, and find the length at which it stops copying."""

    train: CopyTrainConfig | None = Field(default=None, description="how a copier is trained (or fine-tuned)")
    model: str | None = Field(default=None, description="a model that is asked to copy as it is, in context")
    load: LoadConfig = LoadConfig()

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.train is None) == (self.model is None):
            raise ValueError("exactly one of train and model")
        if self.model is not None and self.test_alphabet:
            raise ValueError("test_alphabet goes with a trained copier; use alphabet for a model as it is")
        return self

    @property
    def trained_to(self) -> int | None:
        """Return the longest string in training; None for a model taken as it is."""
        return None if self.train is None else self.train.longest

    @property
    def furthest(self) -> int:
        """Return the longest string that may be measured."""
        if self.lengths:
            return max(self.lengths)
        if self.longest is not None:
            return self.longest
        return 256 if self.train is None else 20 * self.train.longest
