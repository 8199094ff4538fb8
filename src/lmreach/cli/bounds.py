"""Limits from theory."""

import math
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmreach.cli.options import Json, Load
from lmreach.config import LoadConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmreach.maths.bounds import Limit


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
    radius: Annotated[
        float | None, Parameter(help="r: largest |coordinate| (it cancels in the paper's ball).")
    ] = None,
    m: Annotated[
        int, Parameter(name=["-m", "--vectors"], help="Number of prompt vectors for the share.")
    ] = 1,
    n: Annotated[
        int | None, Parameter(name=["-n", "--length"], help="Output length in tokens for the share.")
    ] = None,
    load: Load = LoadConfig(),
    json: Json = False,
) -> int:
    """Print every limit that a model's weights, or four numbers, allow.

    With --width and --vocab no model is needed; --dtype then names the number format, as --limit-dtype does.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.maths.bounds import limits

    if model is None:
        if width is None or vocab is None:
            raise InputError(
                problem("MODEL, or both --width and --vocab", "neither", "see lmreach bounds --help")
            )
        found = limits(width=width, vocab=vocab, dtype=limit_dtype or load.dtype, radius=radius)
        subject = f"d = {width}, V = {vocab}"
    elif width is not None or vocab is not None or radius is not None:
        raise InputError(problem("either MODEL or --width, --vocab and --radius", "both", "leave one out"))
    else:
        from lmreach.models.load import load as load_model
        from lmreach.study.model_limits import model_limits

        loaded = load_model(model, load)
        found = model_limits(loaded, dtype=limit_dtype or "float16")
        facts = loaded.facts
        subject = f"{facts.name}: d = {facts.width}, {facts.rows} rows, {facts.usable} usable = V"
    rows = [_row(limit, m, n) for limit in found]
    if json:
        print(dumps({"subject": subject, "m": m, "n": n, "limits": rows}, indent=1, allow_nan=False))
    else:
        _table(subject, found, rows, m, n)
    return 0


def _row(limit: "Limit", m: int, n: int | None) -> dict[str, Any]:
    log_share = None if n is None else limit.log_share(n, m)
    return {
        **limit.as_dict(),
        "log_count_nats": limit.log_count(m),
        "longest_fully_possible": limit.longest_fully_possible(m),
        "log_share_nats": log_share,
    }


def _table(subject: str, found: "Sequence[Limit]", rows: list[dict[str, Any]], m: int, n: int | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from lmreach.maths.bounds import tightest

    best = {limit.name for limit in tightest(found).values()}
    table = Table(title=subject, title_justify="left", caption_justify="left")
    for column in (
        "limit",
        "premise",
        "packing",
        "ln P, nats",
        "tokens/vector",
        f"all possible up to (m={m})",
    ):
        table.add_column(column, justify="left" if column in ("limit", "premise", "packing") else "right")
    if n is not None:
        table.add_column(f"share at n={n}", justify="right")
    for row in rows:
        cells = [
            ("* " if row["name"] in best else "  ") + row["name"],
            row["premise"],
            row["packing"],
            f"{row['log_packing_nats']:.1f}",
            f"{row['tokens_per_vector']:.2f}",
            f"{row['longest_fully_possible']} tokens",
        ]
        if n is not None:
            cells.append(_share(row["log_share_nats"]))
        table.add_row(*cells)
    table.caption = "* tightest proved limit under its premise"
    console = Console(width=None)
    console.print(table)
    for row in rows:
        console.print(f"{row['name']}: {row['note']} [{row['source']}]", markup=False, highlight=False)


def _share(log_share: float) -> str:
    return "1 (no limit)" if log_share == 0 else f"10^{log_share / math.log(10):.2f}"
