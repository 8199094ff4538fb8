"""The public functions: what checkers see, what the command line calls, what a notebook does with them."""

import ast
import inspect
import json
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import lmreach
from lmreach.cli import COMMANDS
from lmreach.config import CramPlan, StudyConfig
from lmreach.errors import InputError
from lmreach.models.loaded import LoadedModel
from lmreach.models.tiny import tiny, tiny_tokenizer

ROOT = Path(lmreach.__file__).parent

# What a command is in Python; those that only look at files of a run, or at the machine, are no function.
CALLS = {
    "study": ["study"],
    "bounds": ["bounds"],
    "support": ["support"],
    "cells": ["cells"],
    "cram": ["cram"],
    "census": ["census", "reachability"],
    "copy": ["copy"],
    "verify": ["verify"],
    "decode": ["decode"],
    "judge": ["judge"],
    "plan": ["plan"],
    "compare": ["compare"],
    "status": ["status"],
}
# What opens a folder or a file of a run takes no model that stands in memory.
OF_RUNS = {"verify", "decode", "compare", "status"}
QUICK = StudyConfig(
    m=(1, 2),
    targets=("random",),
    budget_s=None,
    relative_width=None,
    support_positions=64,
    decoder_cells=False,
    cram=CramPlan(strings=3, max_steps=6, n_max=4, search_dtype="float32", start_scale=1.0),
)


def imports_of(path: Path) -> set[tuple[str, str]]:
    """Return (module, name) of everything a file imports from the package, anywhere in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {(node.module or "", alias.name) for node in froms for alias in node.names}


def test_checkers_see_what_there_is() -> None:
    seen = {
        (module, name) for module, name in imports_of(ROOT / "__init__.py") if module.startswith("lmreach")
    }
    assert seen == {(module, name) for name, module in lmreach._PUBLIC.items()}


def test_every_import_for_checkers_says_that_it_is_public() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert all(alias.asname == alias.name for node in block.body for alias in node.names)


@pytest.mark.parametrize(("command", "names"), CALLS.items())
def test_the_command_line_calls_the_very_same_functions(command: str, names: list[str]) -> None:
    used = imports_of(ROOT / "cli" / f"{command}.py")
    for name in names:
        assert (lmreach._PUBLIC[name], name) in used


def test_every_command_is_a_function_or_said_to_be_none() -> None:
    without = {"paper", "export", "export-table", "resume", "report", "cache", "merge"}
    assert set(CALLS) | without == set(COMMANDS)


@pytest.mark.parametrize("name", sorted({*chain.from_iterable(CALLS.values())} - OF_RUNS))
def test_public_functions_take_settings_by_name_and_are_documented(name: str) -> None:
    function = getattr(lmreach, name)
    assert function.__module__ == lmreach._PUBLIC[name]
    signature = inspect.signature(function)
    assert {"config", "tokenizer", "settings"} <= set(signature.parameters)
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters:
        assert parameter in function.__doc__


def test_importing_brings_neither_torch_nor_pandas_nor_altair() -> None:
    code = (
        "import sys, lmreach; print([m for m in ('torch', 'pandas', 'altair', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> lmreach.StudyResults:
    return lmreach.study("builtin:random", QUICK, out=tmp_path_factory.mktemp("runs") / "one")


def test_a_study_answers_by_name(study: lmreach.StudyResults) -> None:
    assert set(study.n50) == {("random", 1), ("random", 2)}
    assert study.n50["random", 1] == study.accessibility[0].n50
    assert study.slope["random"] == study.slopes[0].slope
    with pytest.raises(KeyError, match=r"\('random', 4\) was not measured; measured: \('random', 1\)"):
        study.n50["random", 4]
    tightest = study.limits.tightest("format")
    assert tightest is not None
    assert tightest.premise == "format"
    assert study.limits.named(tightest.name) is tightest
    with pytest.raises(KeyError, match=r"no limit 'nonsense'; there are ball \(paper\)"):
        study.limits.named("nonsense")
    assert study.folder is not None
    assert (study.folder / "report.html").is_file()
    assert not study.interrupted


def test_a_study_becomes_a_table_and_json(study: lmreach.StudyResults) -> None:
    table = study.to_pandas()
    assert list(table["m"]) == [1, 2]
    assert {"n50", "n50_low", "n50_high", "n50_verdict", "target", "strings"} <= set(table.columns)
    assert json.loads(study.to_json())["kind"] == "study"
    assert type(study).model_validate_json(study.to_json()).limits == study.limits


def test_a_loaded_model_gives_what_its_name_gives(
    study: lmreach.StudyResults, random_model: LoadedModel, tmp_path: Path
) -> None:
    again = lmreach.study(random_model, QUICK, out=tmp_path / "run")
    assert [one.reaches for one in again.accessibility] == [one.reaches for one in study.accessibility]
    assert again.model == study.model


def test_a_model_of_transformers_is_studied_and_left_as_it_was(tmp_path: Path) -> None:
    from accelerate.state import AcceleratorState
    from transformers.utils import logging

    inner, tokenizer = tiny("llama"), tiny_tokenizer()
    kernel, bars = inner.config._attn_implementation, logging.is_progress_bar_enabled()
    accelerator = dict(AcceleratorState._shared_state)
    found = lmreach.cram(
        inner, tokenizer=tokenizer, strings=2, max_steps=3, n_max=3, start_scale=1.0, out=tmp_path / "run"
    )
    assert found.n50
    assert inner.config._attn_implementation == kernel
    assert logging.is_progress_bar_enabled() == bars
    assert dict(AcceleratorState._shared_state) == accelerator


def test_options_of_loading_are_refused_where_the_model_is_loaded(random_model: LoadedModel) -> None:
    with pytest.raises(InputError, match="a loaded model as it is; got dtype"):
        lmreach.cells(random_model, samples=10, dtype="bfloat16")
    with pytest.raises(InputError, match="its own tokenizer"):
        lmreach.cells(random_model, samples=10, tokenizer=tiny_tokenizer())


def test_bounds_of_numbers_and_of_a_model(random_model: LoadedModel) -> None:
    found = lmreach.bounds(width=64, vocab=1000, m=2, n=5)
    assert "d = 64, V = 1000" in repr(found)
    assert found.tightest("format") is not None
    assert list(found.to_pandas()["name"]) == [limit.name for limit in found.limits]
    of_model = lmreach.bounds(random_model)
    assert of_model.subject == lmreach.bounds("builtin:random").subject
    assert of_model.limits == lmreach.bounds("builtin:random").limits


def test_cells_and_support_and_targets(random_model: LoadedModel) -> None:
    found = lmreach.cells(random_model, samples=200)
    assert found.shares is not None
    assert len(found.to_pandas()) == len(found.shares.largest)
    support = lmreach.support(random_model, positions=64, lengths=[4], prompts=["random"])
    assert support.inside
    assert len(support.to_pandas()) == len(support.growth)
    ids = lmreach.targets(random_model, strings=3, n=5, seed=2)
    assert ids.shape == (3, 5)
    assert np.array_equal(ids, lmreach.targets("builtin:random", "random", strings=3, n=5, seed=2))


def test_a_census_and_a_question(random_model: LoadedModel, tmp_path: Path) -> None:
    counted = lmreach.census(random_model, prompts=20, length=2, out=tmp_path / "census")
    assert len(counted.to_pandas()) == 2
    asked = lmreach.reachability(random_model, "ids:1", vectors=[1], budget="20s")
    assert asked.verdict in ("yes", "no", "not found")
    assert asked.verdict in repr(asked)


def test_a_bar_is_shown_only_where_somebody_looks_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, random_model: LoadedModel
) -> None:
    lmreach.support(random_model, positions=16, lengths=[4], prompts=["random"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("lmreach.progress._looked_on", lambda: True)
    lmreach.support(random_model, positions=16, lengths=[4], prompts=["random"])
    assert capsys.readouterr().err != ""


def test_results_say_in_words_what_was_found(study: lmreach.StudyResults, random_model: LoadedModel) -> None:
    assert "out" in repr(study) or "token" in repr(study)
    assert str(study.folder) in repr(study)
    assert repr(study) == str(study)
    assert "Limits" not in repr(study.limits[0]), "only a whole result is words"


def test_results_are_sections_and_charts(
    study: lmreach.StudyResults, random_model: LoadedModel, tmp_path: Path
) -> None:
    drawn = study.plot()
    assert isinstance(drawn, dict)
    assert all(chart.to_dict() for chart in drawn.values())
    census = lmreach.census(random_model, prompts=20, length=2, out=tmp_path / "census")
    cells = lmreach.cells(random_model, samples=5000)
    bounds, support = lmreach.bounds(random_model), lmreach.support(random_model, positions=32, lengths=[4])
    for result in (study, census, cells, bounds, support):
        page = result._repr_html_()
        assert page.count("<table") + page.count("<pre") > 0
        assert "http://" not in page.replace("http://www.w3.org", "")
        assert result.plot() is not None
        assert repr(result)
    assert "<svg" in study._repr_html_()
    asked = lmreach.reachability(random_model, "ids:1", vectors=[1], budget="5s")
    with pytest.raises(InputError, match="no figure for it"):
        asked.plot()


def test_hostile_names_stay_text() -> None:
    found = lmreach.bounds(width=8, vocab=9).model_copy(update={"subject": "<script>alert(1)</script>"})
    assert "<script>" not in found._repr_html_()


def test_a_run_is_verified_and_its_certificates_decoded(study: lmreach.StudyResults) -> None:
    assert study.folder is not None
    found = lmreach.verify(study.folder)
    assert found.held
    assert "certificates held" in repr(found)
    assert len(found.to_pandas()) == len(found.verdicts)
    certificate = next((study.folder / "certificates").glob("*.safetensors"))
    decoded = lmreach.decode(certificate)
    assert decoded.as_claimed
    assert decoded.text in repr(decoded)
    assert lmreach.open_run(study.folder).kind == "study"
    assert lmreach.open_results(study.folder) == study


def test_own_vectors_are_judged(tmp_path: Path) -> None:
    model = lmreach.load("builtin:verse")
    target = tmp_path / "my.txt"
    target.write_text("O my love", encoding="utf-8")
    vectors = np.random.default_rng(0).normal(size=(2, model.facts.width)).astype(np.float16)
    found = lmreach.judge(vectors, model, target=f"text:{target}")
    assert found.tokens == found.reach
    assert found.bits_vectors == 16 * vectors.size
    ids = model.encode("O my love")
    assert lmreach.judge(vectors, model, target=ids) == found
    np.save(tmp_path / "v.npy", vectors)
    assert lmreach.judge(tmp_path / "v.npy", model, target=ids) == found
    assert found.plot() is not None
    with pytest.raises(InputError, match="floating-point vectors"):
        lmreach.judge(np.zeros((2, 3), dtype=np.int64), model, target=ids)
    with pytest.raises(InputError, match="finite vectors"):
        lmreach.judge(np.full((1, model.facts.width), np.nan), model, target=ids)
