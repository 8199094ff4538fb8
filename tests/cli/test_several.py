"""Studies of several models, and parts of a plan, as typed."""

from pathlib import Path

import pytest

from lmreach.cli import main
from lmreach.cli.toml import models_in
from lmreach.engine.folder import names_of_folders
from lmreach.engine.run import open_run
from lmreach.errors import InputError

QUICK = ["-m", "1", "--targets", "random", "--strings", "2", "--max-steps", "2", "--n-max", "3"]
QUICK += ["--budget", "none", "--support-positions", "0", "--no-cells", "--no-progress"]
QUICK += ["--search-dtype", "float32", "--start-scale", "1"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    caught = capsys.readouterr()
    return end.value.code, caught.out, caught.err


def test_several_models_have_a_folder_each_and_one_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, out = tmp_path / "models.toml", tmp_path / "out"
    file.write_text('models = ["builtin:random"]\nseed = 3\n', encoding="utf-8")
    words = ["study", "builtin:random", "--config", str(file), *QUICK, "--out", str(out)]
    code, printed, _ = said(capsys, *words)
    assert code == 0
    assert {path.name for path in out.iterdir()} == {"random", "random-2", "comparison"}
    assert (out / "comparison" / "compare.html").is_file()
    assert printed.count("report.html") == 2
    config = open_run(out / "random-2").envelope.config
    assert (config.model, config.cram.seed) == ("builtin:random", 3)
    code, _, error = said(capsys, "study", "builtin:random", "./no/such/model", *QUICK, "--out", str(out))
    assert code == 2
    assert "no/such/model" in error, "refused before the first is studied"


def test_names_of_folders_differ() -> None:
    names = names_of_folders(["builtin:verse", "a/verse", "b/Verse.gguf", "org/verse"])
    assert names == ["verse", "verse-2", "Verse-3", "verse-4"]


def test_models_of_a_file_are_names(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text("seed = 1\n", encoding="utf-8")
    assert models_in(str(file)) == []
    file.write_text("models = 3\n", encoding="utf-8")
    with pytest.raises(InputError, match="a list of names for models; got 3"):
        models_in(str(file))


def test_parts_are_joined(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    common = ["--strings", "2", "--max-steps", "2", "--n-max", "3", "-m", "1", "2"]
    common += ["--search-dtype", "float32", "--start-scale", "1", "-q"]
    for number in ("1", "2"):
        words = ["cram", "builtin:random", *common, "--shard", f"{number}/2", "--out", str(tmp_path / number)]
        assert said(capsys, *words)[0] == 0
    out = str(tmp_path / "whole")
    code, printed, _ = said(capsys, "merge", str(tmp_path / "1"), str(tmp_path / "2"), "--out", out)
    assert (code, printed) == (0, f"4 trials of 2 runs in {out}; go on with: lmreach resume {out}\n")
    code, _, error = said(capsys, "cram", "builtin:random", "--shard", "9/2")
    assert code == 2
    assert "write e.g. 1/8" in error
