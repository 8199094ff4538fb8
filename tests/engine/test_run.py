"""Runs opened, claimed, begun, gone on with: of every kind, of older versions, by one writer at a time."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lmreach import files
from lmreach.config import CramPlan, StudyConfig
from lmreach.config.census import CensusConfig, ReachableConfig
from lmreach.config.copying import CopyConfig
from lmreach.engine import folder as folders
from lmreach.engine import run as runs
from lmreach.engine.provenance import public, without_path
from lmreach.engine.run import Left, RunConfig, RunKind, begin, open_run
from lmreach.engine.store import Store
from lmreach.errors import LmreachError, OutputError
from lmreach.results import AnyResults
from tests.report import every, sample

STUDY = StudyConfig(model="builtin:random", m=(1,))
CONFIGS: dict[RunKind, RunConfig] = {
    RunKind.STUDY: STUDY,
    RunKind.CENSUS: CensusConfig(model="builtin:random"),
    RunKind.REACHABLE: ReachableConfig(model="builtin:random", text="ids:1,2"),
    RunKind.COPY: CopyConfig(model="builtin:random"),
}
MODEL = "0123456789abcdef-01234567"


@cache
def sample_of(kind: RunKind) -> AnyResults:
    """Return results of a kind of run, invented; those of a study without what was reached."""
    if kind is RunKind.STUDY:
        return sample.study().model_copy(update={"accessibility": (), "slopes": (), "examples": ()})
    return next(results for results in every.runs() if results.kind == kind)


def begun(kind: RunKind, out: Path | None, config: RunConfig | None = None, **how: Any) -> Path:
    """Begin a run, or go on with it, and end it."""
    with begin(kind, config or CONFIGS[kind], out, name="builtin:random", **how) as run:
        run.bind("random", MODEL, {"theta": 1}, command="lmreach test")
        run.end(sample_of(kind), interrupted=False, left=[Left("more", "time was up")])
    return run.folder


@pytest.mark.parametrize("kind", RunKind)
def test_what_was_begun_is_opened_and_goes_on(kind: RunKind, tmp_path: Path) -> None:
    folder = begun(kind, tmp_path / "run")
    run = open_run(folder)
    assert (run.kind, run.envelope.model, run.envelope.command) == (kind, "random", "lmreach test")
    assert run.envelope.config == CONFIGS[kind]
    assert run.results() == sample_of(kind)
    end = run.end()
    assert end is not None
    assert [one.what for one in end.open] == ["more"]
    started = run.envelope.started
    begun(kind, folder)
    assert open_run(folder).envelope.started == started, "a run that goes on is the one that was begun"
    others = set(RunKind) - {kind}
    with pytest.raises(OutputError, match=f"a {kind} run"):
        run.require(*others, what="test")
    for other in others:
        with pytest.raises(OutputError, match=f"a {kind} run"):
            begun(other, folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"m": (2,)}, r"another m \(\[2\] instead of \[1\]\)"),
        ({"cram": CramPlan(seed=3)}, r"another cram.seed \(3 instead of 0\)"),
        ({"budget_s": 1.0}, None),
        ({"budget_s": None}, None),
    ],
)
def test_only_a_run_that_was_asked_the_same_goes_on(
    change: dict[str, Any], said: str | None, tmp_path: Path
) -> None:
    folder = begun(RunKind.STUDY, tmp_path / "run")
    other = STUDY.model_copy(update=change)
    if said is None:
        begun(RunKind.STUDY, folder, other)
        return
    with pytest.raises(OutputError, match=said):
        begun(RunKind.STUDY, folder, other)
    assert open_run(folder).envelope.config == STUDY
    begun(RunKind.STUDY, folder, other, fresh=True)
    assert open_run(folder).envelope.config == other
    assert open_run(tmp_path / "run.before-1").envelope.config == STUDY, "nothing is lost"


def test_another_model_is_refused_by_name_of_what_differs(tmp_path: Path) -> None:
    run = open_run(begun(RunKind.STUDY, tmp_path / "run"))
    assert run.check_model(MODEL) is None
    with pytest.raises(OutputError, match=r"other settings in config.json: theta \(2 instead of 1\)"):
        run.check_model("0123456789abcdef-76543210", {"theta": 2})
    with pytest.raises(OutputError, match="weights fedc"):
        run.check_model("fedcba9876543210-01234567")


def test_a_run_that_fails_before_its_model_is_there_leaves_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "new" / "run"
    with pytest.raises(LmreachError), begin(RunKind.STUDY, STUDY, out, name="x"):
        raise LmreachError("no such model")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(LmreachError), begin(RunKind.STUDY, STUDY, tmp_path / "mine", name="x"):
        raise LmreachError("no such model")
    assert list((tmp_path / "mine").iterdir()) == [], "an empty folder that was there stays"


@pytest.mark.parametrize("tables", [False, True])
def test_a_run_killed_before_it_began_is_begun_again(tables: bool, tmp_path: Path) -> None:
    Store(tmp_path / "run").close()
    if not tables:
        (tmp_path / "run" / "store.sqlite").write_bytes(b"")
    with pytest.raises(OutputError, match="before it began"):
        open_run(tmp_path / "run")
    begun(RunKind.STUDY, tmp_path / "run")


def test_default_folders_are_claimed_by_the_step_that_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight processes at once, each with a folder of its own and all of them numbered without a gap."""
    code = (
        "from lmreach.engine.folder import claim\n"
        "print(claim(None, 'builtin:random', 'cram').folder, flush=True); input()"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        for _ in range(8)
    ]
    named = [process.stdout.readline().strip() for process in processes if process.stdout]
    for process in processes:
        process.communicate("\n", timeout=60)
    assert sorted(named) == [f"lmreach-runs/random-cram-{i}" for i in range(1, 9)]
    monkeypatch.chdir(tmp_path)
    assert begun(RunKind.STUDY, None, stem="cram").name == "random-cram-9"


@pytest.mark.parametrize("holds_run", [False, True])
def test_one_folder_has_one_writer(tmp_path: Path, holds_run: bool) -> None:
    folder = tmp_path / "run"
    if holds_run:
        begun(RunKind.STUDY, folder)
    with begin(RunKind.STUDY, STUDY, folder, name="x"), pytest.raises(OutputError, match=f"{os.getpid()} on"):
        begin(RunKind.STUDY, STUDY, folder, name="x")
    begun(RunKind.STUDY, folder)


def test_only_a_new_run_is_sent_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`resume` takes no --out."""
    folder = begun(RunKind.STUDY, tmp_path / "run")

    def read_only(**_: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files.tempfile, "NamedTemporaryFile", read_only)
    with pytest.raises(OutputError, match="Read-only file system; get the right to write there"):
        begun(RunKind.STUDY, folder)
    with pytest.raises(OutputError, match="Read-only file system; choose another --out"):
        begun(RunKind.STUDY, tmp_path / "new")


def test_a_folder_of_something_else_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(OutputError, match="holds files"):
        begun(RunKind.STUDY, tmp_path)
    with pytest.raises(OutputError, match="a file"):
        begun(RunKind.STUDY, tmp_path / "notes")
    with pytest.raises(OutputError, match="folder of a run"):
        open_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


_TABLES = """
CREATE TABLE trials (key TEXT PRIMARY KEY, cell TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


def older(folder: Path, **meta: Any) -> Path:
    """Make the folder of a run as versions before envelopes did."""
    (folder / "certificates").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "store.sqlite")) as db, db:
        db.executescript(_TABLES)
        db.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in meta.items()])
    return folder


@pytest.mark.parametrize(
    ("kind", "name"), [(RunKind.STUDY, "config"), (RunKind.CENSUS, "census"), (RunKind.COPY, "copy")]
)
def test_runs_of_older_versions_open_and_go_on(kind: RunKind, name: str, tmp_path: Path) -> None:
    config = CONFIGS[kind]
    folder = older(
        tmp_path / "run",
        **{name: config.model_dump(mode="json"), "fingerprint": MODEL[:16], "command": "lmreach old"},
    )
    run = open_run(folder)
    assert (run.kind, run.envelope.config, run.envelope.command) == (kind, config, "lmreach old")
    assert "weights alone" in (run.check_model(MODEL) or "")
    with pytest.raises(OutputError, match="weights"):
        run.check_model("f" * 16 + "-01234567")
    assert run.end() is None
    begun(kind, folder)
    assert open_run(folder).envelope.schema_version == 1
    assert open_run(folder).envelope.command == "lmreach old"


def test_an_older_study_says_what_it_left(tmp_path: Path) -> None:
    folder = older(tmp_path / "run", config=STUDY.model_dump(mode="json"), fingerprint=MODEL[:16])
    spared = [{"target": "random", "m": 1, "strings": 8, "why": "known well enough"}]
    results = {
        "kind": "study",
        "not_done": [
            {"what": "decoder cells", "why": "not asked for"},
            {"what": "4 strings of self m=1", "why": "the budget was spent"},
        ],
        "results": {"precision": {"ended_early": spared}},
        "provenance": {"interrupted": False},
    }
    folders.write_json(folder / "results.json", results)
    end = open_run(folder).end()
    assert end is not None
    assert [one.what for one in end.open] == ["4 strings of self m=1"]
    assert [one.what for one in end.left] == ["decoder cells", "4 strings of self m=1", "8 of random m=1"]


def test_a_newer_run_is_one_line(tmp_path: Path) -> None:
    folder = begun(RunKind.STUDY, tmp_path / "run")
    with Store(folder) as store:
        kept = store.meta("run")
        store.put_meta("run", {**kept, "config": {**kept["config"], "brightness": 3}})
    with pytest.raises(OutputError, match="brightness"):
        open_run(folder)
    with Store(folder) as store:
        store.put_meta("run", {**kept, "schema_version": 2})
    with pytest.raises(OutputError, match="version 2"):
        open_run(folder)


def test_paths_stay_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = STUDY.model_copy(
        update={"model": "/home/me/model", "targets": ("random", "text:/home/me/my.txt", "ids:~/a.ids")}
    )
    shown = public(config, "model")
    assert (shown["model"], shown["targets"]) == ("model", ["random", "text:my.txt", "ids:a.ids"])
    assert shown["cram"] == config.cram.model_dump(mode="json")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert without_path("org/name") == "name"
    assert without_path("org/other") == "org/other", "a repository is no path"


def test_a_run_that_goes_on_elsewhere_says_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    for there in ({"torch": "2.13", "processor": "A"}, {"torch": "2.13", "processor": "B", "gguf": "1"}) * 2:
        monkeypatch.setattr(runs, "machine", lambda there=there: there)
        with begin(RunKind.STUDY, STUDY, tmp_path / "run", name="random") as run:
            run.bind("random", MODEL, {"theta": 1}, note=said.append)
    assert [one.partition(";")[0] for one in said] == [
        "this run goes on with processor B instead of A, gguf 1 instead of none",
        "this run goes on with processor A instead of B, gguf none instead of 1",
        "this run goes on with processor B instead of A, gguf 1 instead of none",
    ]
