"""What a certificate's vectors say."""

import sys
from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json


def decode(
    certificate: str,
    /,
    *,
    model: Annotated[str | None, Parameter(help="Model, where the file lies outside of its run.")] = None,
    n: Annotated[int | None, Parameter(name=["-n", "--length"], help="Tokens; default: as claimed.")] = None,
    json: Json = False,
) -> int:
    """Print the text that a certificate's vectors emit; exit code 1 if it is not what they claim.

    Parameters
    ----------
    certificate
        A .safetensors file from the certificates folder of a run, or the folder of a run that has just one.
    """
    from lmreach.runs.certificates.certificate import decode_certificate, load_for, open_certificate

    found = open_certificate(Path(certificate), model)
    loaded = load_for(found, note=lambda text: print(f"lmreach: {text}", file=sys.stderr))
    decoded = decode_certificate(loaded, found, n)
    claimed = found.ids[: len(decoded.ids)]
    held = bool((decoded.ids[: len(claimed)] == claimed).all() and decoded.smallest_gap > 0)
    if json:
        entry = {
            "model": loaded.facts.name,
            "m": len(found.vectors),
            "ids": decoded.ids.tolist(),
            "text": loaded.text(decoded.ids),
            "smallest_gap": decoded.smallest_gap,
            "as_claimed": held,
        }
        print(dumps(entry, indent=1, allow_nan=False))
    else:
        print(loaded.text(decoded.ids))
        if not held:
            print("(not what the certificate claims)")
    return 0 if held else 1
