"""The run folder: where it lies, whether it can be written, and how JSON gets into it whole."""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from lmreach.errors import OutputError, problem

RUNS = Path("lmreach-runs")


def choose(out: Path | None, name: str, kind: str) -> Path:
    """Return the folder of a new run, checked to be writable; nothing is made yet.

    Parameters
    ----------
    out
        What the user asked for; None: a numbered folder under ``lmreach-runs``.
    name
        The model as asked for, from which a default folder takes its name.
    kind
        ``study`` or ``cram``.

    Raises
    ------
    OutputError
        The folder holds something already, is a file, or lies where nothing can be written.
    """
    if out is None:
        out = _numbered(RUNS, f"{_slug(name)}-{kind}")
    if out.exists() and not out.is_dir():
        raise OutputError(problem("a folder for --out", f"'{out}', a file", "choose another --out"))
    if out.is_dir() and any(out.iterdir()):
        known = (out / "store.sqlite").is_file()
        remedy = (
            f"go on with 'lmreach resume {out}' or choose another --out" if known else "choose another --out"
        )
        raise OutputError(problem("a new or empty folder for --out", f"'{out}', which holds files", remedy))
    _check_writable(out)
    return out


def _check_writable(out: Path) -> None:
    """Write a byte where the folder will be: permission bits alone miss read-only mounts and full disks."""
    place = out
    while not place.exists():
        place = place.parent
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".lmreach-") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OutputError(
            problem(
                "a place that can be written for --out",
                f"'{place}': {error.strerror}",
                "choose another --out",
            )
        ) from error


def existing(run: Path) -> Path:
    """Return ``run`` if it is the folder of a run.

    Raises
    ------
    OutputError
        It is not.
    """
    if not (run / "store.sqlite").is_file():
        raise OutputError(
            problem(
                "the folder of a run (with store.sqlite in it)",
                f"'{run}'",
                "give the folder that a run printed",
            )
        )
    return run


def write_json(path: Path, value: Any) -> None:
    """Write strict JSON, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    temporary = path.with_suffix(path.suffix + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise OutputError(
            problem("a file that can be written", f"'{path}': {error.strerror}", "free space")
        ) from error


def read_json(path: Path) -> Any:
    """Read a JSON file of a run.

    Raises
    ------
    OutputError
        It is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(
            problem(f"a readable {path.name}", f"'{path}': {error}", "write it again with 'lmreach resume'")
        ) from error


def _slug(name: str) -> str:
    stem = Path(name).name if not name.startswith("builtin:") else name.partition(":")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem.removesuffix(".gguf")).strip("-.") or "model"


def _numbered(parent: Path, stem: str) -> Path:
    number = 1
    while (folder := parent / f"{stem}-{number}").exists():
        number += 1
    return folder
