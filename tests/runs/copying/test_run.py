"""Copying as a run: the same end whether stopped or not, unseen symbols named, refusals before any work."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmreach.config import CramPlan, StudyConfig
from lmreach.config.training import CopyTrainConfig
from lmreach.engine.executors.local import Local
from lmreach.engine.store import Store
from lmreach.errors import InputError, OutputError
from lmreach.models.load import load
from lmreach.results.records import CopyRecord
from lmreach.runs.copying import run as copying
from lmreach.runs.copying.results import fall_lengths, fit_of, layout_parts, mistake_parts
from lmreach.runs.copying.run import CopyConfig, copy_section, resume_copying, run_copying
from lmreach.runs.study import run
from tests.runs.stopping import After

TRAINING: dict[str, Any] = {
    "kind": "rope",
    "width": 16,
    "layers": 1,
    "heads": 2,
    "alphabet": 16,
    "longest": 4,
    "pack": 16,
    "batch": 4,
    "max_steps": 6,
    "test_every": 3,
    "test_strings": 8,
}
SMALL: dict[str, Any] = {"strings": 4, "cram": (1,), "cram_strings": 2, "cram_steps": 2}
TRAINED = CopyConfig(train=CopyTrainConfig(**TRAINING), **SMALL)
AS_IT_IS = CopyConfig(model="builtin:verse", lengths=(1, 3), strings=4)


@pytest.fixture(autouse=True)
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the report page out: drawing takes longer than measuring."""
    monkeypatch.setattr(copying, "render", lambda results, out: out)


def measured(folder: Path) -> dict[str, Any]:
    """Return the section without times."""
    found = json.loads((folder / "results.json").read_text())["copying"]
    for entry in [*found["lengths"], found]:
        entry.pop("seconds")
    if found["training"] is not None:
        found["training"].pop("seconds")
        for point in found["training"]["curve"]:
            point.pop("seconds")
    return found


@pytest.mark.parametrize("config", [TRAINED, AS_IT_IS], ids=["trained", "as it is"])
def test_a_stopped_run_goes_on_to_the_same_end(config: CopyConfig, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert not run_copying(config, whole).interrupted
    for questions in (2, 9):
        assert run_copying(config, parts, stop=After(questions)).interrupted or config is AS_IT_IS
    half = json.loads((parts / "results.json").read_text())
    assert half["provenance"]["interrupted"] == bool(
        [x for x in half["not_done"] if "stopped before it" in x["why"]]
    )
    assert not resume_copying(parts).interrupted
    assert measured(parts) == measured(whole)


def test_a_trained_copier_is_measured_beside_its_limit(tmp_path: Path) -> None:
    run_copying(TRAINED, tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    found = results["copying"]
    assert results["kind"] == "copy"
    assert found["label"] == "length generalisation"
    assert found["decoding"] == "free_running"
    assert found["training"]["steps"] == 6
    assert [one["length"] for one in found["lengths"]][:4] == [1, 2, 3, 4]
    assert all(one["exact"]["of"] == 4 for one in found["lengths"])
    assert found["cramming"][0]["strings"] == 2
    assert {one["premise"] for one in results["limits"]} >= {"hidden", "format"}
    assert all(one["length"] <= 80 for one in found["lengths"])
    assert found["checked"]["same"] == found["checked"]["strings"]
    assert str(tmp_path) not in json.dumps(results)


def test_unseen_symbols_are_named_and_the_label_is_withheld(tmp_path: Path) -> None:
    """Row B24 of the faults: trained on a to p, measured on p to z."""
    training = {**TRAINING, "alphabet": 26, "letters": "a-p", "max_steps": 2}
    plain = {**SMALL, "cram_strings": 0, "layouts": False, "lengths": (2,)}
    for tested, unseen, label in (("p-z", 10, "unseen symbols"), ("", 0, "length generalisation")):
        config = CopyConfig(train=CopyTrainConfig(**training), test_alphabet=tested, **plain)
        run_copying(config, tmp_path / (tested or "same"))
        found = measured(tmp_path / (tested or "same"))
        assert found["label"] == label
        assert found["alphabet"]["unseen"] == unseen
        assert found["alphabet"]["tested"] == (11 if tested else 16)
    assert found["lengths"][0]["exact"]["of"] == 4


def ledger_says(folder: Path, name: str) -> set[str]:
    """Return what the records of the measured lengths say under a name; each length keeps its own."""
    with Store(folder) as store:
        return {trial[name] for trial in store.each() if "exact" in trial or "length" in trial}


def test_teacher_forced_says_so(tmp_path: Path) -> None:
    config = AS_IT_IS.model_copy(update={"teacher_forced": True, "layouts": False})
    run_copying(config, tmp_path / "run")
    found = measured(tmp_path / "run")
    assert found["decoding"] == "teacher_forced"
    assert ledger_says(tmp_path / "run", "decoding") == {"teacher_forced"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lengths": (200,)}, "403 positions for strings of 200"),
        ({"test_alphabet": "q"}, "letters from a to p"),
        (
            {"train": CopyTrainConfig(fine_tune="builtin:verse", longest=4), "lengths": (600,)},
            r"1203 positions for strings of 600.*a context of",
        ),
        ({"train": CopyTrainConfig(**{**TRAINING, "longest": 8})}, "19 positions for strings of 8"),
        (
            {
                "train": CopyTrainConfig(**{**TRAINING, "task": "prefix_ngram", "longest": 6, "pack": 64}),
                "lengths": (2,),
            },
            "at least 4 letters",
        ),
    ],
)
def test_what_cannot_be_run_leaves_no_folder(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        run_copying(TRAINED.model_copy(update=change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_lengths_beyond_the_context_are_left_out_by_name(tmp_path: Path) -> None:
    training = CopyTrainConfig(**{**TRAINING, "positions": 24})
    run_copying(CopyConfig(train=training, strings=2, cram_strings=0, layouts=False), tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    why = {one["what"]: one["why"] for one in results["not_done"]}
    assert "24 positions" in why["strings of 80"]
    with pytest.raises(InputError, match="a context of 24"):
        run_copying(CopyConfig(train=training, lengths=(12,)), tmp_path / "other")


def test_other_settings_are_refused(tmp_path: Path) -> None:
    run_copying(AS_IT_IS, tmp_path / "run")
    with pytest.raises(OutputError, match="another strings"):
        run_copying(AS_IT_IS.model_copy(update={"strings": 5}), tmp_path / "run")
    with pytest.raises(ValueError, match="exactly one"):
        CopyConfig()


def test_another_layout_can_be_the_usual_one(tmp_path: Path) -> None:
    config = AS_IT_IS.model_copy(update={"layout": "long examples", "layouts": False})
    run_copying(config, tmp_path / "run")
    found = measured(tmp_path / "run")
    assert found["layout"] == "long examples"
    assert ledger_says(tmp_path / "run", "layout") == {"long examples"}
    with pytest.raises(InputError, match="a layout among examples, padded"):
        run_copying(config.model_copy(update={"layout": "none"}), tmp_path / "other")
    with pytest.raises(InputError, match="a layout among alone, after examples"):
        run_copying(TRAINED.model_copy(update={"layout": "examples"}), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_section_of_a_study() -> None:
    model = load("builtin:verse")
    found = copy_section(model, budget_s=1e-9, strings=2)
    assert found.label == "in-context copying"
    assert len(found.lengths) == 1
    assert not found.finished
    assert copy_section(model, budget_s=None, strings=2, stop=lambda: True).n50.verdict == "no_data"


@pytest.mark.parametrize("model", ["builtin:verse", "builtin:random"])
def test_a_study_asks_for_copies_if_told_to(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "render", lambda results, out: out)
    config = StudyConfig(
        model=model,
        copying=True,
        budget_s=None,
        m=(1,),
        targets=("random",),
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(strings=1, max_steps=1, n_max=1),
    )
    run.run_study(config, tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    if model == "builtin:verse":
        assert results["copying"]["finished"]
        assert [one["length"] for one in results["copying"]["lengths"]] == [1, 2]
    else:  # it has no tokenizer to ask with
        assert results["copying"] is None
        assert any(one["what"] == "copying in context" for one in results["not_done"])


def record(layout: str, length: int, right: list[bool], mistakes: int = 0) -> CopyRecord:
    one = {
        "place": 1,
        "kind": "symbol",
        "emitted": 3,
        "order": 2,
        "chance": [0.5, 0.1, 0, 0],
        "ambiguity": 2,
        "usual": [0.5, 0.1, 0, 0],
        "distance": 2,
        "near": [0.1, 0.2, 0.3, 0.4],
    }
    share = {"count": sum(right), "of": len(right), "share": sum(right) / len(right), "low": 0.0, "high": 1.0}
    whole = {
        "layout": layout,
        "length": length,
        "decoding": "free_running",
        "prompt": length + 2,
        "positions": 2 * length + 2,
        "strings": len(right),
        "seconds": 0.5,
        "characters": share,
        "exact": share,
        "complete": share,
        "first_wrong": [None if good else 1 for good in right],
        "right": [length if good else 1 for good in right],
        "of": [length] * len(right),
        "mistakes": [one] * mistakes,
    }
    return CopyRecord.model_validate(whole)


def test_layouts_are_compared_string_by_string() -> None:
    usual = [record("a", n, [n < 8] * 10) for n in (4, 8)]
    other = [record("b", 4, [False] * 10), record("b", 8, [True] + [False] * 9)]
    for counted in ("exact", "complete"):
        first, second = layout_parts({"a": usual, "b": other}, "a", counted)
        assert (first.only_here, first.only_usual, first.p_value) == (0, 0, 1.0)
        assert (second.only_here, second.only_usual) == (1, 10)
        assert second.p_value == pytest.approx(2 * 12 / 2**11)  # 11 coins, 1 head or fewer, both sides


def test_layouts_are_compared_around_the_fall() -> None:
    records = [record("a", n, [n <= 20] * 4) for n in (1, 4, 8, 12, 16, 18, 20, 21, 24, 32, 48)]
    assert fall_lengths(records, "exact") == [12, 20, 21, 48]
    assert fall_lengths(records[:3], "exact") == [4, 8]
    assert fall_lengths([record("a", 1, [False])], "exact") == []


def test_n50_is_never_beyond_the_lengths_tried() -> None:
    nearly, hardly = [True] * 15 + [False], [False] * 15 + [True]
    above = fit_of([record("a", n, nearly if n == 80 else [True] * 16) for n in (32, 80, 128)], "exact")
    below = fit_of([record("a", n, hardly if n == 4 else [False] * 16) for n in (4, 8)], "exact")
    assert (above.verdict, above.n50) == ("above_limit", None)
    assert above.words().startswith("above 128 tokens")
    assert (below.verdict, below.n50) == ("below_first", None)
    assert fit_of([record("a", n, [n < 20] * 16) for n in (10, 18, 22)], "exact").verdict == "separated"


def test_mistakes_of_all_lengths_are_put_together() -> None:
    found = mistake_parts([record("a", 4, [False] * 3, 3), record("a", 8, [False], 1)], trained_to=4)
    assert found is not None
    assert found.strings == found.within_training_length == 4
    assert [one.followed and one.followed.count for one in found.orders] == [4, 4, 0, 0]
    assert [one.near and one.near.count for one in found.orders] == [0, 4, 4, 4]
    assert found.orders[0].followed_by_chance == 0.5
    assert mistake_parts([record("a", 4, [True])], None) is None


def test_several_workers_measure_ahead_and_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TRAINED.model_copy(update={"longest": 12})
    run_copying(config, tmp_path / "one")

    def three(_on: Any, here: Any, _there: Any, tell: Any, stopped: Any, **_more: Any) -> Local:
        made = Local(here(), tell, stopped)
        made.size = 3
        return made

    monkeypatch.setattr(copying, "executor_of", three)
    run_copying(config, tmp_path / "three")
    assert measured(tmp_path / "three") == measured(tmp_path / "one")
