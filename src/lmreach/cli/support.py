"""Where the final hidden states of a model lie."""

import sys
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json, NoProgress, Support
from lmreach.config import SupportConfig


def support(
    model: str,
    /,
    *,
    config: Support = SupportConfig(),
    out: Annotated[
        str | None, Parameter(name=["--out", "-o"], help="Support file to write, for bounds --support.")
    ] = None,
    json: Json = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure where final hidden states lie: radii, box, enclosing cone, cosines, and how all of them grow.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.running import show, watched
    from lmreach.runs.support import support as run_support

    with watched(silent=no_progress) as (progress, _):
        found = run_support(model, config, out=out, progress=progress)
    show(found, json=json)
    if out is not None and not json:
        print(f"\nwritten: {out}; use it with: lmreach bounds {model} --support {out}")
    if not found.inside:
        print("lmreach: a state left the norm ellipsoid", file=sys.stderr)
    return 0 if found.inside else 1
