"""Which limits from theory are computed, and at which size."""

from typing import Annotated

from cyclopts import Parameter
from pydantic import Field

from lmreach.config.load import LoadConfig
from lmreach.config.settings import Count, File, Settings

__all__ = ["BoundsConfig", "BoundsLoadConfig"]


class BoundsLoadConfig(LoadConfig):
    """The usual model options, but dtype takes every number format: without a model no weights are read."""

    dtype: str = Field(  # type: ignore[assignment]
        default="float32", description="dtype of the weights; without MODEL the number format"
    )

    def of_model(self) -> LoadConfig:
        """Return the same for a model that is read."""
        return LoadConfig.model_validate(self.model_dump(exclude_unset=True))


class BoundsConfig(Settings):
    """The numbers of a model that is none yet, number formats, and the size (m, n) asked about."""

    load: Annotated[BoundsLoadConfig, Parameter(name="*", group="Model options")] = BoundsLoadConfig()
    width: Count | None = Field(
        default=None, description="d: coordinates of a prompt vector (instead of MODEL)"
    )
    vocab: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="V: usable vocabulary entries (instead of MODEL)"
    )
    limit_dtype: str | None = Field(
        default=None, description="number format whose roundoff sets eps; default float16, as in the paper"
    )
    vector_dtype: str | None = Field(
        default=None,
        description="format of stored prompt vectors; default float32, without MODEL that of eps",
    )
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="r: largest |coordinate| (it cancels in the paper's ball)"
    )
    m: Annotated[Count, Parameter(name=["-m", "--vectors"])] = Field(
        default=1, description="number of prompt vectors for length and share"
    )
    n: Annotated[Count | None, Parameter(name=["-n", "--length"])] = Field(
        default=None, description="output length in tokens for the share"
    )
    need: Annotated[Count | None, Parameter(name=["--need"])] = Field(
        default=None,
        description="output length in tokens: how many vectors does it need? without --width: which width?",
    )
    support: File | None = Field(default=None, description="file written by lmreach support")
    unbounded: Annotated[bool, Parameter(negative="")] = Field(
        default=False, description="also the threshold for prompts of any length (Corollary 4.10)"
    )

    @property
    def eps_dtype(self) -> str:
        """Number format whose roundoff sets eps when there is no model."""
        given = self.load.dtype if "dtype" in self.load.model_fields_set else "float16"
        return self.limit_dtype or given
