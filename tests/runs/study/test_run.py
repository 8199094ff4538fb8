"""The main job from start to end on the untrained built-in: budget, interruption, resume, verification."""

import errno
import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from lmreach.cli import main
from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.clock import Clock
from lmreach.engine.store import Proof, Store
from lmreach.errors import InputError, ModelError, OutputError
from lmreach.experiments.census.tokens import decode_plan_block
from lmreach.experiments.cramming import start_cache
from lmreach.experiments.cramming.start_scale import StartScale
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped
from lmreach.progress import Silent
from lmreach.runs.census import run as census
from lmreach.runs.certificates.stored import read_certificate
from lmreach.runs.certificates.verify import verify_run
from lmreach.runs.study import run as module
from lmreach.runs.study import search
from lmreach.runs.study.run import resume_study, run_study
from lmreach.runs.study.sections import Sections

# One row at a time: what a string comes to then depends on no other, in an interrupted run neither.
QUICK = StudyConfig(
    model="builtin:random",
    m=(1, 2),
    targets=("random", "self"),
    budget_s=None,
    support_positions=256,
    decoder_cells=False,
    cram=CramPlan(strings=4, max_steps=60, patience=30, n_max=12, search_dtype="float32", batch_size=1),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_study(QUICK, tmp_path_factory.mktemp("runs") / "one", command="lmreach test").folder


def results_of(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def without_time(results: dict) -> dict:
    results = json.loads(json.dumps(results))
    for name in ("started", "seconds", "git_commit"):
        results["provenance"].pop(name)
    for entry in results["accessibility"]:
        entry.pop("seconds")
    results["config"].pop("budget_s")
    for name in ("seconds", "probe_seconds"):
        results["search"].pop(name, None)
    results["search"]["probe_of_start"].pop("seconds")
    return results


def test_everything_asked_for_is_there(finished: Path) -> None:
    results = results_of(finished)
    cells = [(entry["target"], entry["m"]) for entry in results["accessibility"]]
    assert cells == [("random", 1), ("self", 1), ("random", 2), ("self", 2)]
    assert all(entry["strings"] == 4 for entry in results["accessibility"])
    assert {one["premise"] for one in results["limits"]} == {"hidden", "input", "format"}
    assert results["support"]["inside_norm_ellipsoid"] is True
    assert [one["target"] for one in results["slopes"]] == ["random", "self"]
    assert [one["what"] for one in results["not_done"]] == ["decoder cells", "census of outputs"]
    assert results["provenance"]["command"] == "lmreach test"
    assert (finished / "report.html").stat().st_size > 20_000
    assert str(finished) not in (finished / "results.json").read_text(encoding="utf-8")


def test_numbers_are_those_of_the_ledger(finished: Path) -> None:
    results = results_of(finished)
    with Store(finished) as store:
        trials = list(store.each())
    assert len(trials) == 16
    for entry in results["accessibility"]:
        own = [t for t in trials if t["cell"] == f"{entry['target']} m={entry['m']}"]
        assert sorted(entry["reaches"]) == sorted(t["reach"] for t in own)
        assert sum(entry["outcomes"].values()) == 4


def test_no_measured_n50_passes_a_proved_limit(finished: Path) -> None:
    results = results_of(finished)
    for entry in results["accessibility"]:
        if entry["target"] == "random" and entry["n50"]["value"] is not None:
            for limit in results["limits"]:
                if limit["premise"] == "format":
                    assert entry["n50"]["value"] <= limit["tokens_per_vector"] * entry["m"]


def test_the_same_run_gives_the_same_numbers(finished: Path, tmp_path: Path) -> None:
    again = run_study(QUICK, tmp_path / "two", command="lmreach test").folder
    assert without_time(results_of(again)) == without_time(results_of(finished))


def test_an_interrupted_run_is_valid_and_resumes_to_the_same_end(finished: Path, tmp_path: Path) -> None:
    seen = []

    class Counting(Silent):
        """Progress that counts strings."""

        def string(self, cell: str, reach: int, outcome: str) -> None:
            seen.append(cell)

    end = run_study(
        QUICK, tmp_path / "run", command="lmreach test", progress=Counting(), stop=lambda: len(seen) >= 6
    )
    assert end.interrupted
    partial = results_of(end.folder)
    assert partial["provenance"]["interrupted"] is True
    assert partial["not_done"], "what is missing is said"
    counted = sum(entry["strings"] for entry in partial["accessibility"])
    assert counted < 16
    resumed = resume_study(end.folder)
    assert not resumed.interrupted
    ours, whole = without_time(results_of(end.folder)), without_time(results_of(finished))
    assert ours == whole
    told = min(entry["smallest_gap"] for entry in results_of(end.folder)["accessibility"])
    assert told == min(float(read_certificate(one)[2]["smallest_gap"]) for one in certificates(end.folder))
    assert all(one.held for one in verify_run(end.folder))


def certificates(folder: Path) -> list[Path]:
    found = sorted((folder / "certificates").glob("*.safetensors"))
    assert found
    return found


def test_resuming_a_finished_run_changes_nothing(finished: Path) -> None:
    before = without_time(results_of(finished))
    assert not resume_study(finished).interrupted
    assert without_time(results_of(finished)) == before


class Ticking:
    """A clock on which every look takes a little while: time goes on with the work, not with the machine."""

    def __init__(self, seconds: float) -> None:
        self.at, self.seconds = 0.0, seconds

    def __call__(self) -> float:
        self.at += self.seconds
        return self.at


@pytest.mark.parametrize("tick", [0.02, 0.2, 0.4])
def test_a_budget_is_kept_and_what_it_left_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tick: float
) -> None:
    """However slow a step is: the run ends within its budget, writing included, with something measured."""
    clock = Ticking(tick)
    monkeypatch.setattr(module, "Clock", partial(Clock, now=clock))
    cram = QUICK.cram.model_copy(update={"strings": 4000, "batch_size": None})
    config = QUICK.model_copy(update={"budget_s": 60.0, "m": (1, 4), "cram": cram})
    results = results_of(run_study(config, tmp_path / "run").folder)
    assert clock.at <= 1.05 * 60.0
    assert results["provenance"]["seconds"] <= 1.05 * 60.0
    assert results["not_done"]
    assert all(row["why"] for row in results["not_done"])
    done = {(e["target"], e["m"]): e for e in results["accessibility"]}
    assert done[("random", 1)]["strings"] >= 4
    for entry in done.values():
        least, most = entry["steps_taken"]
        assert most <= entry["max_steps"] == 60
        assert entry["cut"] == 0 or least < 60


def test_where_steps_cannot_be_timed_in_time_all_is_left_for_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Ticking(0.01)

    def too_slow(*_, **__):
        clock.at = 60.0
        raise PassStopped("time was up within a timed step")

    cram = QUICK.cram.model_copy(update={"start_scale": 1.0})
    config = QUICK.model_copy(update={"budget_s": 60.0, "m": (1,), "targets": ("random",), "cram": cram})
    with monkeypatch.context() as patch:
        patch.setattr(module, "Clock", partial(Clock, now=clock))
        patch.setattr(module, "time_steps", too_slow)
        end = run_study(config, tmp_path / "run")
    assert [one.what for one in end.left] == ["4 of random m=1"]
    results = results_of(end.folder)
    assert results["accessibility"] == []
    assert {row["what"]: row["why"] for row in results["not_done"]}["support of hidden states"]
    assert clock.at <= 63.0
    resume_study(end.folder)
    assert results_of(end.folder)["accessibility"][0]["strings"] == 4


def test_a_round_that_was_cut_is_run_again_by_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cram = QUICK.cram.model_copy(update={"batch_size": None})
    config = QUICK.model_copy(update={"budget_s": 60.0, "m": (1,), "targets": ("random",), "cram": cram})
    with monkeypatch.context() as patch:
        patch.setattr(module, "Clock", partial(Clock, now=Ticking(0.4)))
        folder = run_study(config, tmp_path / "run").folder
    (entry,) = results_of(folder)["accessibility"]
    assert entry["cut"] == 4
    assert entry["steps_taken"][0] == entry["steps_taken"][1] < 60
    assert all(one.held for one in verify_run(folder))
    resume_study(folder)
    (entry,) = results_of(folder)["accessibility"]
    assert (entry["cut"], entry["strings"]) == (0, 4)
    whole = run_study(config.model_copy(update={"budget_s": None}), tmp_path / "whole").folder
    (other,) = results_of(whole)["accessibility"]
    assert entry["reaches"] == other["reaches"]


def test_equal_strings_are_all_run_and_counted(tmp_path: Path) -> None:
    """With one-token targets some of 64 strings out of 512 ids are the same."""
    config = QUICK.model_copy(
        update={
            "m": (1,),
            "targets": ("random",),
            "support_positions": 0,
            "relative_width": None,
            "cram": CramPlan(strings=64, n_max=1, max_steps=20, patience=20, start_scale=1.0),
        }
    )
    folder = run_study(config, tmp_path / "run").folder
    (entry,) = results_of(folder)["accessibility"]
    assert entry["strings"] == 64
    with Store(folder) as store:
        assert len({tuple(trial["ids"]) for trial in store.each()}) < 64


def test_a_cell_ends_early_and_resumes_to_the_same_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One-token targets: n50 is surely above the limit, told at 16 strings and confirmed at 24."""
    config = QUICK.model_copy(
        update={
            "m": (1,),
            "targets": ("random",),
            "support_positions": 0,
            "cram": CramPlan(strings=600, n_max=1, max_steps=5, patience=5),
        }
    )
    folder = run_study(config, tmp_path / "run", command="lmreach test").folder
    before = results_of(folder)
    (entry,) = before["accessibility"]
    assert entry["n50"]["verdict"] == "above_limit"
    assert entry["strings"] == 24
    (spared,) = before["precision"]["ended_early"]
    assert spared["strings"] == 576
    left = ["support of hidden states", "decoder cells", "census of outputs"]
    assert [row["what"] for row in before["not_done"]] == left
    with pytest.raises(SystemExit):
        main(["status", str(folder)])
    said = capsys.readouterr().out
    assert "random m=1: 24 of 600 strings" in said
    assert "not needed: 576 of random m=1" in said
    assert "open: " not in said
    assert said.endswith("nothing left to do\n")
    resume_study(folder)
    assert without_time(results_of(folder)) == without_time(before)


def test_bits_gained_are_recorded_per_string_and_told_per_cell(finished: Path) -> None:
    with Store(finished) as store:
        trials = [trial for trial in store.each() if trial["reach"] > 0]
    assert trials
    assert all(trial["ce_with_bits"] < trial["ce_without_bits"] for trial in trials)
    assert all(trial["tokens_gained"] <= trial["reach"] for trial in trials)
    for entry in results_of(finished)["accessibility"]:
        told = entry["information"]
        gained = told["ce_without_bits"] - told["ce_with_bits"]
        assert told["bits_per_vector"] == pytest.approx(gained / entry["m"])
        assert told["bits_per_stored_bit"] * 32 == pytest.approx(told["bits_per_coordinate"])
        assert entry["cliff"]["predicted"] > 0


def test_every_certificate_holds(finished: Path) -> None:
    verdicts = verify_run(finished)
    assert verdicts
    assert all(one.held and one.emitted == one.claimed for one in verdicts)


def test_a_false_certificate_is_found(finished: Path, tmp_path: Path) -> None:
    """Altered vectors, other ids, a cut file and a missing one: each fails, none stops the others."""
    folder = run_study(QUICK, tmp_path / "run").folder
    with Store(folder) as store:
        keys = [trial["key"] for trial in store.each() if trial["reach"] > 0]
        paths = [store.certificate_path(key) for key in keys[:4]]
    vectors, ids, claim = read_certificate(paths[0])
    paths[0].write_bytes(Proof(np.zeros_like(vectors) + 1e-3, ids, claim).as_bytes())
    vectors, ids, claim = read_certificate(paths[1])
    paths[1].write_bytes(Proof(vectors, (ids + 1) % 512, claim).as_bytes())
    tensors = load_file(paths[2])
    save_file(tensors, paths[2])
    paths[2].write_bytes(paths[2].read_bytes()[:-9])
    paths[3].unlink()
    verdicts = {one.key: one for one in verify_run(folder)}
    assert [verdicts[key].held for key in keys[:4]] == [False] * 4
    assert all(verdicts[key].why for key in keys[:4])
    assert all(verdicts[key].held for key in keys[4:])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"model": "builtin:nothing"}, ModelError, "verse"),
        ({"m": (1, 600)}, InputError, "512"),
        ({"targets": ("ids:none.txt",)}, InputError, "no file"),
        ({"targets": ("randm",)}, InputError, "random, self"),
        ({"cram": CramPlan(bos="before")}, InputError, "start token"),
        ({"limit_dtype": "float17"}, InputError, "float16"),
    ],
)
def test_what_cannot_be_run_leaves_no_folder(tmp_path: Path, change: dict, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        run_study(QUICK.model_copy(update=change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_refused(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"another cram.seed \(5 instead of 0\)"):
        run_study(QUICK.model_copy(update={"cram": QUICK.cram.model_copy(update={"seed": 5})}), finished)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="empty folder"):
        run_study(QUICK, tmp_path)
    with pytest.raises(OutputError, match="a file"):
        run_study(QUICK, tmp_path / "notes.txt")
    with pytest.raises(OutputError, match="folder of a run"):
        resume_study(tmp_path)
    with pytest.raises(OutputError, match="folder of a run"):
        verify_run(tmp_path / "nowhere")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place where not even root can write")
def test_a_place_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(OutputError, match="choose another --out"):
        run_study(QUICK, Path("/proc/lmreach/run"))


def test_a_disk_that_fills_up_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials written before stay; the error names the folder and the remedy."""
    written = []

    replace = Path.replace

    def full(draft: Path, path: Path) -> Path:
        written.append(1)
        if len(written) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(draft, path)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match=r"No space left.*free space"):
        run_study(QUICK, tmp_path / "run")
    with Store(tmp_path / "run") as store:
        assert len(store.keys()) >= 3


def test_other_weights_are_refused(finished: Path, tmp_path: Path) -> None:
    folder = run_study(QUICK, tmp_path / "run").folder
    with Store(folder) as store:
        store.put_meta("run", {**store.meta("run"), "fingerprint": "0" * 16})
    with pytest.raises(OutputError, match="weights"):
        resume_study(folder)
    with pytest.raises(OutputError, match="weights"):
        verify_run(folder)


def test_cells_and_census_are_part_of_a_study_and_kept_for_a_resume(tmp_path: Path) -> None:
    """The untrained built-in has no tokenizer, so the map is left out with that reason."""
    config = QUICK.model_copy(update={"budget_s": 120.0, "decoder_cells": True, "m": (1,)})
    folder = run_study(config, tmp_path / "run").folder
    results = results_of(folder)
    cells, census = results["cells"], results["census"]
    assert cells["shares"]["cells"] == cells["unreachable"]["vocab"] == 512
    assert cells["unreachable"]["counts"]["reachable"] > 0
    assert census["tokens"][0]["prompts"] > 0
    assert {"what": "decoder cells: map", "why": "the model has no tokenizer to read texts with"} in results[
        "not_done"
    ]
    assert 'id="cells"' in (folder / "report.html").read_text(encoding="utf-8")
    resume_study(folder)
    again = results_of(folder)
    assert again["cells"] == cells
    assert again["census"] == census


def test_a_census_that_was_stopped_is_not_kept(
    tmp_path: Path, random_model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = []

    def then_ctrl_c(model, plan, number):
        block = decode_plan_block(model, plan, number)
        stopped.append(number)
        return block

    def counted(store: Store) -> int:
        clock = Clock(600.0, lambda: bool(stopped))
        found = Sections(random_model, StudyConfig(), store, clock, print, lambda: 60.0).census()
        assert found is not None
        return found.tokens[0].prompts

    with Store(tmp_path / "run") as store:
        with monkeypatch.context() as patch:
            patch.setattr(census, "decode_plan_block", then_ctrl_c)
            assert counted(store) == 128, "its first block"
        assert store.meta("census_of_tokens") is None
        stopped.clear()
        assert counted(store) == 512
        assert store.meta("census_of_tokens") is not None


def test_a_second_resume_at_the_same_time_is_refused_and_does_no_work(tmp_path: Path) -> None:
    cram = QUICK.cram.model_copy(update={"start_scale": 1.0, "max_steps": 10})
    config = QUICK.model_copy(update={"targets": ("random",), "support_positions": 0, "cram": cram})
    refused, strings = [], []

    class Told(Silent):
        """Counts strings; once there are more than three, tries to go on as well while the first goes on."""

        def string(self, cell: str, reach: int, outcome: str) -> None:
            strings.append(cell)
            if len(strings) > 3:
                with pytest.raises(OutputError) as error:
                    resume_study(tmp_path / "run")
                refused.append(str(error.value))

    end = run_study(config, tmp_path / "run", progress=Told(), stop=lambda: len(strings) >= 3)
    assert end.interrupted
    with Store.reading(end.folder) as store:
        assert len(store.keys()) == 3
    assert not resume_study(end.folder, progress=Told()).interrupted
    # The round that was stopped is run again as a whole, so that its rows keep their company; once.
    assert len(strings) == 3 + 8
    assert len(refused) == 8
    assert all(f"process {os.getpid()} on" in said for said in refused)
    with Store.reading(end.folder) as store:
        assert len(store.keys()) == 8


# Single lengths -----------------------------------------------------------------------------------------

LENGTHS = QUICK.model_copy(
    update={
        "targets": ("random",),
        "support_positions": 0,
        "relative_width": None,
        "cram": QUICK.cram.model_copy(
            update={"protocol": "fixed", "length": (2, 3, 8), "strings": 8, "n_max": None}
        ),
    }
)


@pytest.fixture(scope="module")
def at_lengths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_study(LENGTHS, tmp_path_factory.mktemp("runs") / "lengths", command="lmreach test").folder


def test_each_string_and_length_is_a_trial_with_its_certificate(at_lengths: Path) -> None:
    with Store(at_lengths) as store:
        trials = list(store.each())
        assert len(trials) == 2 * 3 * 8
        for trial in trials:
            assert trial["solved"] == (trial["reach"] == trial["limit"])
            assert (trial["outcome"] == "solved") == trial["solved"]
            assert len(trial["ids"]) == trial["limit"]
            if trial["solved"]:
                _, ids, _ = read_certificate(store.certificate_path(trial["key"]))
                assert ids.tolist() == trial["ids"]
    assert any(trial["solved"] for trial in trials)
    assert all(one.held for one in verify_run(at_lengths))


def test_points_curve_and_brackets_are_those_of_the_ledger(at_lengths: Path) -> None:
    with Store(at_lengths) as store:
        trials = list(store.each())
    results = results_of(at_lengths)
    for entry in results["accessibility"]:
        own = [t for t in trials if t["cell"] == f"random m={entry['m']}"]
        points = entry["points"]
        assert points["n"] == [2, 3, 8]
        assert points["tried"] == [8, 8, 8]
        for n, reached in zip(points["n"], points["reached"], strict=True):
            assert reached == sum(t["solved"] for t in own if t["limit"] == n)
        assert (entry["strings"], entry["trials"], entry["limit"]) == (8, 24, 8)
        assert entry["turnbull"]["n50"]["verdict"] == "separated"
        assert sum(entry["turnbull"]["mass"]) == pytest.approx(1)
        assert entry["n50"]["words"]
        assert entry["protocol_note"] == ""
    assert results["slopes"][0]["slope"]["words"]
    page = (at_lengths / "report.html").read_text(encoding="utf-8")
    assert "Success at single lengths" in page
    assert "comparison" not in page


def test_single_lengths_resume_to_the_same_end(at_lengths: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    class Counting(Silent):
        def string(self, cell: str, reach: int, outcome: str) -> None:
            seen.append(reach)

    end = run_study(
        LENGTHS,
        tmp_path / "run",
        command="lmreach test",
        progress=Counting(),
        stop=lambda: len(seen) >= 11,
    )
    assert end.interrupted
    partial = results_of(end.folder)
    # A chunk that was cut short does not count: its early ends are successes and those that gave up.
    for entry in partial["accessibility"]:
        assert set(entry["points"]["tried"]) <= {8}
    assert not resume_study(end.folder).interrupted
    assert without_time(results_of(end.folder)) == without_time(results_of(at_lengths))


def test_lengths_are_chosen_where_none_are_asked_for(tmp_path: Path) -> None:
    cram = CramPlan(protocol="fixed", strings=16, n_max=20, max_steps=40, patience=20)
    config = LENGTHS.model_copy(update={"cram": cram, "m": (1,)})
    folder = run_study(config, tmp_path / "run", command="lmreach test").folder
    (entry,) = results_of(folder)["accessibility"]
    assert entry["strings"] == entry["trials"] == sum(entry["points"]["tried"]) == 16
    assert 8 in entry["points"]["n"]
    assert len(entry["points"]["n"]) > 1
    before = without_time(results_of(folder))
    resume_study(folder)
    assert without_time(results_of(folder)) == before


def test_the_published_protocol_is_labelled_and_claims_nothing(tmp_path: Path) -> None:
    cram = CramPlan(protocol="published", length=(2, 6), strings=4, lr=0.3, max_steps=80, patience=40)
    folder = run_study(LENGTHS.model_copy(update={"cram": cram}), tmp_path / "run").folder
    results = results_of(folder)
    assert results["config"]["cram"]["lr_end"] == 0.3
    for entry in results["accessibility"]:
        assert entry["protocol"] == "published"
        assert "n - 1 predicted tokens" in entry["protocol_note"]
        assert entry["decoded"] <= entry["solved"]
        assert entry["points"]["reached"][0] >= 2  # one predicted token each
        if entry["n50"]["value"] is not None:
            assert entry["tokens_per_vector"] * entry["m"] == pytest.approx(entry["n50"]["value"] - 1)
    assert results["examples"] == []
    assert not list((folder / "certificates").iterdir())
    with pytest.raises(OutputError, match="no string was reached"):
        verify_run(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("published protocol, for comparison") >= 4
    assert "n - 1 predicted tokens" in page


def test_published_defaults_are_the_published_ones() -> None:
    cram = CramPlan(protocol="published")
    assert (cram.max_steps, cram.patience, cram.strings, cram.lr, cram.beta1) == (3000, 500, 20, 0.01, 0.9)
    assert CramPlan.model_validate(cram.model_dump()) == cram
    assert CramPlan(protocol="published", max_steps=7).max_steps == 7
    assert CramPlan(protocol="fixed").max_steps == CramPlan().max_steps


@pytest.mark.parametrize(
    ("cram", "words"),
    [
        ({"length": (8,)}, "--protocol fixed"),
        ({"protocol": "published", "prefix": "a"}, "--prefix"),
        ({"protocol": "published", "restarts": 2}, "--restarts"),
        ({"protocol": "published", "length": (1, 5)}, "--length 1"),
        ({"protocol": "published", "lr_end": 0.1}, "--lr-end"),
        ({"protocol": "fixed", "length": (8, 600)}, "512"),
    ],
)
def test_what_a_protocol_has_no_use_for_is_refused(tmp_path: Path, cram: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_study(LENGTHS.model_copy(update={"cram": CramPlan(**cram)}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_start_that_nobody_could_choose_is_said_and_chosen_later(tmp_path: Path, monkeypatch) -> None:
    """No time for a probe, no string: the resumed run looks again. With strings it keeps their start."""
    monkeypatch.setattr(start_cache, "folder", lambda: tmp_path / "starts")
    cram = QUICK.cram.model_copy(update={"strings": 1, "max_steps": 2})
    config = QUICK.model_copy(
        update={"cram": cram, "support_positions": 0, "m": (1,), "targets": ("random",)}
    )
    none = StartScale(1.0, 1, {}, 0, why="the time was too short for even a small probe")
    with monkeypatch.context() as short:
        short.setattr(search, "find_start", lambda *_args, **_rest: none)
        whole = run_study(config, tmp_path / "whole").folder
        stopped = run_study(config, tmp_path / "stopped").folder
    with Store(stopped) as store:
        store._db.execute("DELETE FROM trials")  # stopped before its first string
        store._db.commit()
    (note,) = [one for one in results_of(whole)["not_done"] if "first vectors" in one["what"]]
    assert note["why"].endswith("small probe; they start 1 times as long as real inputs")
    kept, again = (results_of(resume_study(one).folder)["search"] for one in (whole, stopped))
    assert kept["probe_of_start"]["why"] == none.why
    assert again["probe_of_start"]["why"] == ""
    assert len(again["probe_of_start"]["reaches"]["1"]) == 8


def test_a_round_that_memory_cannot_hold_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two vectors do not fit even for one string; one vector does, once fewer rows are tried at a time."""
    from lmreach.cli import main
    from lmreach.runs.study import round as rounds

    real, tried = rounds.cram, []

    def tight(model, ids, m, *args, batch_size, **more):
        tried.append((m, batch_size))
        if m == 2:
            raise MemoryError
        if batch_size > 2:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")
        return real(model, ids, m, *args, batch_size=batch_size, **more)

    monkeypatch.setattr(rounds, "cram", tight)
    cram = QUICK.cram.model_copy(update={"batch_size": None})
    config = QUICK.model_copy(update={"targets": ("random",), "support_positions": 0, "cram": cram})
    end = run_study(config, tmp_path / "run")
    assert tried == [(1, 4), (1, 3), (1, 2), (2, 4), (2, 3), (2, 2), (2, 1)]
    assert [entry["m"] for entry in results_of(tmp_path / "run")["accessibility"]] == [1]
    assert end.failed == ("a round of random m=2 failed: out of memory with one string at a time",)
    for words, code in ((["status"], 0), (["resume", "-q"], 1)):
        with pytest.raises(SystemExit) as ended:
            main([words[0], str(tmp_path / "run"), *words[1:]])
        assert ended.value.code == code
        caught = capsys.readouterr()
        assert "a round of random m=2 failed: out of memory" in caught.out + caught.err
        assert "Traceback" not in caught.err
