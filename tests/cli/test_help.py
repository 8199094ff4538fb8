"""Help, its examples, exit codes, completion: what a reader of the command line is told is so."""

import json
import shlex
import subprocess
import webbrowser
from pathlib import Path

import pytest

from lmreach.cli import COMMANDS, OTHERS, app, main
from lmreach.cli.codes import EXIT_CODES
from lmreach.cli.examples import EXAMPLES


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(words)
    caught = capsys.readouterr()
    return end.value.code, caught.out, caught.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_a_command_with_examples_and_no_empty_defaults(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, "help", command)
    assert code == 0
    assert out == said(capsys, command, "--help")[1]
    assert "Examples:" in out
    for empty in ("()", "[]", '""', "False", "None"):
        assert f"[default: {empty}]" not in out


def test_every_example_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_text("Shall I compare thee", encoding="utf-8")
    assert set(EXAMPLES) == set(COMMANDS)
    for command, lines in EXAMPLES.items():
        assert f"lmreach {command}" in " ".join(lines)
        for line in lines:  # of what goes before it, too
            words = shlex.split(line)
            assert words[0] == "lmreach"
            app.parse_args(words[1:], exit_on_error=False, print_error=False)


def test_help_of_nothing_and_of_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "help")[1] == said(capsys, "--help")[1]
    code, _, err = said(capsys, "help", "stduy")
    assert code == 2
    assert "did you mean study?" in err
    for name in OTHERS:
        assert said(capsys, "help", name)[0] == 0


def test_exit_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("--help",), ("help", "exit-codes")):
        out = said(capsys, *words)[1]
        assert all(f"{code}  {meaning}" in out for code, meaning in EXIT_CODES.items())


def test_completion_knows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, script, _ = said(capsys, "completion", "bash")
    assert code == 0
    assert all(command in script for command in COMMANDS)
    assert "precision-wanted" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_a_model_is_a_word_and_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("study", "copy", "judge", "decode"):
        code, _, err = said(capsys, command, "a", "--model", "builtin:random")
        assert code == 2
        assert "the model stands without one" in err


def test_a_census_ends_with_its_budget_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    folder = tmp_path / "run"
    asked = ("census", "builtin:random", "--prompts", "20", "-n", "2", "--no-progress", "--out", str(folder))
    code, _, err = said(capsys, *asked, "--budget", "0.001s", "--open")
    assert code == 0
    assert f"the budget is spent; go on with: lmreach resume {folder}" in err
    assert opened == [(folder / "report.html").as_uri()]
    status = json.loads(said(capsys, "status", str(folder), "--json")[1])
    assert (status["kind"], status["state"]) == ("census", "stopped")
    assert status["go_on"] == f"lmreach resume {folder}"
    assert said(capsys, *asked)[0] == 0
    status = json.loads(said(capsys, "status", str(folder), "--json")[1])
    assert (status["state"], status["go_on"]) == ("done", "")


def test_cells_end_with_their_budget(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "cells", "builtin:random", "--unreachable", "--budget", "0.001s")
    assert code == 0
    assert "the budget was spent before every part was through" in err
