"""The trials of a run as a table: CSV, JSON lines or Parquet, one row a trial, in order of keys."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from lmreach.engine.run import Run
from lmreach.errors import InputError, problem
from lmreach.files import drafted

__all__ = ["FORMATS", "write_table"]

_ROWS = 10_000  # rows of Parquet written at once
_FIRST = ("key", "cell")


def write_table(run: Run, path: Path, form: str) -> int:
    """Write every trial of a run; returns how many there are.

    Parameters
    ----------
    path
        The file; what was there is replaced once the table is whole.
    form
        One of `FORMATS`. A value that is no number, text or truth is written as JSON; in Parquet only where
        it is no list of whole numbers either.

    Raises
    ------
    InputError
        An unknown format, or Parquet without pyarrow.
    OutputError
        The file cannot be written, or the ledger cannot be read.
    """
    if form not in FORMATS:
        raise InputError(problem(f"a format {', '.join(FORMATS)}", repr(form), "choose one"))
    with drafted(path) as draft:
        return FORMATS[form](run, draft)


def _trials(run: Run) -> Iterator[dict[str, JsonValue]]:
    with run.ledger() as store:
        yield from store.each()


def _columns(run: Run) -> dict[str, set[type]]:
    """Return every column of the table with the types of its values, key and condition first."""
    found: dict[str, set[type]] = {name: set() for name in _FIRST}
    for trial in _trials(run):
        for name, value in trial.items():
            kinds = found.setdefault(name, set())
            if value is not None:
                kinds.add(_kind(value))
    return found


def _kind(value: Any) -> type:
    if isinstance(value, list) and all(type(one) is int for one in value):
        return list
    return type(value) if isinstance(value, bool | int | float | str) else object


def _jsonl(run: Run, draft: Path) -> int:
    count = 0
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for trial in _trials(run):
            file.write(json.dumps(trial, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def _csv(run: Run, draft: Path) -> int:
    count, names = 0, list(_columns(run))
    with draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for trial in _trials(run):
            writer.writerow([_cell(trial.get(name)) for name in names])
            count += 1
    return count


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else _json(value)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _parquet(run: Run, draft: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        remedy = "pip install 'lmreach[parquet]', or export as --csv or --jsonl"
        raise InputError(problem("pyarrow for Parquet", "none installed", remedy)) from None
    types = {
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
        frozenset({str}): pa.string(),
        frozenset({list}): pa.list_(pa.int64()),
    }
    columns = {name: types.get(frozenset(kinds)) for name, kinds in _columns(run).items()}
    schema = pa.schema([(name, kind or pa.string()) for name, kind in columns.items()])
    count, trials = 0, _trials(run)
    with pq.ParquetWriter(draft, schema) as writer:
        while part := list(islice(trials, _ROWS)):
            rows = [
                {name: value if columns[name] else _json(value) for name, value in trial.items()}
                for trial in part
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    return count


FORMATS: Mapping[str, Callable[[Run, Path], int]] = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}
