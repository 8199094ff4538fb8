"""What a census is asked to count."""

from typing import Annotated, Literal

from pydantic import Field

from lmreach.config import Bos, LoadConfig, Settings

__all__ = ["SAMPLE", "CensusConfig"]

SAMPLE = 4096
"""Prompts of two tokens and more, unless asked otherwise."""

Count = Annotated[int, Field(ge=1)]


class CensusConfig(Settings):
    """What is counted."""

    model: str = Field(description="Hugging Face id, folder, .gguf file, builtin:NAME or tiny:FAMILY,...")
    load: LoadConfig = LoadConfig()
    n: Count | None = Field(default=None, description="tokens after each prompt: 12 on a grid, else 8")
    bos: Bos = Field(default="none", description="start token: none, before the prompt, or after it")
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="seed of sampled prompts")
    grid: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="values per coordinate of a grid of prompts; none: prompts are real tokens"
    )
    m: tuple[Count, ...] = Field(default=(1, 2, 3), min_length=1, description="vectors on the grid")
    extent: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="largest coordinate on the grid; default: that of real inputs"
    )
    order: Literal["all", "sorted"] = Field(
        default="all", description="all prompts of the grid, or one order of what precedes the last vector"
    )
    sketch: bool = Field(default=False, description="estimate distinct outputs in fixed memory")
    memory_rows: Annotated[int, Field(ge=1024)] = Field(
        default=1 << 23, description="distinct outputs held in memory before runs go to disk"
    )
    max_prompts: Count = Field(default=10_000_000, description="refuse grids of more prompts than this")
    list_missing: Annotated[int, Field(ge=0)] = Field(default=1000, description="missing sequences listed")
    prompt_tokens: tuple[Count, ...] = Field(
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
