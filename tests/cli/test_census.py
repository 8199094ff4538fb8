"""``lmreach census`` as typed."""

import json
import re
from pathlib import Path

import pytest

from lmreach.cli import main
from lmreach.runs.census import run as study_census

TINY = "tiny:llama,width=2,vocab=4"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["census", *words])
    caught = capsys.readouterr()
    return end.value.code, caught.out, caught.err


def test_a_grid_is_counted_and_its_missing_sequences_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, missing = str(tmp_path / "run"), tmp_path / "missing.txt"
    words = [TINY, "--grid", "q=2", "-m", "1", "2", "-n", "4", "--out", out, "--missing", str(missing)]
    code, text, _ = said(capsys, *words, "--no-progress")
    assert code == 0
    assert "All 16 prompts of 2 vectors" in text
    assert "report.html" in text
    lines = missing.read_text().splitlines()
    heads = [line for line in lines if line.startswith("#")]
    assert len(heads) == 2
    listed = sum(int(re.search(r": (\d+) of", head)[1]) for head in heads)  # type: ignore[index]
    assert len(lines) - len(heads) == listed
    assert set("".join(lines[1:2])) <= set("0123 ")


def test_json_is_the_results_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_census, "render", lambda results, out: out)
    words = [TINY, "--grid", "3", "-m", "1", "-n", "3", "--out", str(tmp_path / "run"), "--json", "-q"]
    code, text, err = said(capsys, *words)
    assert (code, err) == (0, "")
    assert text == (tmp_path / "run" / "results.json").read_text()
    assert json.loads(text)["census"]["grids"][0]["prompts"] == 9


def test_real_prompts_are_counted_and_the_report_can_be_made_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["builtin:random", "--prompt-tokens", "1", "2", "--prompts", "130", "-n", "3"]
    code, text, _ = said(capsys, *words, "--out", str(tmp_path / "run"), "--no-progress")
    assert code == 0
    assert "130 random prompts of 2 tokens" in text
    with pytest.raises(SystemExit) as end:
        main(["report", str(tmp_path / "run"), "--figures"])
    assert end.value.code == 0
    assert (tmp_path / "run" / "figures" / "census-discovery.png").is_file()


def test_is_reachable_answers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    ask = ["builtin:random", "--is-reachable", "ids:7,300", "-m", "1", "2", "--budget", "60s", "-q"]
    code, text, _ = said(capsys, *ask, "--out", out)
    assert code == 0
    assert text.startswith("yes: ")
    code, text, _ = said(capsys, *ask, "--runs", out, "--json")
    answer = json.loads(text)
    assert (answer["verdict"], answer["tried"], answer["certificate"]) == ("yes", [], None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([TINY, "--grid", "q=four"], "q=4"),
        ([TINY, "--grid", "1"], "grid"),
        ([TINY, "--grid", "4", "-m", "40"], "10"),
        ([TINY, "--grid", "4", "-m", "6"], "max-prompts"),
        ([TINY, "--grid", "4", "--order", "random"], "order"),
        ([TINY, "--grid", "4", "--prompt-tokens", "1"], "one question"),
        ([TINY, "--grid", "2", "-n", "200"], "128 positions"),
        (["tiny:bert", "--grid", "2"], "tiny:llama"),
        (["builtin:random", "--prompt-tokens", "0"], "--prompt-tokens of at least 1"),
        (["builtin:random", "--bos", "before"], "start token"),
        (["builtin:random", "--is-reachable", "hello"], "tokenizer"),
        (["builtin:random", "--is-reachable", "ids:1,x"], "'x' in 'ids:1,x'"),
        (["builtin:random", "--is-reachable", "ids:512"], "outside the vocabulary"),
        (["builtin:random", "--is-reachable", "ids:1", "--budget", "none"], "budget"),
        (["builtin:random", "--is-reachable", "ids:1", "--runs", "nowhere"], "nowhere"),
        (["no/such/folder/at/all"], "does not exist"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], expected: str, tmp_path: Path
) -> None:
    code, _, err = said(capsys, *words, "--out", str(tmp_path / "run"), "--no-progress")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert err.startswith("lmreach: ")
    assert expected in err
    assert not (tmp_path / "run" / "results.json").exists()
