"""How claims are checked: those of a run, and somebody's own vectors."""

from typing import Annotated

from cyclopts import Parameter
from pydantic import BeforeValidator, Field

from lmreach.config.load import Load, LoadConfig
from lmreach.config.settings import Bos, File, Settings
from lmreach.config.within import canonical

__all__ = ["JudgeConfig", "VerifyConfig"]


class JudgeConfig(Settings):
    """What stands around the vectors, and what they are compared with."""

    load: Load = LoadConfig()
    run: File | None = Field(default=None, description="a study of the same model, to compare with")
    bos: Bos = Field(default="none", description="where a start token stands")
    prefix: str = Field(default="", description="text before the vectors")
    suffix: str = Field(default="", description="text between the vectors and the output")
    limit_dtype: str = Field(default="float16", description="number format whose roundoff sets eps")
    within: Annotated[str, BeforeValidator(canonical)] = Field(
        default="",
        description="what the vectors are held to, as in 'lmreach cram --within'; they are refused where "
        "they are not, and compared with the limit of that very set",
    )


class VerifyConfig(Settings):
    """What is tried beside decoding every certificate again."""

    quantise: Annotated[bool, Parameter(negative="")] = Field(
        default=False,
        description="also round the vectors to narrower formats: how many bits does a vector really need?",
    )
