"""Limits from theory."""

from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from pydantic import Field

from lmreach.cli.options import Json
from lmreach.config import LoadConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from lmreach.cli.bounds_table import Found


class _Load(LoadConfig):
    """The usual model options, but --dtype takes every number format: without MODEL no weights are read."""

    dtype: str = Field(  # type: ignore[assignment]
        default="float32", description="dtype of the weights; without MODEL the number format"
    )


def bounds(
    model: str | None = None,
    /,
    *,
    width: Annotated[
        int | None, Parameter(help="d: coordinates of a prompt vector (instead of MODEL).")
    ] = None,
    vocab: Annotated[int | None, Parameter(help="V: usable vocabulary entries (instead of MODEL).")] = None,
    limit_dtype: Annotated[
        str | None, Parameter(help="Number format whose roundoff sets eps; default float16, as in the paper.")
    ] = None,
    vector_dtype: Annotated[
        str | None,
        Parameter(help="Format of stored prompt vectors; default float32, without MODEL that of eps."),
    ] = None,
    radius: Annotated[
        float | None, Parameter(help="r: largest |coordinate| (it cancels in the paper's ball).")
    ] = None,
    m: Annotated[
        int, Parameter(name=["-m", "--vectors"], help="Number of prompt vectors for length and share.")
    ] = 1,
    n: Annotated[
        int | None, Parameter(name=["-n", "--length"], help="Output length in tokens for the share.")
    ] = None,
    support: Annotated[str | None, Parameter(help="File written by lmreach support.")] = None,
    unbounded: Annotated[
        bool, Parameter(negative="", help="Also the threshold for prompts of any length (Corollary 4.10).")
    ] = False,
    load: Annotated[_Load, Parameter(name="*", group="Model options")] = _Load(),
    json: Json = False,
) -> int:
    """Print every limit that a model's weights, or four numbers, allow.

    Of a model only config, final norm, head and token table are read, not its layers. With --width and
    --vocab no model is needed; --dtype then names the number format (any that --limit-dtype takes).

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.bounds_table import as_json, print_table

    if model is None:
        given = load.dtype if "dtype" in load.model_fields_set else "float16"
        found = _of_numbers(width, vocab, limit_dtype or given, vector_dtype, radius, support)
    elif width is not None or vocab is not None or radius is not None:
        raise InputError(problem("either MODEL or --width, --vocab and --radius", "both", "leave one out"))
    else:
        own = LoadConfig.model_validate(load.model_dump(exclude_unset=True))
        found = _of_model(model, own, limit_dtype or "float16", vector_dtype or "float32", support)
    if not unbounded:
        found = replace(found, thresholds={})
    if json:
        print(dumps(as_json(found, m, n), indent=1, allow_nan=False))
    else:
        print_table(found, m, n)
    return 0


def _of_numbers(
    width: int | None,
    vocab: int | None,
    dtype: str,
    vector_dtype: str | None,
    radius: float | None,
    support: str | None,
) -> "Found":
    from lmreach.cli.bounds_table import Found
    from lmreach.maths.bounds import limits, unbounded_context
    from lmreach.maths.precision import unit_roundoff
    from lmreach.maths.supports import Ball

    if width is None or vocab is None:
        raise InputError(
            problem("MODEL, or both --width and --vocab", "neither", "see lmreach bounds --help")
        )
    if support is not None:
        raise InputError(problem("MODEL with --support", "none", "name the model it was measured on"))
    found = limits(width=width, vocab=vocab, dtype=dtype, radius=radius, vector_dtype=vector_dtype or dtype)
    ball = unbounded_context(Ball(width, 1.0), eps=unit_roundoff(dtype), vocab=vocab)
    return Found(f"d = {width}, V = {vocab}", (), found, {"ball (paper)": ball})


def _of_model(model: str, load: LoadConfig, dtype: str, vector_dtype: str, support: str | None) -> "Found":
    from lmreach.experiments.states.file import read_support
    from lmreach.maths.precision import number_format

    # What needs no model is checked before one is read.
    number_format(dtype), number_format(vector_dtype)
    saved = None if support is None else read_support(Path(support))
    from lmreach.cli.bounds_table import Found
    from lmreach.models.partial import read_parts
    from lmreach.runs.model_limits import cone_limits, parts_limits, unbounded_limits

    parts = read_parts(model, load)
    if saved is not None:
        saved.check(
            name=parts.name,
            width=parts.hidden_width,
            gain=parts.final_norm.gain,
            fingerprint=parts.fingerprint,
        )
    found = parts_limits(parts, support=saved, dtype=dtype, vector_dtype=vector_dtype)
    if saved is not None:
        found += cone_limits(
            saved, half_angle=saved.half_angle, min_cos=saved.min_cos, vocab=parts.usable, dtype=dtype
        )
    subject = f"{parts.name}: d = {parts.width}, {parts.rows} rows, {parts.usable} usable = V"
    return Found(subject, parts.notes, found, unbounded_limits(parts, dtype=dtype))
