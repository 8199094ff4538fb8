"""Certificates, and somebody's own vectors, as calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.config import JudgeConfig, VerifyConfig
from lmreach.config.given import configure
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.quantise import FORMATS
from lmreach.maths.precision import number_format
from lmreach.models.frame import frame_of
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, watching
from lmreach.results.certificates import DecodedCertificate, Judgement, Verification
from lmreach.runs.certificates.certificate import decode_certificate, load_for, open_certificate
from lmreach.runs.certificates.judge import judge as judge_vectors
from lmreach.runs.certificates.judge import read_target, read_vectors
from lmreach.runs.certificates.verify import quantised_summary, verify_run

__all__ = ["decode", "judge", "verify"]

Vectors = str | Path | Float[np.ndarray, "m d"] | Float[torch.Tensor, "m d"]
Target = str | Int[np.ndarray, " n"] | list[int]


def verify(
    run: str | Path,
    config: VerifyConfig | None = None,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> Verification:
    """Decode every certificate of a run again, and say which claims hold.

    Parameters
    ----------
    run
        Folder of the run.
    config, settings
        See `VerifyConfig`; settings by name replace those of the config.
    progress
        Told of every decoding; None: a bar where somebody looks on, else nobody.

    Raises
    ------
    OutputError
        No run, one that claims nothing, or a model that is not the one that was measured.
    """
    asked = configure(VerifyConfig, config, settings)
    with watching(progress) as watched:
        verdicts = verify_run(Path(run), formats=tuple(FORMATS) if asked.quantise else (), progress=watched)
    return Verification(verdicts=tuple(verdicts), quantised=quantised_summary(verdicts))


def judge(
    vectors: Vectors,
    model: ModelLike,
    config: JudgeConfig | None = None,
    *,
    target: Target,
    tokenizer: Tokenizer | None = None,
    **settings: Any,
) -> Judgement:
    """Judge your own vectors (compressor, gist tokens, prompt tuning): how far they are from the possible.

    Parameters
    ----------
    vectors
        Shape (m, d), in the space of ``inputs_embeds``; or a .npy or .safetensors file, or the folder of a
        PEFT prompt-tuning adapter.
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    config, settings
        See `JudgeConfig`; settings by name replace those of the config.
    target
        What they should emit: text:FILE, ids:FILE (its first line), or ids.
    tokenizer
        Goes with a model of transformers.

    Raises
    ------
    LmreachError
        Vectors, a target or a model that cannot be used, or a run of another model.

    Examples
    --------
    ``lmreach.judge(my_vectors, model, target="text:my.txt").tokens``
    """
    asked = configure(JudgeConfig, config, settings)
    number_format(asked.limit_dtype)
    given, stored_bits = _read(vectors)
    loaded = load(model, asked.load, tokenizer=tokenizer)
    return judge_vectors(
        loaded,
        given,
        _ids(loaded, target),
        stored_bits=stored_bits,
        frame=frame_of(loaded, asked.bos, asked.prefix, asked.suffix),
        run=None if asked.run is None else Path(asked.run),
        limit_dtype=asked.limit_dtype,
    )


def _read(vectors: Vectors) -> tuple[Float[np.ndarray, "m d"], int]:
    """Return vectors in float32, and the bits per value that they came with."""
    if isinstance(vectors, str | Path):
        return read_vectors(Path(vectors))
    given = torch.as_tensor(vectors).detach().cpu()
    if given.ndim != 2 or given.numel() == 0 or not given.is_floating_point():
        got = f"{str(given.dtype).removeprefix('torch.')} of shape {tuple(given.shape)}"
        raise InputError(problem("floating-point vectors of shape (m, d)", got, "reshape them"))
    if not torch.isfinite(given.float()).all():
        raise InputError(problem("finite vectors", "NaN or infinities in float32", "check them"))
    return given.float().numpy(), 8 * given.dtype.itemsize


def _ids(model: LoadedModel, target: Target) -> Int[np.ndarray, " n"]:
    return read_target(model, target) if isinstance(target, str) else model.check_ids(target)


def decode(
    certificate: str | Path,
    model: str | None = None,
    *,
    n: int | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> DecodedCertificate:
    """Return the text that a certificate's vectors emit.

    Parameters
    ----------
    certificate
        A .safetensors file from the certificates folder of a run, or the folder of a run that has just one.
    model
        Name of the model, where the file lies outside of its run.
    n
        Tokens; None: as many as it claims.
    note
        Told where less than the whole model could be compared.

    Raises
    ------
    LmreachError
        No certificate, or a model that is not the one it speaks of.
    """
    found = open_certificate(Path(certificate), model)
    loaded = load_for(found, note=note)
    decoded = decode_certificate(loaded, found, n)
    claimed = found.ids[: len(decoded.ids)]
    same = bool((decoded.ids[: len(claimed)] == claimed).all())
    return DecodedCertificate(
        model=loaded.facts.name,
        m=len(found.vectors),
        ids=tuple(decoded.ids.tolist()),
        text=loaded.text(decoded.ids),
        smallest_gap=decoded.smallest_gap,
        as_claimed=same and decoded.smallest_gap > 0,
    )
