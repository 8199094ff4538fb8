"""``lmreach copy`` as typed: training, a model as it is, stopping and going on, refusals in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmreach.cli import main
from lmreach.cli.progress import Interrupt

TINY = [
    "--train-longest",
    "3",
    "--width",
    "16",
    "--layers",
    "1",
    "--heads",
    "2",
    "--steps",
    "3",
    "--strings",
    "2",
]
QUICK = [*TINY, "--length", "1", "4", "--no-layouts", "--cram-strings", "0", "--no-progress"]


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["copy", *words])
    return int(end.value.code or 0)


def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text())


def test_a_copier_is_trained_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*QUICK, "--kind", "nope", "--alphabet", "a-e", "--out", str(tmp_path / "run")) == 0
    shown = capsys.readouterr().out
    assert "A model of kind nope" in shown
    assert "report:" in shown
    found = results(tmp_path / "run")
    assert found["config"]["train"]["kind"] == "nope"
    assert found["config"]["train"]["letters"] == "a-e"
    assert [one["length"] for one in found["copying"]["lengths"]] == [1, 4]
    assert (tmp_path / "run" / "report.html").is_file()


def test_json_is_the_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "builtin:verse",
        "--strings",
        "2",
        "--length",
        "2",
        "--no-layouts",
        "--teacher-forced",
    ]
    assert run(*asked, "--json", "-q", "--out", str(tmp_path / "run")) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == results(tmp_path / "run")
    assert shown["copying"]["decoding"] == "teacher_forced"
    assert shown["copying"]["training"] is None


def test_an_n_gram_task_begins_with_strings_it_can_be_asked_about(tmp_path: Path) -> None:
    asked = [
        *TINY,
        "--no-layouts",
        "--cram-strings",
        "0",
        "-q",
        "--length",
        "4",
        "--task",
        "prefix_ngram",
        "--ngram",
        "2",
    ]
    assert run(*asked, "--out", str(tmp_path / "run")) == 0
    assert results(tmp_path / "run")["config"]["train"]["shortest"] == 3


def test_a_stopped_run_says_how_to_go_on_and_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(Interrupt, "__call__", lambda self: True)
        assert run(*QUICK, "--out", str(folder)) == 130
    assert f"lmreach resume {folder}" in capsys.readouterr().err
    for words, told in (
        (["status"], "training stopped after 1 steps\nopen: "),
        (["resume", "-q"], "report"),
    ):
        with pytest.raises(SystemExit) as end:
            main([words[0], str(folder), *words[1:]])
        assert end.value.code == 0
        assert told in capsys.readouterr().out
    assert not results(folder)["provenance"]["interrupted"]
    with pytest.raises(SystemExit):
        main(["status", str(folder)])
    assert "training ended after 3 steps\nnothing left to do" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--kind", "rope", "builtin:verse"], "got builtin:verse and --kind rope"),
        (["--fine-tune"], "expected MODEL with --fine-tune"),
        (["builtin:verse", "--steps", "9"], "no training options for a model as it is; got --steps"),
        (["--model", "builtin:verse"], "the model stands without one"),
        (["builtin:verse", "--alphabet", "A"], "letters from a to z"),
        (["--length", "400"], "a context of 704"),
        (["--length", "0"], "of at least 1"),
        (["--kind", "gru"], "gru"),
        (["no/such.gguf"], "no/such.gguf"),
    ],
)
def test_refusals_are_one_line(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "-q", "--out", str(tmp_path / "run")) == 2
    shown = capsys.readouterr().err.strip().splitlines()
    assert len(shown) == 1
    assert told in shown[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dtype", "bfloat16"], "--precision"),
        (["--device", "cuda:1"], "CUDA_VISIBLE_DEVICES"),
        (["--revision", "main"], "hub"),
    ],
)
def test_load_options_reach_the_model_to_fine_tune_or_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*QUICK, "builtin:verse", "--fine-tune", *options, "--out", str(tmp_path / "run")) == 2
    assert words in capsys.readouterr().err
