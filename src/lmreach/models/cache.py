"""Models converted once and kept: where they are, how large, and how to be rid of them."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from lmreach.errors import OutputError, problem
from lmreach.files import by_umask

STARTS = "starts"  # lengths of first vectors that were found
_META = "lmreach.json"
_FORMAT = 2  # raised when what is written into an entry changes


@dataclass(frozen=True)
class Entry:
    """One converted model.

    Attributes
    ----------
    folder
        An ordinary model folder.
    name
        File it was made from.
    sha256
        Of that file.
    stored_dtype
        Number format of most weights in that file.
    size
        Bytes on disk.
    """

    folder: Path
    name: str
    sha256: str
    stored_dtype: str
    size: int


def root() -> Path:
    """Return ``$LMREACH_CACHE``, else ``$XDG_CACHE_HOME/lmreach``, else ``~/.cache/lmreach``."""
    own = os.environ.get("LMREACH_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "lmreach"


def folder_of(sha256: str) -> Path:
    """Return where the model made from a file with this hash is, or would be."""
    return root() / "models" / f"{sha256[:32]}-v{_FORMAT}"


def lookup(sha256: str) -> Entry | None:
    """Return the entry for a file's hash, or None. Entries appear whole or not at all."""
    return _read(folder_of(sha256))


def entries() -> list[Entry]:
    """Return all entries, the largest first."""
    folder = root() / "models"
    found = [_read(path) for path in folder.iterdir()] if folder.is_dir() else []
    return sorted((entry for entry in found if entry is not None), key=lambda entry: -entry.size)


def clear() -> int:
    """Remove all entries, leftovers of stopped conversions, and kept probes; return the bytes set free."""
    return sum(_clear(root() / name) for name in ("models", STARTS))


def _clear(folder: Path) -> int:
    size = _size(folder)
    try:
        shutil.rmtree(folder, ignore_errors=False)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise OutputError(
            problem(f"a cache folder {folder} that can be removed", str(error), "remove it by hand")
        ) from error
    return size


def remove(entry: Entry) -> None:
    """Remove one entry."""
    shutil.rmtree(entry.folder, ignore_errors=True)


def store(sha256: str, name: str, stored_dtype: str, write: Callable[[Path], None]) -> Entry:
    """Let ``write`` fill a folder, then move it into its place in one step.

    A second process that converts the same file at the same time does no harm: the first to finish stays.

    Raises
    ------
    OSError
        If the folder cannot be written (full disk, read-only place); nothing half-written stays.
    """
    place = folder_of(sha256)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=place.parent))
    try:
        write(draft)
        meta = {"name": name, "sha256": sha256, "stored_dtype": stored_dtype}
        (draft / _META).write_text(json.dumps(meta), encoding="utf-8")
        by_umask(draft)  # mkdtemp's 0700 would hide a shared cache from others
        _move(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Entry(place, name, sha256, stored_dtype, _size(place))


def write(path: Path, text: str) -> None:
    """Write a small file beside the models, whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".draft-", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o644)  # mkstemp's 0600 would hide it from others
        os.replace(draft, path)
    finally:
        Path(draft).unlink(missing_ok=True)


def as_rows() -> list[dict[str, str | int]]:
    """Return the entries as JSON-ready rows."""
    return [{**asdict(entry), "folder": str(entry.folder)} for entry in entries()]


def _move(draft: Path, place: Path) -> None:
    try:
        draft.rename(place)
    except OSError:
        if _read(place) is None:
            raise


def _read(folder: Path) -> Entry | None:
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        return Entry(folder, meta["name"], meta["sha256"], meta["stored_dtype"], _size(folder))
    except (OSError, ValueError, KeyError):
        return None  # a draft, or no entry of ours


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
