"""Trials as tables: what is read back is what the ledger holds, by readers that are not ours."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.engine.run import Run, open_run
from lmreach.engine.store import Store
from lmreach.engine.tables import FORMATS, write_table
from lmreach.errors import InputError, OutputError
from tests.engine.rows import Row
from tests.engine.test_run import CONFIGS, RunKind, begun

NAMES = st.sampled_from(["reach", "ids", "text", "gap", "solved", "nested", "mixed"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "reach": st.integers(0, 10**9),
    "ids": st.lists(st.integers(0, 10**6), max_size=4),
    "text": st.text(max_size=8),
    "gap": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 9),
    "solved": st.booleans(),
    "nested": st.dictionaries(st.sampled_from("ab"), st.integers()),
    "mixed": st.integers(0, 9) | st.text(max_size=3) | st.booleans(),
}
RECORD = st.fixed_dictionaries({}, optional=VALUES)


def run_of(folder: Path, records: list[dict[str, Any]]) -> Run:
    begun(RunKind.STUDY, folder)
    with Store(folder) as store:
        for i, record in enumerate(records):
            store.add(f"{i:03d}", "random m=1", Row(**record))
    return open_run(folder)


@given(st.lists(RECORD, max_size=6))
@settings(deadline=None, max_examples=40)
def test_tables_hold_what_the_ledger_holds(tmp_path_factory, records: list[dict[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("table")
    run = run_of(folder / "run", records)
    with run.ledger() as store:
        trials = list(store.each())
    for form in FORMATS:
        assert write_table(run, folder / form, form) == len(records)
    lines = (folder / "jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line) for line in lines] == trials
    columns = list(dict.fromkeys(["key", "cell", *(name for trial in trials for name in trial)]))
    with (folder / "csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [list(row) for row in rows] == [columns] * len(trials)
    for row, trial in zip(rows, trials, strict=True):
        for name in columns:
            value = trial.get(name)
            assert row[name] == (
                "" if value is None else value if isinstance(value, str) else json.dumps(value)
            )
    table = pq.read_table(folder / "parquet").to_pylist()
    assert len(table) == len(trials)
    for row, trial in zip(table, trials, strict=True):
        for name in columns:
            value, held = row[name], trial.get(name)
            as_it_is = value == held and type(value) in (type(held), float)
            assert as_it_is or json.loads(value) == held, (name, value, held)


def test_what_cannot_be_written_is_one_line_and_leaves_what_was_there(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [{"reach": 1}])
    with pytest.raises(InputError, match="csv, jsonl, parquet"):
        write_table(run, tmp_path / "x", "xlsx")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="a place that can be written"):
        write_table(run, tmp_path / "folder", "csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "run"]
    assert CONFIGS[RunKind.STUDY] == run.envelope.config
