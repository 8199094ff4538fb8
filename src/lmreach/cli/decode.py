"""What a certificate's vectors say."""

import sys
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json


def decode(
    certificate: str,
    model: str | None = None,
    /,
    *,
    n: Annotated[int | None, Parameter(name=["-n", "--length"], help="Tokens; default: as claimed.")] = None,
    json: Json = False,
) -> int:
    """Print the text that a certificate's vectors emit; exit code 1 if it is not what they claim.

    Parameters
    ----------
    certificate
        A .safetensors file from the certificates folder of a run, or the folder of a run that has just one.
    model
        Its model, where the file lies outside of its run.
    """
    from lmreach.cli.running import show
    from lmreach.runs.certificates.call import decode as run_decode

    note = partial(print, "lmreach:", file=sys.stderr)
    found = run_decode(certificate, model, n=n, note=note)
    show(found, json=json)
    return 0 if found.as_claimed else 1
