"""compare and export-table as typed."""

import json
from pathlib import Path

import pytest

from lmreach.cli import main

RECORDED = Path(__file__).parents[2] / "docs" / "results"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    caught = capsys.readouterr()
    return end.value.code, caught.out, caught.err


def test_compare_writes_a_page_and_its_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = [str(RECORDED / "verse"), str(RECORDED / "gemma-3-270m" / "results.json")]
    code, out, _ = said(capsys, "compare", *runs, "--out", str(tmp_path), "--published", "gemma-3-270m")
    assert code == 0
    assert "warning: Steps per string differ" in out
    assert max(map(len, out.splitlines()[:-1])) <= 100
    assert {path.name for path in tmp_path.iterdir()} == {
        "compare.html",
        "table.csv",
        "table.md",
        "table.tex",
        "comparison.json",
    }
    code, out, _ = said(capsys, "compare", *runs, "--out", str(tmp_path), "--json")
    assert len(json.loads(out)["entries"]) == 3


def test_export_table_to_the_console_and_to_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = str(RECORDED / "verse")
    code, out, err = said(capsys, "export-table", run)
    assert (code, err) == (0, "")
    assert "| builtin:verse (random) | 8 | 37.0 (no interval) |" in out
    file = tmp_path / "verse.tex"
    assert said(capsys, "export-table", run, "--format", "latex", "--out", str(file))[:2] == (0, f"{file}\n")
    assert "\\begin{tabular}" in file.read_text(encoding="utf-8")
    other = str(RECORDED / "gemma-3-270m")
    code, out, err = said(capsys, "export-table", run, other, "--format", "csv")
    assert code == 0
    assert out.splitlines()[0].startswith("study,origin,model,width")
    assert "lmreach: warning: Steps per string differ" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare",), "expected at least one RUN; got none"),
        (("export-table", "no/such/run"), "no/such/run"),
        (("compare", str(RECORDED / "verse"), "--published", "gpt-9"), "one of the published models"),
        (("export-table", str(RECORDED / "verse"), "--format", "word"), "one of csv, markdown, latex"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    code, out, err = said(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
