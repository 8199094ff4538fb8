"""The cells of a model's decoder: their shares, unreachable tokens, and a map."""

import sys
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Cells, Json, NoProgress
from lmreach.config import CellsConfig


def cells(
    model: str,
    /,
    *,
    config: Cells = CellsConfig(),
    out: Annotated[str, Parameter(name=["--out", "-o"], help="Folder for map.svg and map.png.")] = ".",
    json: Json = False,
    no_progress: NoProgress = False,
) -> int:
    """Estimate how big each token's cell is; find unreachable tokens; draw the cells between three texts.

    Shares are estimated unless another part is asked for; with --samples, --measure or --convention in any
    case.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli import BEGUN
    from lmreach.cli.running import show, watched
    from lmreach.runs.cells.run import cells as run_cells

    with watched(silent=no_progress) as (progress, stop):
        found = run_cells(model, config, out=out, progress=progress, stop=stop, begun=BEGUN)
    show(found, json=json)
    if found.interrupted:
        why = "interrupted" if stop() else "the budget was spent"
        print(f"lmreach: {why} before every part was through", file=sys.stderr)
    return stop.code if stop() else 0
