"""A study gives the same whoever runs its rounds, and goes on where one executor was stopped with another."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmreach.config import CramPlan, ExecutorConfig, StudyConfig
from lmreach.engine.run import open_run
from lmreach.errors import InputError
from lmreach.models.search_copy import untimed
from lmreach.progress import Silent
from lmreach.runs.certificates.stored import read_certificate
from lmreach.runs.study import search
from lmreach.runs.study.run import run_study

# More strings than a round has: with two workers rounds of one condition are run at once. Fewer rows than a
# round: a stop finds it half done.
CONFIG = StudyConfig(
    model="builtin:random",
    m=(1, 2),
    targets=("random",),
    budget_s=None,
    relative_width=None,
    support_positions=0,
    decoder_cells=False,
    cram=CramPlan(strings=34, max_steps=4, n_max=4, batch_size=16, search_dtype="float32", start_scale=1.0),
)
TWO = ExecutorConfig(executor="processes", workers=2)


def whole(folder: Path) -> dict[str, Any]:
    """Return what a run found, without times."""
    with open_run(folder).ledger() as store:
        trials = {trial.pop("key"): {**trial, "seconds": 0} for trial in store.each()}
        proofs = {}
        for path in store.certificates():
            vectors, ids, claimed = read_certificate(path)
            proofs[path.stem] = [vectors.tolist(), ids.tolist(), claimed]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {"trials": trials, "proofs": proofs, "reaches": [e["reaches"] for e in results["accessibility"]]}


def untimed_search() -> None:
    """Leave the kernel of the search as it is: on a busy machine two runs may time them differently."""
    search.search_copy = lambda model, _dtype: untimed(model)


@pytest.fixture(scope="module", autouse=True)
def untimed_searches() -> Iterator[None]:
    before = search.search_copy
    untimed_search()
    yield
    search.search_copy = before


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = whole(run_study(CONFIG, tmp_path_factory.mktemp("alone") / "run").folder)
    assert len(found["trials"]) == 68
    assert found["proofs"]
    return found


def test_two_processes_find_to_the_bit_what_one_finds(alone: dict[str, Any], tmp_path: Path) -> None:
    end = run_study(CONFIG, tmp_path / "run", executor=TWO)
    assert not end.interrupted
    assert whole(end.folder) == alone


def test_what_was_stopped_in_a_round_goes_on_elsewhere_to_the_same_end(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    seen: list[str] = []

    class Counting(Silent):
        """Progress that counts strings."""

        def string(self, cell: str, reach: int, outcome: str) -> None:
            seen.append(cell)

    first = run_study(CONFIG, tmp_path / "run", progress=Counting(), stop=lambda: len(seen) >= 16)
    assert first.interrupted
    with open_run(first.folder).ledger() as store:
        assert 16 <= len(store.keys()) < 32, "in the middle of a round"
    assert not run_study(CONFIG, tmp_path / "run", executor=TWO).interrupted
    assert whole(tmp_path / "run") == alone


def test_several_workers_need_an_executor(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--workers; got --executor local"):
        run_study(CONFIG, tmp_path / "run", executor=ExecutorConfig(workers=2))
    assert not (tmp_path / "run").exists()
