"""One writer per run: a lock that ends with its process, however that ends, and names its owner."""

import os
import socket
import sys
import time
from pathlib import Path

from lmreach.errors import OutputError, problem
from lmreach.files import unwritable

__all__ = ["LOCK", "WriterLock"]

LOCK = ".writer"

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # the locked byte lies far behind the owner's name, which others read

    def _take(handle: int) -> None:
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _look(handle: int) -> None:
        _take(handle)
else:
    import fcntl

    def _take(handle: int) -> None:
        # Not a POSIX record lock: that one would not keep a second writer of the same process out, and
        # would end when anybody in the process closes the file.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _look(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)


class WriterLock:
    """The right to write to a run, held until `release` or the end of the process.

    Raises
    ------
    OutputError
        Another process has it (its number and host are named), or the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        try:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise unwritable(folder, error) from error
        try:
            _patiently(self._handle)
        except (BlockingIOError, PermissionError) as error:
            owner = _named(self._handle)
            os.close(self._handle)
            raise OutputError(
                problem(
                    "a run that nobody else writes to",
                    f"'{folder}', to which {owner} writes",
                    "wait for its end, or stop it",
                )
            ) from error
        except OSError as error:
            os.close(self._handle)
            raise unwritable(folder, error, "choose a file system that can lock files") from error
        self._say(f"process {os.getpid()} on {socket.gethostname()}\n")

    @staticmethod
    def owner(folder: Path) -> str | None:
        """Return who has the right to write just now; None: nobody."""
        try:
            handle = os.open(folder / LOCK, os.O_RDONLY)
        except OSError:
            return None
        try:
            _look(handle)
        except OSError:
            return _named(handle)
        finally:
            os.close(handle)
        return None

    def release(self) -> None:
        """Give the right back; the file stays, empty: taking it away would let two others in."""
        self._say("")
        os.close(self._handle)

    def _say(self, text: str) -> None:
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, text.encode())


def _patiently(handle: int) -> None:
    """Take the lock; who only looks whether it is free holds it for a moment."""
    for _ in range(5):
        try:
            return _take(handle)
        except (BlockingIOError, PermissionError):
            time.sleep(0.05)
    return _take(handle)


def _named(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 200).decode("utf-8", "replace").strip() or "another process"
