"""Files written whole or not at all, readable for whom the umask lets read, and one line when it fails."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lmreach.errors import OutputError, problem

__all__ = ["by_umask", "check_place", "drafted", "sweep", "sync_folder", "unwritable", "write_whole"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MARK = ".part"


def write_whole(path: Path, content: bytes | str, *, remedy: str | None = None) -> None:
    """Write a file in one move: who looks sees the old content or the new, also after a power cut.

    Parameters
    ----------
    content
        Text is written as UTF-8 with plain line ends.
    remedy
        What the user can do when it fails; None: what the system's own reason suggests.

    Raises
    ------
    OutputError
        It cannot be written; what was there before is untouched, and nothing half-written stays.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with drafted(path, remedy=remedy) as draft:
        draft.write_bytes(data)


@contextmanager
def drafted(path: Path, *, remedy: str | None = None) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; what is there at the end of the block moves to ``path``.

    The draft is not made by `tempfile`, whose files are for their owner alone whatever the umask.

    Raises
    ------
    OutputError
        As `write_whole`; also where the block fails to write.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}{_MARK}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield draft
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error, remedy) from error


def by_umask(place: Path) -> None:
    """Give a folder and what is in it, made by software that makes everything private, the usual rights."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (place, *place.rglob("*")):
        with suppress(OSError):  # file systems without rights
            path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: a rename is lost in a power cut before that."""
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse, and keep names in order themselves
            os.fsync(handle)
    finally:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what a killed writer left half-written in a folder that nobody else writes to."""
    for draft in folder.glob(f".*{_MARK}"):
        with suppress(OSError):
            draft.unlink()


def check_place(path: Path, *, remedy: str | None = "choose another --out") -> None:
    """Write a few bytes where a file or folder will be: before the work, not after it.

    Permission bits alone miss read-only mounts and full disks. ``remedy`` is as in `write_whole`.

    Raises
    ------
    OutputError
        Nothing can be written there.
    """
    place = path if path.is_dir() else path.parent
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".lmreach-") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritable(place, error, remedy) from error


def unwritable(path: Path, error: Exception, remedy: str | None = None) -> OutputError:
    """Return the one line for a place that cannot be written; ``remedy`` as in `write_whole`."""
    reason = getattr(error, "strerror", None) or str(error)
    if remedy is None:
        full = getattr(error, "errno", None) in _FULL
        remedy = "free space there" if full else "get the right to write there, or copy the folder elsewhere"
    return OutputError(problem("a place that can be written", f"'{path}': {reason}", remedy))
