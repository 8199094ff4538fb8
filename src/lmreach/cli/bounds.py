"""Limits from theory."""

import math
import textwrap
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmreach.cli.options import Json, Load
from lmreach.config import LoadConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmreach.experiments.support_file import SavedSupport
    from lmreach.maths.bounds import Limit

_PAGE = 79


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
    load: Load = LoadConfig(),
    json: Json = False,
) -> int:
    """Print every limit that a model's weights, or four numbers, allow.

    Of a model only config, final norm, head and token table are read, not its layers. With --width and
    --vocab no model is needed; --dtype then names the number format, as --limit-dtype does.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    saved = None
    if support is not None:
        from lmreach.experiments.support_file import read_support

        saved = read_support(Path(support))
    if model is not None and (width is not None or vocab is not None or radius is not None):
        raise InputError(problem("either MODEL or --width, --vocab and --radius", "both", "leave one out"))
    if model is None:
        if width is None or vocab is None:
            raise InputError(
                problem("MODEL, or both --width and --vocab", "neither", "see lmreach bounds --help")
            )
        if saved is not None:
            raise InputError(problem("MODEL with --support", "none", "name the model it was measured on"))
        given = load.dtype if "dtype" in load.model_fields_set else "float16"
        subject, notes, found, thresholds = _of_numbers(
            width, vocab, limit_dtype or given, vector_dtype, radius
        )
    else:
        subject, notes, found, thresholds = _of_model(
            model, load, limit_dtype or "float16", vector_dtype or "float32", saved
        )
    rows = _rows(found, m, n)
    if json:
        entry = {"subject": subject, "m": m, "n": n, "limits": rows, "notes": notes}
        if unbounded:
            entry["unbounded_log10_tokens"] = thresholds
        print(dumps(entry, indent=1, allow_nan=False))
        return 0
    _table(subject, rows, m, n)
    if unbounded:
        print("prompts of any length (Corollary 4.10): threshold length in tokens")
        for name, log10 in thresholds.items():
            print(f"  {name}: 10^{log10:.1f}")
        print()
    for row in rows:
        _say(f"{row['name']}: {row['note']}; in the norm {row['norm']} [{row['source']}]")
    for note in notes:
        _say(f"note: {note}")
    return 0


_Found = tuple[str, tuple[str, ...], "Sequence[Limit]", dict[str, float]]


def _of_numbers(width: int, vocab: int, dtype: str, vector_dtype: str | None, radius: float | None) -> _Found:
    from lmreach.maths.bounds import limits, unbounded_context
    from lmreach.maths.precision import unit_roundoff
    from lmreach.maths.supports import Ball

    found = limits(width=width, vocab=vocab, dtype=dtype, radius=radius, vector_dtype=vector_dtype or dtype)
    ball = unbounded_context(Ball(width, 1.0), eps=unit_roundoff(dtype), vocab=vocab)
    return f"d = {width}, V = {vocab}", (), found, {"ball (paper)": ball}


def _of_model(
    model: str, load: LoadConfig, dtype: str, vector_dtype: str, saved: "SavedSupport | None"
) -> _Found:
    from lmreach.maths.precision import number_format

    number_format(dtype), number_format(vector_dtype)
    from lmreach.models.partial import read_parts
    from lmreach.study.model_limits import cone_limits, parts_limits, unbounded_limits

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
    return subject, parts.notes, found, unbounded_limits(parts, dtype=dtype)


def _rows(found: "Sequence[Limit]", m: int, n: int | None) -> list[dict[str, Any]]:
    from lmreach.maths.bounds import tightest

    best = {limit.name for limit in tightest(found).values()}
    return [
        {
            **limit.as_dict(),
            "log_count_nats": limit.log_count(m),
            "longest_fully_possible": limit.longest_fully_possible(m),
            "log_share_nats": None if n is None else limit.log_share(n, m),
            "tightest": limit.name in best,
        }
        for limit in found
    ]


# Shorter words, so that the table fits into 80 columns.
_PACKING = {"proved": "proved", "exact count": "counted", "convention": "paper"}


def _table(subject: str, rows: list[dict[str, Any]], m: int, n: int | None) -> None:
    columns = [
        ["", "limit", *(("*" if row["tightest"] else " ") + row["name"] for row in rows)],
        ["", "premise", *(row["premise"] for row in rows)],
        ["", "packing", *(_PACKING[row["packing"]] for row in rows)],
        ["ln P", "nats", *(f"{row['log_packing_nats']:.1f}" for row in rows)],
        ["tokens/", "vector", *(f"{row['tokens_per_vector']:.2f}" for row in rows)],
        ["bits/", "coord", *(f"{row['bits_per_coordinate']:.2f}" for row in rows)],
        ["all up", f"to m={m}", *(str(row["longest_fully_possible"]) for row in rows)],
    ]
    if n is not None:
        columns.append(["share", f"n={n}", *(_share(row["log_share_nats"]) for row in rows)])
    widths = [max(map(len, column)) for column in columns]
    print(subject)
    for cells in zip(*columns, strict=True):
        words = (
            cell.ljust(width) if k < 3 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        print(" ".join(words).rstrip())
    print("* tightest proved limit under its premise; 'paper': a convention, no bound\n")


def _say(text: str) -> None:
    for line in textwrap.wrap(text, _PAGE, subsequent_indent="  "):
        print(line)


def _share(log_share: float) -> str:
    return "1" if log_share == 0 else f"10^{log_share / math.log(10):.0f}"
