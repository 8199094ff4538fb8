"""Keys in runs: an older run's trials are recognised, and what a machine finds is in no key."""

from pathlib import Path

import pytest

from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.keys import RECORD_VERSION
from lmreach.engine.store import Store
from lmreach.experiments.cramming.start_scale import StartScale
from lmreach.runs.study import search, trials
from lmreach.runs.study.run import resume_study, run_study

ONE = StudyConfig(
    model="builtin:random",
    m=(1,),
    targets=("random",),
    budget_s=None,
    support_positions=0,
    decoder_cells=False,
    cram=CramPlan(strings=3, max_steps=4, n_max=4, search_dtype="float32"),
)


def ledger(folder: Path) -> tuple[int | None, list]:
    with Store(folder) as store:
        return store.meta("record_version"), list(store.each())


def test_a_run_from_before_version_2_goes_on_without_running_anything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(trials, "record_version", lambda store: 1)
        run_study(ONE, tmp_path / "run")
    kept, before = ledger(tmp_path / "run")
    assert kept is None
    assert len(before) == 3
    resume_study(tmp_path / "run")
    assert ledger(tmp_path / "run") == (1, before)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_trials_of_machines_that_found_other_starts_have_the_same_keys(
    scale: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the inputs that starts are drawn from are the same; only how long the starts are is not."""
    first = run_study(ONE, tmp_path / "first").folder
    monkeypatch.setattr(search, "find_start", lambda *_, **__: StartScale(scale, 1, {scale: (1,)}))
    second = run_study(ONE, tmp_path / "second").folder
    (version, ours), (_, theirs) = ledger(first), ledger(second)
    assert version == RECORD_VERSION
    assert [one["key"] for one in ours] == [one["key"] for one in theirs]
    with Store(second) as store:
        assert store.meta("search")["start_scale"] == scale
