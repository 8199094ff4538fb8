"""How the support of final hidden states is measured."""

from typing import Annotated

from pydantic import Field

from lmreach.config.load import Load, LoadConfig
from lmreach.config.settings import Count, Seed, Settings, several

__all__ = ["SupportConfig"]


class SupportConfig(Settings):
    """Which prompts the states are those of, and how many."""

    load: Load = LoadConfig()
    positions: Count = Field(default=8192, description="hidden states to measure")
    lengths: Annotated[tuple[Count, ...], several("--prompt-tokens")] = Field(
        default=(),
        description="prompt lengths in tokens; default: 4, 16, 64, ... to the context limit, or as far as "
        "the positions afford (a quarter of them, for two kinds of prompts)",
    )
    prompts: Annotated[tuple[str, ...], several()] = Field(
        default=("random", "self"),
        min_length=1,
        description="kinds of prompts: random, self, text:FILE, ids:FILE",
    )
    limit_dtype: str = Field(default="float16", description="number format whose roundoff sets eps")
    seed: Seed = Field(default=0, description="seed of the prompts")
