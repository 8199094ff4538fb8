"""Certificates and trials in formats that other software reads."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lmreach.errors import InputError, problem
from lmreach.files import check_place


def export(
    source: str,
    model: str | None = None,
    /,
    *,
    out: Annotated[
        str | None, Parameter(name=["--out", "-o"], help="New folder for the export of a certificate.")
    ] = None,
    format: Annotated[
        Literal["peft", "safetensors"],
        Parameter(help="peft: a prompt-tuning adapter; safetensors: vectors, ids, claim."),
    ] = "peft",
    csv: Annotated[str | None, Parameter(help="File for every trial of a run as CSV.")] = None,
    jsonl: Annotated[str | None, Parameter(help="File for every trial of a run as JSON lines.")] = None,
    parquet: Annotated[str | None, Parameter(help="File for every trial of a run as Parquet.")] = None,
) -> int:
    """Write a certificate's vectors as an adapter or plain safetensors, or the trials of a run as a table.

    Parameters
    ----------
    source
        A .safetensors file from the certificates folder of a run with --out; or the folder of a run with
        --csv, --jsonl or --parquet.
    model
        The model of a certificate, where the file lies outside of its run.
    """
    tables = {"csv": csv, "jsonl": jsonl, "parquet": parquet}
    asked = {form: Path(path) for form, path in tables.items() if path is not None}
    if asked and out is not None:
        got = f"--out and --{next(iter(asked))}"
        raise InputError(problem("a certificate's vectors or the trials of a run", got, "ask for one"))
    if asked:
        return _tables(Path(source), asked)
    if out is None:
        wanted = "--out for a certificate, or --csv, --jsonl or --parquet for a run"
        raise InputError(problem(wanted, "none", "name a place to write"))
    return _vectors(Path(source), Path(out), format, model)


def _tables(run: Path, asked: dict[str, Path]) -> int:
    from lmreach.engine.run import open_run
    from lmreach.engine.tables import write_table

    begun = open_run(run)
    for form, path in asked.items():
        check_place(path, remedy=f"choose another place for --{form}")
        print(f"{path}: {write_table(begun, path, form)} trials")
    return 0


def _vectors(certificate: Path, out: Path, form: str, model: str | None) -> int:
    from lmreach.runs.certificates.certificate import (
        export_peft,
        export_safetensors,
        load_for,
        open_certificate,
    )

    found = open_certificate(certificate, model)
    check_place(out)
    path = export_peft(found, load_for(found), out) if form == "peft" else export_safetensors(found, out)
    print(path)
    return 0
