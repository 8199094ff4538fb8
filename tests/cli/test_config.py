"""--config FILE.toml and config show, as typed."""

import tomllib
from pathlib import Path

import pytest
from cyclopts import App

from lmreach.cli import COMMANDS, main
from lmreach.cli.config import _without_required, function_of, kinds_of


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(words)
    caught = capsys.readouterr()
    return end.value.code, caught.out, caught.err


def show(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    code, out, err = said(capsys, "config", "show", *words)
    assert (code, err) == (0, "")
    return tomllib.loads(out)


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_of_the_command_line_are_those_of_the_config(command: str) -> None:
    app = App(result_action="return_value")
    function = function_of(command)
    app.default(_without_required(function))
    parsed = app([], exit_on_error=False, print_error=False)
    for kind in kinds_of(function):
        assert [value for value in parsed.values() if type(value) is kind] == [kind()]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_shown_reads_back(command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    _, text, _ = said(capsys, "config", "show", command)
    file.write_text(text, encoding="utf-8")
    assert said(capsys, "config", "show", command, "--config", str(file)) == (0, text, "")


def test_the_command_line_wins_over_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'budget = "2m"\nm = [1, 3]\nmax_steps = 7\nprecision_wanted = 0.2\nout = "here"\ncells = true\n',
        encoding="utf-8",
    )
    shown = show(capsys, "study", "--config", str(file), "--max-steps", "9", "--no-cells")
    assert shown["budget"] == "2m"
    assert shown["vectors"] == [1, 3]
    assert shown["max_steps"] == 9
    assert shown["precision_wanted"] == "0.2"
    assert shown["out"] == "here"
    assert shown["cells"] is False
    assert "json" not in shown
    assert show(capsys, "study", f"--config={file}", "-m", "5")["vectors"] == [5]


def test_a_file_sets_what_a_run_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "four_numbers.toml"
    file.write_text('width = 64\nvocab = 1000\ndtype = "bfloat16"\nm = 2\n', encoding="utf-8")
    code, out, _ = said(capsys, "bounds", "--config", str(file))
    assert code == 0
    assert "d = 64, V = 1000" in out
    assert "m=2" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bugdet = 1", "did you mean --budget?"),
        ("budget = -4", "a budget such as 90s"),
        ("max_steps = 'many'", "--max-steps as a whole number; got many"),
        ("strings = 0", "expected --strings of at least 1; got 0"),
        ("budget = [", "expected a TOML file"),
        ("[cram]\nmax_steps = 3", "[cram][max_steps]"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(
    text: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    for command in (["study", "builtin:random"], ["config", "show", "study"]):
        code, _, err = said(capsys, *command, "--config", str(file))
        assert code == 2
        assert len(err.splitlines()) == 1
        assert words.lower() in err.lower()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("study", "builtin:random", "--config"), "expected one file after --config"),
        (("study", "builtin:random", "--config", "a", "--config", "b"), "a and b"),
        (("study", "builtin:random", "--config", "nowhere.toml"), "expected a TOML file"),
        (("config", "show", "stduy"), "'stduy'"),
    ],
)
def test_config_as_it_is_mistyped(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, *words)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert message in err
