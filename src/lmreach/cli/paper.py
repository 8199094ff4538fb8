"""The published table."""

import textwrap
from json import dumps
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json

if TYPE_CHECKING:
    from lmreach.paper import PaperRow


def paper(
    *,
    dtype: Annotated[str, Parameter(help="Number format whose roundoff sets eps.")] = "float16",
    json: Json = False,
) -> int:
    """Print published slopes and limits beside ours, for every limit that needs no weights.

    Slopes and C are in tokens per vector. Needs no model.
    """
    from lmreach.paper import NOTES, comparison

    rows = comparison(dtype)
    if json:
        entries = [row.as_dict() for row in rows]
        print(dumps({"dtype": dtype, "models": entries, "notes": NOTES}, indent=1, allow_nan=False))
        return 0
    print(f"{'':<25}{'published slope':^24}{'our C':^18}{'C / listed slope':^18}{'published ratio':^15}")
    heads = ("model", "text", "random", "listed", "ball", "cone", "ball", "cone", "ball", "cone")
    widths = (-25, 8, 8, 8, 9, 9, 9, 9, 7, 8)
    print("".join(f"{h:<{-w}}" if w < 0 else f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for row in rows:
        print(_line(row, widths))
    print()
    for row in rows:
        for flag in row.flags:
            print(f"{_short(row.id)}: {flag}")
    for note in NOTES:
        print(textwrap.fill(f"note: {note}", 99, subsequent_indent="  "))
    return 0


def _line(row: "PaperRow", widths: tuple[int, ...]) -> str:
    values = (
        (row.slope_text, 2),
        (row.slope_random, 2),
        (row.slope_listed, 2),
        (row.ball, 2),
        (row.cone, 2),
        (row.ratio_listed, 3),
        (row.ratio_cone, 4),
        (row.published_ratio_ball, 3),
        (row.published_ratio_cone, 4),
    )
    cells = ("-" if value is None else f"{value:.{digits}f}" for value, digits in values)
    return f"{_short(row.id):<25}" + "".join(f"{c:>{w}}" for c, w in zip(cells, widths[1:], strict=True))


def _short(name: str) -> str:
    return name.rpartition("/")[2]
