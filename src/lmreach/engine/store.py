"""The ledger of a run: one SQLite file with one writer, and one certificate file per reached string.

A trial is written once; writing it again is a no-op. The rollback journal is used rather than a
write-ahead log because the latter corrupts or locks on network folders. What is written is on the disk
before the next step begins: first the proof and its name, then the record that claims it.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int
from pydantic import JsonValue
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from lmreach.engine.lock import WriterLock
from lmreach.errors import OutputError, problem
from lmreach.files import sweep, unwritable, write_whole
from lmreach.results.records import Record

__all__ = ["LEDGER", "Entry", "Proof", "Store", "read_tensors"]

Kept = TypeVar("Kept", bound=Record)

LEDGER = "store.sqlite"
LEDGER_VERSION = 1
"""`user_version` of the file; 0: as written before it had one."""

_CERTIFICATES = "certificates"
_TABLES = (
    "CREATE TABLE trials (key TEXT PRIMARY KEY, cell TEXT NOT NULL, record TEXT NOT NULL, proof TEXT) STRICT",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE INDEX trials_by_cell ON trials (cell)",
)
# What leads from each version to the next; nothing that was written is lost on the way.
_MIGRATIONS = (
    (
        "CREATE TABLE IF NOT EXISTS trials (key TEXT PRIMARY KEY, cell TEXT NOT NULL, record TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "ALTER TABLE trials RENAME TO trials_0",
        "ALTER TABLE meta RENAME TO meta_0",
        *_TABLES,
        "INSERT INTO trials SELECT key, cell, record, NULL FROM trials_0",
        "INSERT INTO meta SELECT name, value FROM meta_0",
        "DROP TABLE trials_0",
        "DROP TABLE meta_0",
    ),
)
_AT_ONCE = 500  # keys in one question: SQLite takes a limited number of parameters


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What a certificate holds.

    Attributes
    ----------
    vectors
        Shape (m, d); kept in float32.
    ids
        What they emit, shape (n,).
    claim
        What is claimed of them, all as text.
    stored
        What is kept in place of the vectors where they are held to a format, by name. None: the vectors.
    """

    vectors: Float[np.ndarray, "m d"]
    ids: Int[np.ndarray, " n"]
    claim: dict[str, str]
    stored: dict[str, np.ndarray] | None = None

    def as_bytes(self) -> bytes:
        """Return the content of the certificate file."""
        stored = self.stored or {"vectors": np.ascontiguousarray(self.vectors, dtype=np.float32)}
        return save({**stored, "ids": self.ids.astype(np.int64)}, metadata=self.claim)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One trial as it is to be written: see `Store.add`."""

    key: str
    cell: str
    record: Record
    proof: Proof | None = None


class Store:
    """Trials and certificates of one run folder, for its one writer; `Store.reading` for everybody else.

    Parameters
    ----------
    folder
        The run folder; made if missing.
    lock
        The right to write, if it is held already; None: it is taken, and given back by `close`.

    Raises
    ------
    OutputError
        The folder cannot be written, the disk is full, another process writes to the same run, or the ledger
        is damaged or of a newer version.
    """

    def __init__(self, folder: Path, lock: WriterLock | None = None) -> None:
        self.folder = folder
        self._own: WriterLock | None = None
        with _explained(folder):
            (folder / _CERTIFICATES).mkdir(parents=True, exist_ok=True)
        if lock is None:
            self._own = WriterLock(folder)
        try:
            self._db = _connect(folder, "rwc")
            with _explained(folder):
                self._db.execute("PRAGMA journal_mode=DELETE")
                self._db.execute("PRAGMA synchronous=FULL")
                _migrate(self._db, folder)
            for place in (folder, folder / _CERTIFICATES):
                sweep(place)
        except BaseException:
            self._give_back()
            raise

    @classmethod
    def reading(cls, folder: Path) -> "Store":
        """Open a ledger to read it, also in a folder that cannot be written or that a run writes to just now.

        Raises
        ------
        OutputError
            There is none, or it is damaged or of a newer version.
        """
        store = cls.__new__(cls)
        store.folder, store._own = folder, None
        # A journal that a killed writer left behind is rolled back by whoever may write.
        may_write = os.access(folder, os.W_OK) and os.access(folder / LEDGER, os.W_OK)
        store._db = _connect(folder, "rw" if may_write else "ro")
        try:
            with _explained(folder):
                store._db.execute("PRAGMA query_only=ON")
                _version(store._db, folder)
        except BaseException:
            store._db.close()
            raise
        return store

    def close(self) -> None:
        """Close the ledger."""
        self._db.close()
        self._give_back()

    def _give_back(self) -> None:
        if self._own is not None:
            self._own.release()
            self._own = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def begun(self) -> bool:
        """Whether there is anything to read: a writer that was killed at once has left an empty file."""
        with _explained(self.folder):
            return _has_tables(self._db)

    def add(self, key: str, cell: str, record: Record, proof: Proof | None = None) -> bool:
        """Write one trial, with the proof of what it claims; returns False when its key was there already.

        The proof is on the disk under its name before the record is written: a kill in between leaves no
        claim without its proof. The record keeps the sha256 of the certificate that belongs to it.
        """
        text = json.dumps(record.written(), allow_nan=False, sort_keys=True)
        if self.written([key]):
            return False
        digest = None
        if proof is not None:
            content = proof.as_bytes()
            digest = hashlib.sha256(content).hexdigest()
            write_whole(self.certificate_path(key), content)
        with _explained(self.folder), self._db:
            cursor = self._db.execute(
                "INSERT OR IGNORE INTO trials (key, cell, record, proof) VALUES (?, ?, ?, ?)",
                (key, cell, text, digest),
            )
        return cursor.rowcount == 1

    def add_entry(self, entry: Entry) -> bool:
        """Write one trial as a worker hands it over."""
        return self.add(entry.key, entry.cell, entry.record, entry.proof)

    def keys(self) -> set[str]:
        """Return the keys of all written trials."""
        with _explained(self.folder):
            return {row[0] for row in self._db.execute("SELECT key FROM trials")}

    def written(self, keys: Sequence[str]) -> set[str]:
        """Return those of some keys whose trials are written."""
        return {row[0] for row in self._among("SELECT key FROM trials", keys)}

    def counts(self) -> dict[str, int]:
        """Return how many trials each cell has, cells in the order of their names."""
        with _explained(self.folder):
            rows = self._db.execute("SELECT cell, COUNT(*) FROM trials GROUP BY cell ORDER BY cell")
            return {str(cell): int(count) for cell, count in rows}

    def trials(self, kind: type[Kept]) -> list[Kept]:
        """Return every row, read as one kind of trial, in order of keys, not of writing."""
        return [kind.model_validate(row) for row in self.each()]

    def each(self) -> Iterator[dict[str, JsonValue]]:
        """Give rows as they are, with ``key`` and ``cell``, one by one: a million of them need no memory."""
        with _explained(self.folder):
            for row in self._db.execute("SELECT key, cell, record FROM trials ORDER BY key"):
                yield _trial(*row)

    def rows(self) -> Iterator[tuple[str, str, str, str | None]]:
        """Give key, cell, record as it is written, and sha256 of the certificate, one by one."""
        proof = "NULL" if _version(self._db, self.folder) == 0 else "proof"
        with _explained(self.folder):
            yield from self._db.execute(f"SELECT key, cell, record, {proof} FROM trials ORDER BY key")  # noqa: S608

    def copy(self, key: str, cell: str, record: str, proof: str | None, certificate: bytes | None) -> bool:
        """Write a row of another ledger as it is, its certificate first; False: its key was there already."""
        if self.written([key]):
            return False
        if certificate is not None:
            write_whole(self.certificate_path(key), certificate)
        with _explained(self.folder), self._db:
            self._db.execute("INSERT INTO trials VALUES (?, ?, ?, ?)", (key, cell, record, proof))
        return True

    def all_meta(self) -> dict[str, Any]:
        """Return every value kept by `put_meta`, by name."""
        with _explained(self.folder):
            rows = self._db.execute("SELECT name, value FROM meta").fetchall()
        return {name: json.loads(value) for name, value in rows}

    def find(self, kind: type[Kept], key: str) -> Kept | None:
        """Return the trial of a key; None: it is not written."""
        row = next(self._among("SELECT key, cell, record FROM trials", [key]), None)
        return None if row is None else kind.model_validate(_trial(*row))

    def records(self, kind: type[Kept], keys: Sequence[str]) -> list[Kept]:
        """Return the trials of some keys, in the order of these keys.

        Raises
        ------
        KeyError
            A key that is not written.
        """
        rows = self._among("SELECT key, cell, record FROM trials", keys)
        trials = {row[0]: kind.model_validate(_trial(*row)) for row in rows}
        return [trials[key] for key in keys]

    def proofs(self) -> dict[str, str]:
        """Return the sha256 of the certificates that were written with their records, by key."""
        if _version(self._db, self.folder) == 0:
            return {}
        with _explained(self.folder):
            return dict(self._db.execute("SELECT key, proof FROM trials WHERE proof IS NOT NULL"))

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

    def certificate_path(self, key: str) -> Path:
        """Return where a trial's certificate lies."""
        return self.folder / _CERTIFICATES / f"{key}.safetensors"

    def certificates(self) -> list[Path]:
        """Return the certificate files that are there, in order of keys."""
        return sorted((self.folder / _CERTIFICATES).glob("*.safetensors"))

    def _among(self, select: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        for first in range(0, len(keys), _AT_ONCE):
            part = list(keys[first : first + _AT_ONCE])
            marks = ",".join("?" * len(part))
            with _explained(self.folder):
                yield from self._db.execute(f"{select} WHERE key IN ({marks})", part).fetchall()


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], Int[np.ndarray, " n"], dict[str, str]]:
    """Return what a certificate file keeps of its vectors, by name, the ids, and the claim.

    Raises
    ------
    OutputError
        The file is not a certificate, or is cut short.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
            if len(tensors) < 2 or "ids" not in tensors:
                raise SafetensorError(f"tensors {', '.join(sorted(tensors)) or 'none'}")
            return tensors, tensors.pop("ids"), dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise OutputError(
            problem(
                "a certificate (safetensors with vectors and ids)", f"'{path.name}': {error}", "run it again"
            )
        ) from error


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    with _explained(folder):
        place = f"{(folder / LEDGER).absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(place, timeout=10, uri=True)


def _version(db: sqlite3.Connection, folder: Path) -> int:
    with _explained(folder):
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > LEDGER_VERSION:
        raise OutputError(
            problem(
                f"a ledger of version {LEDGER_VERSION} or older",
                f"version {version} in '{folder}'",
                "use the version of lmreach that wrote it, or a newer one",
            )
        )
    return version


def _has_tables(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone() is not None


def _migrate(db: sqlite3.Connection, folder: Path) -> None:
    """Bring a ledger to the present version, in one transaction."""
    version = _version(db, folder)
    if version == LEDGER_VERSION:
        return
    steps: Iterable[str] = (step for steps in _MIGRATIONS[version:] for step in steps)
    if not _has_tables(db):
        steps = _TABLES
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            db.execute(step)
        db.execute(f"PRAGMA user_version={LEDGER_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _trial(key: str, cell: str, record: str) -> dict[str, JsonValue]:
    return {"key": key, "cell": cell, **json.loads(record)}


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn what the file system or SQLite says into one line with a remedy."""
    try:
        yield
    except (sqlite3.Error, OSError, SafetensorError, json.JSONDecodeError) as error:
        raise _of(folder, error) from error


def _of(folder: Path, error: Exception) -> OutputError:
    if isinstance(error, OSError):
        return unwritable(folder, error)
    code = str(getattr(error, "sqlite_errorname", ""))
    if code.startswith("SQLITE_FULL"):
        return OutputError(problem("room on the disk", f"'{folder}': {error}", "free space there"))
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        remedy = "wait for the other process to end"
        return OutputError(problem("a run that nobody else writes to", f"'{folder}': {error}", remedy))
    if code.startswith(("SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return unwritable(folder, error)
    remedy = "bring back a copy of store.sqlite; the certificates beside it are whole by themselves"
    return OutputError(problem("a whole ledger in the run folder", f"'{folder}': {error}", remedy))
