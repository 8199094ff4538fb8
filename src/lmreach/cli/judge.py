"""Somebody's own vectors against what is possible."""

from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json, Judge
from lmreach.config import JudgeConfig


def judge(
    vectors: str,
    model: str,
    /,
    *,
    target: Annotated[str, Parameter(help="What they should emit: text:FILE or ids:FILE (its first line).")],
    config: Judge = JudgeConfig(),
    json: Json = False,
) -> int:
    """Judge your own vectors (compressor, gist tokens, prompt tuning): how far they are from the possible.

    Parameters
    ----------
    vectors
        A .npy or .safetensors file of shape (m, d), or the folder of a PEFT prompt-tuning adapter.
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.running import show
    from lmreach.runs.certificates.call import judge as run_judge

    show(run_judge(vectors, model, config, target=target), json=json)
    return 0
