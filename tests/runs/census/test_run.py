"""A census as a run: the same result whether stopped or not, and a folder that says what it holds."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lmreach.config import CramPlan
from lmreach.config.census import ReachableConfig
from lmreach.errors import InputError, OutputError
from lmreach.experiments.cramming.start_scale import StartScale
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.results import open_results
from lmreach.runs.census import run as census
from lmreach.runs.census.answer import is_reachable
from lmreach.runs.census.reachability import reachability, resume_reachability
from lmreach.runs.census.run import CensusConfig, census_section, resume_census, run_census
from lmreach.runs.study import search as study_search
from tests.runs.stopping import After

REAL = CensusConfig(model="builtin:random", n=3, prompt_tokens=(1, 2), prompts=300)
GRID = CensusConfig(model="tiny:llama,width=2,vocab=4", n=5, grid=2, m=(1, 2, 3))


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the report page out: drawing takes longer than counting."""
    monkeypatch.setattr(census, "render", lambda results, out: out)


def counted(folder: Path) -> dict[str, Any]:
    """Return the results without times."""
    found = json.loads((folder / "results.json").read_text())["census"]
    for entry in [*found["grids"], *found["tokens"]]:
        entry.pop("seconds")
    return found


@pytest.mark.parametrize("config", [REAL, GRID], ids=["tokens", "grid"])
@pytest.mark.usefixtures("no_page")
def test_a_stopped_census_goes_on_to_the_same_end(config: CensusConfig, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert not run_census(config, whole).interrupted
    for questions in (1, 1):
        assert run_census(config, parts, stop=After(questions)).interrupted
    half = json.loads((parts / "results.json").read_text())
    assert half["provenance"]["interrupted"]
    assert half["not_done"]
    assert not resume_census(parts).interrupted
    assert counted(parts) == counted(whole)


def test_results_are_strict_json_with_what_a_reader_needs(tmp_path: Path) -> None:
    run_census(GRID, tmp_path / "run")
    text = (tmp_path / "run" / "results.json").read_text()
    found = json.loads(text, parse_constant=pytest.fail)
    assert (found["kind"], found["schema_version"]) == ("census", 2)
    grids = found["census"]["grids"]
    assert [grid["prompts"] for grid in grids] == [4, 16, 64]
    for grid in grids:
        for one in grid["lengths"]:
            assert one["distinct"] <= min(grid["prompts"], 4 ** one["length"])
        assert grid["missing"]["count"] == len(grid["missing"]["sequences"])
    assert str(tmp_path) not in text
    assert "Outputs counted" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.usefixtures("no_page")
def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    run_census(GRID, tmp_path / "run")
    with pytest.raises(OutputError, match="another seed"):
        run_census(GRID.model_copy(update={"seed": 1}), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(OutputError, match="holds files"):
        run_census(GRID, tmp_path / "full")


def test_a_grid_beyond_the_budget_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max-prompts"):
        run_census(GRID.model_copy(update={"max_prompts": 50}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_study_gets_a_section_within_its_budget(
    random_model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    with monkeypatch.context() as slow:  # a second for every look at the clock, some ten in a block
        slow.setattr(census, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
        (entry,) = census_section(random_model, budget_s=20.0, n=3).tokens
    assert entry.prompts == 128, "one block at least"
    assert entry.lengths[0].chao1 is not None
    full = census_section(random_model, budget_s=600.0, n=2).tokens[0]
    assert full.complete
    assert full.prompts == random_model.facts.usable


def test_is_reachable_finds_saves_and_believes_its_own_certificate(
    random_model: LoadedModel, tmp_path: Path
) -> None:
    ids = np.array([7, 300, 12])
    quick = CramPlan(max_steps=150)
    found = is_reachable(random_model, ids, ms=(2,), config=quick, budget_s=60.0)
    assert found.verdict == "yes"
    said = reachability("builtin:random", "ids:7,300,12", m=(2,), budget_s=60.0, out=tmp_path / "run")
    assert said.verdict == "yes"
    assert said.folder == tmp_path / "run"
    assert said.certificate is not None
    assert (said.folder / said.certificate).is_file()
    assert open_results(said.folder) == said
    again = is_reachable(random_model, ids[:2], runs=(tmp_path / "run",), budget_s=1e-6)
    assert (again.verdict, again.m, again.tried) == ("yes", 2, ())
    other = load("tiny:llama,width=2,vocab=400", GRID.load)
    unknown = is_reachable(other, ids[:2], runs=(tmp_path / "run",), ms=(1,), budget_s=1e-6)
    assert unknown.verdict != "yes"
    with pytest.raises(InputError, match="at least one token"):
        is_reachable(random_model, np.array([], dtype=np.int64))
    with pytest.raises(InputError, match="vocabulary"):
        is_reachable(random_model, np.array([512]))


def test_a_question_is_a_run_whose_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, random_model: LoadedModel
) -> None:
    """Every part draws starts of its own; an answer is confirmed from its certificate, not searched again."""
    from lmreach.experiments.census import reachable

    ask, out = ("builtin:random", "ids:7,300,12"), tmp_path / "run"
    config = ReachableConfig(m=(1,), budget_s=0.2)
    seeds: list[object] = []
    real = np.random.default_rng
    monkeypatch.setattr(reachable.np.random, "default_rng", lambda seed: (seeds.append(seed), real(seed))[1])
    with monkeypatch.context() as patch:
        patch.setattr(reachable, "cram", lambda *_, **__: [])
        first = reachability(*ask, config, out=out)
        second = resume_reachability(out, budget_s=0.1)
    assert (first.verdict, second.verdict) == ("not found", "not found")
    parts = {tuple(seed[5:]) for seed in seeds if isinstance(seed, list)}
    assert parts == {(), (1,)}
    third = reachability(*ask, config, budget_s=60.0, out=out)
    assert (third.verdict, third.certificate is not None) == ("yes", True)
    again = resume_reachability(out)
    assert (again.verdict, again.tried) == ("yes", ())
    assert again.certificate == third.certificate


def test_a_search_starts_where_a_study_would(random_model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its vectors were as long as real inputs, from which some models emit next to nothing."""
    asked: list[tuple[int, float]] = []

    def find_start(model, config, *, m, seconds, **_rest):
        asked.append((m, seconds))
        return StartScale(100.0, m, {}, why="for a test")

    monkeypatch.setattr(study_search, "find_start", find_start)
    config = CramPlan(max_steps=1, patience=1)
    found = is_reachable(random_model, np.arange(2, 30), ms=(4, 2), config=config, budget_s=3.0)
    ((m, seconds),) = asked
    assert m == 2
    assert 0 <= seconds <= 0.6
    assert found.verdict == "not found"
    assert found.reason.endswith("The length of the first vectors was not found by a probe: for a test")
