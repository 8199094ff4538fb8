"""What a census is asked to count."""

from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import BeforeValidator, Field

from lmreach.config.load import Load, LoadConfig
from lmreach.config.settings import Asked, Bos, Count, Seconds, Seed, Settings, several
from lmreach.config.written import as_written, levels
from lmreach.errors import InputError, problem

__all__ = ["SAMPLE", "CensusConfig", "ReachableConfig"]

SAMPLE = 4096
"""Prompts of two tokens and more, unless asked otherwise."""

Levels = Annotated[
    Annotated[int, Field(ge=2)] | None, BeforeValidator(levels), Parameter(converter=as_written)
]


class CensusConfig(Settings):
    """What is counted."""

    model: Asked = Field(
        default="", description="Hugging Face id, folder, .gguf file, builtin:NAME or tiny:FAMILY,..."
    )
    load: Load = LoadConfig()
    budget_s: Annotated[Seconds, Parameter(name="--budget")] = Field(
        default=None,
        description="time for the whole run: 90s, 5m, 1h, or none for no limit; --is-reachable: 5m",
    )
    n: Annotated[Count | None, Parameter(name=["-n", "--length"])] = Field(
        default=None, description="tokens after each prompt: 12 on a grid, else 8"
    )
    bos: Bos = Field(default="none", description="start token: none, before the prompt, or after it")
    seed: Seed = Field(default=0, description="seed of sampled prompts")
    grid: Levels = Field(
        default=None,
        description="exact: try every prompt whose coordinates take q values, e.g. q=4 or 4; none: prompts "
        "are real tokens",
    )
    m: Annotated[tuple[Count, ...], several("-m", "--vectors")] = Field(
        default=(1, 2, 3), min_length=1, description="vectors on the grid, e.g. -m 1 2"
    )
    extent: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="largest coordinate on the grid; default: that of real inputs"
    )
    order: Literal["all", "sorted"] = Field(
        default="all", description="all prompts of the grid, or one order of what precedes the last vector"
    )
    sketch: Annotated[bool, Parameter(negative="")] = Field(
        default=False,
        description="estimate distinct outputs in fixed memory, error stated, instead of counting",
    )
    memory_rows: Annotated[int, Field(ge=1024)] = Field(
        default=1 << 23, description="distinct outputs held in memory before runs go to disk"
    )
    max_prompts: Count = Field(default=10_000_000, description="refuse grids of more prompts than this")
    list_missing: Annotated[int, Field(ge=0)] = Field(default=1000, description="missing sequences listed")
    prompt_tokens: Annotated[tuple[Count, ...], several()] = Field(
        default=(1,), min_length=1, description="ids in a prompt of real tokens"
    )
    prompts: Count | None = Field(
        default=None,
        description=f"prompts tried at most; default: every id for one token, {SAMPLE} for more",
    )

    @property
    def length(self) -> int:
        """Tokens decoded after each prompt."""
        return self.n or (12 if self.grid is not None else 8)


class ReachableConfig(Settings):
    """How it is asked whether one given output can be produced at all."""

    model: Asked = Field(default="", description="as of `CensusConfig`")
    text: Asked = Field(default="", description="the text, or ids:1,2,3")
    load: Load = LoadConfig()
    m: Annotated[tuple[Count, ...], several("-m", "--vectors")] = Field(
        default=(1, 2, 4, 8), min_length=1, description="numbers of vectors that are tried"
    )
    runs: Annotated[tuple[str, ...], several()] = Field(
        default=(), description="run folders whose certificates count as proofs"
    )
    budget_s: Annotated[Seconds, Parameter(name="--budget")] = Field(
        default=300.0, description="time to search: 90s, 5m, 1h"
    )
    bos: Bos = Field(default="none", description="start token: none, before the vectors, or after them")
    seed: Seed = Field(default=0, description="seed of the search")

    @property
    def seconds(self) -> float:
        """Time to search, in seconds.

        Raises
        ------
        InputError
            None was set: a search for what does not exist would not end.
        """
        if self.budget_s is None:
            raise InputError(problem("a budget for the search", "none", "pass e.g. --budget 5m"))
        return self.budget_s
