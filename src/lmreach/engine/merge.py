"""Several runs that were asked the same, each a part of it, as one run."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmreach.engine.run import Run, begin, open_run
from lmreach.engine.store import Store
from lmreach.errors import InputError, OutputError, problem

__all__ = ["merge"]

# What strings were run with beside what was asked: parts with other copies or starts are no parts of one run.
_FOUND = "search"
_ALIKE = ("dtype", "start_scale")


def merge(folders: Sequence[str | Path], out: Path) -> Run:
    """Join runs into a new one, which ``lmreach resume`` then completes and writes the page of.

    Parameters
    ----------
    folders
        Of runs of one kind, of one model, with the same settings. A trial that several hold is kept once.
    out
        A new or empty folder.

    Raises
    ------
    InputError
        Fewer than two runs.
    OutputError
        Runs that are no parts of one, a certificate that is not the one its trial was written with, or a
        folder that cannot be written.
    """
    if len(folders) < 2:
        raise InputError(problem("two runs or more to join", f"{len(folders)}", "name the parts"))
    parts = [open_run(folder) for folder in folders]
    first = parts[0]
    _check(parts)
    name = first.envelope.model or "run"
    with begin(first.kind, first.envelope.config, out, name=name) as written:
        if written.goes_on is not None:
            raise OutputError(
                problem("a new folder for --out", f"'{out}', which holds a run", "choose another")
            )
        envelope = first.envelope
        with first.ledger() as ledger:
            kept = ledger.all_meta()
        store = written.bind(envelope.model, envelope.fingerprint, command=envelope.command)
        for one in kept:
            store.put_meta(one, kept[one])
        store.put_meta("end", None)
        for part in parts:
            _copy(part, store)
    return open_run(out)


def _check(parts: list[Run]) -> None:
    """Refuse runs that are no parts of one."""
    first, found = parts[0], _found(parts[0])
    wanted = first.envelope.config.model_copy(update={"budget_s": None})
    for part in parts[1:]:
        remedy = "join runs of one command only"
        if (
            part.kind is not first.kind
            or part.envelope.config.model_copy(update={"budget_s": None}) != wanted
        ):
            got = f"other settings in '{part.folder}'"
            raise OutputError(problem(f"runs that were asked what '{first.folder}' was", got, remedy))
        if part.envelope.fingerprint != first.envelope.fingerprint:
            got = f"{part.envelope.fingerprint} in '{part.folder}'"
            raise OutputError(problem(f"runs of one model ({first.envelope.fingerprint})", got, remedy))
        if (own := _found(part)) != found:
            got = f"{own} in '{part.folder}'"
            remedy = "give every part the same --start-scale and --search-dtype"
            raise OutputError(problem(f"parts that searched alike ({found})", got, remedy))


def _found(run: Run) -> dict[str, Any]:
    with run.ledger() as ledger:
        kept = ledger.meta(_FOUND) or {}
    return {name: kept.get(name) for name in _ALIKE if name in kept}


def _copy(part: Run, store: Store) -> None:
    with part.ledger() as ledger:
        for key, cell, record, proof in ledger.rows():
            content = None
            if proof is not None:
                path = ledger.certificate_path(key)
                content = path.read_bytes() if path.is_file() else b""
                if hashlib.sha256(content).hexdigest() != proof:
                    got = f"another, or none, in '{part.folder}'"
                    remedy = "see 'lmreach verify' for it, or bring back a copy"
                    raise OutputError(problem(f"the certificate {path.name} as it was written", got, remedy))
            store.copy(key, cell, record, proof, content)
