"""Certificates in formats that other software reads."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lmreach.files import check_place


def export(
    certificate: str,
    /,
    *,
    out: Annotated[str, Parameter(name=["--out", "-o"], help="New folder for the export.")],
    format: Annotated[
        Literal["peft", "safetensors"],
        Parameter(help="peft: a prompt-tuning adapter; safetensors: vectors, ids, claim."),
    ] = "peft",
    model: Annotated[str | None, Parameter(help="Model, where the file lies outside of its run.")] = None,
) -> int:
    """Write a certificate's vectors as a PEFT prompt-tuning adapter or as plain safetensors.

    Parameters
    ----------
    certificate
        A .safetensors file from the certificates folder of a run.
    """
    from lmreach.runs.certificates.certificate import (
        export_peft,
        export_safetensors,
        load_for,
        open_certificate,
    )

    found = open_certificate(Path(certificate), model)
    check_place(Path(out))
    if format == "peft":
        path = export_peft(found, load_for(found), Path(out))
    else:
        path = export_safetensors(found, Path(out))
    print(path)
    return 0
