"""How a model is brought in."""

from typing import Annotated

from cyclopts import Parameter
from pydantic import Field

from lmreach.config.settings import DType, Settings

__all__ = ["Load", "LoadConfig"]


class LoadConfig(Settings):
    """How a model is brought in."""

    dtype: DType = Field(default="float32", description="dtype of the weights while computing")
    device: str = Field(default="auto", description="auto, cpu, cuda, cuda:1, ...")
    device_map: str | None = Field(
        default=None,
        description="spread the weights: auto (all GPUs, then memory, then disk), or parts and their places "
        "as JSON or a file of it; blocks alone may be offloaded",
    )
    revision: str | None = Field(default=None, description="branch, tag or commit of a hub model")
    offline: bool = Field(default=False, description="never open a connection")
    allow_pickle: bool = Field(
        default=False, description="read weights in the older pickle format, which can run code"
    )
    trust_remote_code: bool = Field(default=False, description="allow code shipped with a checkpoint")


# As a part of other configs: its names stand beside theirs on the command line.
Load = Annotated[LoadConfig, Parameter(name="*", group="Model options")]
