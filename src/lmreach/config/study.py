"""What a study, and cramming alone, are asked to do."""

from typing import Annotated

from cyclopts import Parameter
from pydantic import AfterValidator, Field

from lmreach.config.cramming import CramPlan
from lmreach.config.load import Load, LoadConfig
from lmreach.config.settings import Asked, Count, Seconds, Settings, Share, several
from lmreach.config.targets import labels

__all__ = ["CramRunConfig", "StudyConfig"]

_KINDS = "random, self, words[:FILE], text:FILE, ids:FILE, dataset:NAME"


def _known(kinds: tuple[str, ...]) -> tuple[str, ...]:
    labels(kinds)  # refuses what it does not know
    return kinds


Cram = Annotated[CramPlan, Parameter(name="*", group="Cramming options", negative_iterable=())]
Vectors = Annotated[tuple[Count, ...], several("-m", "--vectors")]
Targets = Annotated[tuple[str, ...], AfterValidator(_known), several()]


class StudyConfig(Settings):
    """The main job: limits, support of hidden states, and cramming at several m, within a budget."""

    model: Asked = Field(default="", description="Hugging Face id, folder, .gguf file or builtin:NAME")
    load: Load = LoadConfig()
    m: Vectors = Field(
        default=(1, 2, 3, 4), min_length=1, description="numbers of prompt vectors, e.g. -m 1 2 4"
    )
    targets: Targets = Field(
        default=("random", "self"), min_length=1, description=f"kinds of target strings: {_KINDS}"
    )
    budget_s: Annotated[Seconds, Parameter(name="--budget")] = Field(
        default=300.0, description="time for the whole run: 90s, 5m, 1h, or none for no limit"
    )
    relative_width: Annotated[Share, Parameter(name="--precision-wanted")] = Field(
        default=0.1,
        description="width of an interval over its value (0.1: 10 %) at which n50 and slope are known well "
        "enough, and measuring ends early; none: run all strings",
    )
    adapt_steps: bool | None = Field(
        default=None,
        description="within a budget, choose steps per string so that a first picture fits, then double them "
        "while n50 grows; none: unless --max-steps is given",
    )
    support_positions: Annotated[int, Field(ge=0)] = Field(
        default=8192, description="hidden states measured; 0 leaves the support out"
    )
    decoder_cells: Annotated[bool, Parameter(name="--cells")] = Field(
        default=True,
        description="decoder cells (shares, refined limit, unreachable tokens, map) and a census of outputs",
    )
    copying: Annotated[bool, Parameter(name="--with-copy", negative="")] = Field(
        default=False, description="ask the model as it is to copy random strings, in context"
    )
    limit_dtype: str = Field(
        default="float16", description="number format whose unit roundoff sets eps in the limits"
    )
    cram: Cram = CramPlan()

    @property
    def adapts(self) -> bool:
        """Whether steps follow from the budget: as asked, else unless a number of steps was."""
        if self.adapt_steps is not None:
            return self.adapt_steps
        return "max_steps" not in self.cram.model_fields_set and self.cram.protocol == "frontier"


class CramRunConfig(Settings):
    """Cramming alone: every string that is asked for at each m, in as many steps, unless a budget ends it."""

    load: Load = LoadConfig()
    m: Vectors = Field(default=(1,), min_length=1, description="numbers of prompt vectors, e.g. -m 1 2 4")
    budget_s: Annotated[Seconds, Parameter(name="--budget")] = Field(
        default=None, description="time for the whole run: 90s, 5m, 1h, or none for no limit"
    )
    targets: Targets = Field(
        default=("random",), min_length=1, description=f"kinds of target strings: {_KINDS}"
    )
    cram: Cram = CramPlan()

    def study(self, model: str) -> StudyConfig:
        """Return the study of a model that is nothing but this."""
        return StudyConfig(
            model=model,
            load=self.load,
            m=self.m,
            targets=self.targets,
            budget_s=self.budget_s,
            adapt_steps=False,
            relative_width=None,
            support_positions=0,
            decoder_cells=False,
            cram=self.cram,
        )
