"""The run folder: where it lies, how one process makes it its own, and how JSON gets in and out whole."""

import itertools
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmreach.engine.lock import LOCK, WriterLock
from lmreach.engine.store import LEDGER
from lmreach.errors import OutputError, problem
from lmreach.files import check_place, unwritable, write_whole

__all__ = ["RUNS", "Claimed", "claim", "names_of_folders", "read_json", "write_json"]

RUNS = Path("lmreach-runs")
_REMEDY = "choose another --out"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A folder that this process alone writes to.

    Attributes
    ----------
    folder
        Where.
    lock
        The right to write.
    made
        The folders that were made for it, outermost first.
    holds_run
        Whether a ledger was there already.
    """

    folder: Path
    lock: WriterLock
    made: tuple[Path, ...]
    holds_run: bool

    def take_back(self) -> None:
        """Remove what was made, if nothing else came into it."""
        self.lock.release()
        if self.holds_run:
            return
        with suppress(OSError):
            self.lock.path.unlink()
            for folder in reversed(self.made):
                folder.rmdir()


def claim(out: Path | None, name: str, kind: str) -> Claimed:
    """Make a run folder this process's own, in one step that no second process can take as well.

    Parameters
    ----------
    out
        What the user asked for: new, empty, or the folder of a run; None: a new numbered folder under
        ``lmreach-runs``.
    name
        The model as asked for, from which a default folder takes its name.
    kind
        ``study``, ``cram``, ...

    Raises
    ------
    OutputError
        The folder holds something else already, is a file, lies where nothing can be written, or belongs to
        a run that another process writes to.
    """
    if out is None:
        made = _numbered(RUNS, f"{_slug(name)}-{kind}")
        return _checked(Claimed(made[-1], WriterLock(made[-1]), tuple(made), holds_run=False))
    if out.exists() and not out.is_dir():
        raise OutputError(problem("a folder for --out", f"'{out}', a file", _REMEDY))
    holds_run = (out / LEDGER).is_file()
    if not holds_run and out.is_dir() and any(path.name != LOCK for path in out.iterdir()):
        raise OutputError(problem("a new or empty folder for --out", f"'{out}', which holds files", _REMEDY))
    made = _make(out)
    lock = WriterLock(out)
    # Looked at again: whoever had the lock until now may have begun a run here.
    return _checked(Claimed(out, lock, tuple(made), (out / LEDGER).is_file()))


def _checked(claimed: Claimed) -> Claimed:
    try:
        # A run that goes on is here and nowhere else.
        check_place(claimed.folder, remedy=None if claimed.holds_run else _REMEDY)
    except OutputError:
        claimed.take_back()
        raise
    return claimed


def _make(folder: Path) -> list[Path]:
    """Make a folder and those around it; returns the ones that were missing, outermost first."""
    missing = list(itertools.takewhile(lambda place: not place.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error, _REMEDY) from error
    return missing[::-1]


def _numbered(parent: Path, stem: str) -> list[Path]:
    """Make the first numbered folder that is not there, by the step that makes it: never two the same."""
    around = _make(parent)
    for number in itertools.count(1):
        folder = parent / f"{stem}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(parent, error, _REMEDY) from error
        return [*around, folder]
    raise AssertionError("there is always another number")


def set_aside(claimed: Claimed) -> Path:
    """Move a run that is to be begun afresh beside its place; returns where it is now. Nothing is lost."""
    claimed.lock.release()
    folder = claimed.folder
    for number in itertools.count(1):
        place = folder.with_name(f"{folder.name}.before-{number}")
        if not place.exists():
            break
    try:
        folder.rename(place)
    except OSError as error:
        raise unwritable(folder, error, _REMEDY) from error
    return place


def write_json(path: Path, value: Any) -> None:
    """Write strict JSON, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    write_whole(path, json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


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


def names_of_folders(models: Sequence[str]) -> list[str]:
    """Return a folder's name for each of several models, no two the same, in capitals or not."""
    names: list[str] = []
    for stem in map(_slug, models):
        taken = {name.casefold() for name in names}
        numbered = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
        names.append(next(name for name in numbered if name.casefold() not in taken))
    return names


def _slug(name: str) -> str:
    stem = Path(name).name if not name.startswith("builtin:") else name.partition(":")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem.removesuffix(".gguf")).strip("-.") or "model"
