"""The ledger of a run: one SQLite file with one writer, and one certificate file per reached string.

A trial is written once; writing it again is a no-op. The rollback journal is used rather than a
write-ahead log because the latter corrupts or locks on network folders.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lmreach.errors import OutputError, problem

_TABLE = "CREATE TABLE IF NOT EXISTS trials (key TEXT PRIMARY KEY, cell TEXT NOT NULL, record TEXT NOT NULL)"
_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"


class Store:
    """Trials and certificates of one run folder.

    Parameters
    ----------
    folder
        The run folder; made if missing.

    Raises
    ------
    OutputError
        The folder cannot be written, the disk is full, or another process writes to the same run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _explained(folder):
            (folder / "certificates").mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(folder / "store.sqlite", timeout=10)
            self._db.execute("PRAGMA journal_mode=DELETE")
            with self._db:
                self._db.execute(_TABLE)
                self._db.execute(_META)

    def close(self) -> None:
        """Close the ledger."""
        self._db.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, key: str, cell: str, record: dict[str, Any]) -> bool:
        """Write one trial; returns False when its key was there already."""
        text = json.dumps(record, allow_nan=False, sort_keys=True)
        with _explained(self.folder), self._db:
            cursor = self._db.execute("INSERT OR IGNORE INTO trials VALUES (?, ?, ?)", (key, cell, text))
        return cursor.rowcount == 1

    def keys(self) -> set[str]:
        """Return the keys of all written trials."""
        with _explained(self.folder):
            return {row[0] for row in self._db.execute("SELECT key FROM trials")}

    def trials(self) -> list[dict[str, Any]]:
        """Return every record with its ``key`` and ``cell``, in order of keys, not of writing."""
        with _explained(self.folder):
            rows = self._db.execute("SELECT key, cell, record FROM trials ORDER BY key").fetchall()
        return [{"key": key, "cell": cell, **json.loads(record)} for key, cell, record in rows]

    def put_meta(self, name: str, value: Any) -> None:
        """Keep one JSON value about the whole run, replacing an earlier one."""
        with _explained(self.folder), self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value, allow_nan=False))
            )

    def meta(self, name: str) -> Any:
        """Return a value kept by `put_meta`, or None."""
        with _explained(self.folder):
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put_certificate(
        self,
        key: str,
        vectors: Float[np.ndarray, "m d"],
        ids: Int[np.ndarray, " n"],
        claim: dict[str, str],
    ) -> None:
        """Write the vectors and the ids they emit, the claim as metadata; whole or not at all."""
        path = self.certificate_path(key)
        temporary = path.with_suffix(".tmp")
        with _explained(self.folder):
            save_file(
                {"vectors": np.ascontiguousarray(vectors, dtype=np.float32), "ids": ids.astype(np.int64)},
                temporary,
                metadata=claim,
            )
            temporary.replace(path)

    def certificate_path(self, key: str) -> Path:
        """Return where a trial's certificate lies."""
        return self.folder / "certificates" / f"{key}.safetensors"


def read_certificate(path: Path) -> tuple[Float[np.ndarray, "m d"], Int[np.ndarray, " n"], dict[str, str]]:
    """Return vectors, ids and claim of a certificate file.

    Raises
    ------
    OutputError
        The file is not a certificate, or is cut short.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            return file.get_tensor("vectors"), file.get_tensor("ids"), dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise OutputError(
            problem(
                "a certificate (safetensors with vectors and ids)", f"'{path.name}': {error}", "run it again"
            )
        ) from error


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn what the file system or SQLite says into one line with a remedy."""
    try:
        yield
    except (sqlite3.Error, OSError, SafetensorError) as error:
        raise OutputError(
            problem(
                "a run folder that can be written",
                f"'{folder}': {error}",
                "choose another --out or free space",
            )
        ) from error
