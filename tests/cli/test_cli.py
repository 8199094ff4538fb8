"""The command line as typed: quick help, one-line refusals, exit codes."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmreach.cli import COMMANDS, main

NO_TORCH = """
import sys
from lmreach.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
heavy = sorted({"torch", "transformers", "scipy", "altair"} & set(sys.modules))
print("HEAVY", heavy, "CODE", code)
"""


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_TORCH, *words], capture_output=True, text=True, timeout=60, check=True
    )
    assert "HEAVY [] CODE 0" in done.stdout
    if words[-1] == "--help":
        assert "Usage: lmreach" in done.stdout


def test_help_names_every_command_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert name in text
        assert summary.split()[0] in text


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must be refused with exit code 2 and one line; return the line."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    caught = capsys.readouterr()
    assert end.value.code == 2, caught.err
    lines = [line for line in caught.err.splitlines() if not re.match(r"\[\d+:\d\d\] ", line)]
    assert len(lines) == 1, caught.err
    assert lines[0].startswith("lmreach: ")
    assert "Traceback" not in caught.err
    return lines[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bouds"], "bounds"),
        (["study"], "MODEL"),
        (["study", "builtin:rando"], "builtin:random"),
        (["study", "builtin:random", "--budget", "5 parsecs"], "budget"),
        (["study", "builtin:random", "--budget", "0"], "budget"),
        (["study", "builtin:random", "--budget", "5"], "write 5s or 5m"),
        (["copy", "builtin:random", "builtin:verse"], "the word 'builtin:verse'"),
        (["copy", "--steps", "0"], "expected --steps of at least 1; got 0"),
        (
            ["copy", "--train-shortest", "5", "--train-longest", "3"],
            "--train-shortest 5 above --train-longest 3",
        ),
        (["judge", "a.npy", "builtin:random", "--target", "text:none.txt"], "none.txt"),
        (["study", "builtin:random", "-m", "0"], "expected -m/--vectors of at least 1; got 0; see --help"),
        (["study", "builtin:random", "-m", "one"], "expected -m/--vectors as a whole number; got one"),
        (["study", "builtin:random", "-m", "1_0"], "expected -m/--vectors as a whole number; got 1_0"),
        (["cram", "builtin:random", "-m", "1", "2.7"], "expected -m/--vectors as a whole number; got 2.7"),
        (["cram", "builtin:random", "--max-steps", "0x10"], "--max-steps as a whole number; got 0x10"),
        (["cram", "builtin:random", "--lr", "1_0.5"], "expected --lr as a number; got 1_0.5"),
        (["copy", "--layers", "1_0"], "expected --layers as a whole number; got 1_0"),
        (["decode", "a.safetensors", "-n", "1_0"], "expected -n/--length as a whole number; got 1_0"),
        (["study", "builtin:random", "--strings", "0"], "strings"),
        (["study", "builtin:random", "--n-max", "0"], "--n-max"),
        (["study", "builtin:random", "--n-max", "600"], "512"),
        (["study", "builtin:random", "-m", "600"], "512"),
        (["study", "builtin:random", "--protocol", "quick"], "protocol"),
        (["cram", "builtin:random", "--length", "8"], "--protocol fixed"),
        (["cram", "builtin:random", "--protocol", "fixed", "--length", "0"], "length"),
        (["cram", "builtin:random", "--protocol", "published", "--bos", "before"], "--bos"),
        (["study", "builtin:random", "--lr", "-1"], "lr"),
        (["study", "builtin:random", "--targets", "text:none.txt"], "none.txt"),
        (["study", "builtin:random", "--dtype", "int3"], "dtype"),
        (["study", "./no/such/folder"], "no/such/folder"),
        (["bounds"], "--width"),
        (["bounds", "--width", "0", "--vocab", "10"], "expected --width of at least 1; got 0"),
        (["bounds", "--width", "10", "--vocab", "1"], "expected --vocab of at least 2; got 1"),
        (["bounds", "--width", "8", "--vocab", "9", "--radius", "-1"], "expected --radius above 0; got -1"),
        (["bounds", "--width", "8", "--vocab", "9", "-m", "0"], "expected -m/--vectors of at least 1; got 0"),
        (["bounds", "builtin:random", "-n", "0"], "expected -n/--length of at least 1; got 0"),
        (["support", "builtin:random", "--positions", "0"], "expected --positions of at least 1; got 0"),
        (["cells", "builtin:random", "--rare", "0"], "expected --rare of at least 1; got 0"),
        (["bounds", "--width", "8", "--vocab", "9", "--limit-dtype", "float61"], "float61"),
        (["bounds", "builtin:random", "--width", "8"], "either"),
        (["verify", "nowhere"], "nowhere"),
        (["resume", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["status", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *words)
    assert not any(tmp_path.iterdir()), "nothing half-written"


@pytest.mark.parametrize(
    "words",
    [
        ["study", "builtin:random", "--budget", "3x"],
        ["study", "builtin:random", "--targets", "foo"],
        ["study", "builtin:random", "--targets", "text:none.txt"],
        ["study", "builtin:random", "-m", "0"],
        ["cram", "builtin:random", "--strings", "0"],
        ["study", "./no/such/folder"],
        ["bounds", "builtin:rando"],
        ["bounds", "--width", "0", "--vocab", "10"],
        ["census", "missing.gguf"],
        ["copy", "./no/such/folder"],
        ["support", "tiny:llama,width=x"],
    ],
)
def test_words_are_refused_before_anything_heavy_is_imported(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_TORCH, *words], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "HEAVY [] CODE 2" in done.stdout, done.stdout + done.stderr
    assert done.stderr.startswith("lmreach: expected ")
    assert len(done.stderr.splitlines()) == 1


def test_files_that_are_no_models(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are words, no weights", encoding="utf-8")
    gguf = tmp_path / "cut.gguf"
    gguf.write_bytes(b"GGUF\x03\x00\x00\x00")
    (tmp_path / "empty").mkdir()
    for path in (text, gguf, tmp_path / "empty", tmp_path / "missing.gguf"):
        assert path.name in refused(capsys, "study", str(path), "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_stack_trace_comes_only_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["verify", "nowhere", "--debug"])
    assert end.value.code == 2
    assert "Traceback" in capsys.readouterr().err


def test_bounds_from_four_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "bounds",
        "--width",
        "768",
        "--vocab",
        "50304",
        "--dtype",
        "float16",
        "-m",
        "1",
        "-n",
        "600",
        "--json",
    ]
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    found = json.loads(capsys.readouterr().out)
    ball = found["limits"][0]
    assert ball["log_packing_nats"] == pytest.approx(6388.23189316, abs=1e-7)
    assert ball["tokens_per_vector"] == pytest.approx(590.091112233, abs=1e-8)
    assert ball["longest_fully_possible"] == 590
    assert ball["log_share_nats"] == pytest.approx(-107.272032317, abs=1e-7)


def test_bounds_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bounds", "builtin:random", "-m", "4", "-n", "500"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "norm ellipsoid" in text
    assert "512 rows, 512 usable" in text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    words = (
        f"cram builtin:random -m 1 2 --targets self --strings 3 --max-steps 40 --n-max 8 -q --out {folder}"
    )
    done = subprocess.run(
        [sys.executable, "-m", "lmreach", *words.split()],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(folder / "report.html")
    return folder


def test_a_run_can_be_verified_reported_and_asked_about(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = next(iter(sorted((run / "certificates").iterdir())))
    ids = tmp_path / "target.ids"
    ids.write_text("1 2 3")
    for words, said in [
        (["verify", str(run)], r"\d+ of \d+ certificates held"),
        (["verify", str(run), "--quantise"], r"int4 .* of "),
        (["decode", str(certificate)], "⟨"),
        (["decode", str(certificate), "--json"], '"as_claimed": true'),
        (["export", str(certificate), "--out", str(tmp_path / "adapter")], "adapter_model.safetensors"),
        (
            ["judge", str(tmp_path / "adapter"), "builtin:random", "--target", f"ids:{ids}"],
            "emitted",
        ),
        (["status", str(run)], "nothing left to do"),
        (["report", str(run)], "report.html"),
        (["resume", str(run), "--no-progress"], "report.html"),
    ]:
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0
        assert re.search(said, capsys.readouterr().out)


def test_figures_are_written_on_request(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", str(run), "--figures"])
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert {path.suffix for path in written} == {".html", ".svg", ".png"}
    assert all(path.stat().st_size > 1000 for path in written)


def test_a_false_claim_gives_exit_code_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = sorted((run / "certificates").glob("*.safetensors"))[0]
    whole = certificate.read_bytes()
    certificate.write_bytes(whole[:-4])
    try:
        with pytest.raises(SystemExit) as end:
            main(["verify", str(run)])
        assert end.value.code == 1
        assert "FAILED" in capsys.readouterr().out
    finally:
        certificate.write_bytes(whole)


def test_ctrl_c_leaves_a_valid_run(tmp_path: Path) -> None:
    """The first Ctrl-C ends the run at the next step with exit code 130, results and a hint."""
    folder = tmp_path / "run"
    words = (
        f"cram builtin:random -m 1 --strings 2000 --batch-size 4 --max-steps 40 --no-progress --out {folder}"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "lmreach", *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    certificates = folder / "certificates"
    waited = 0
    while not (certificates.is_dir() and any(certificates.iterdir())) and waited < 1200:
        time.sleep(0.1)
        waited += 1
    process.send_signal(2)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "lmreach resume" in err
    assert "report.html" in out
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["provenance"]["interrupted"] is True
    assert results["not_done"]


def test_lengths_are_given_one_by_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--protocol", "fixed", "--length", "2", "--length", "5", "--strings", "2", "--max-steps", "3"]
    out = str(tmp_path / "run")
    with pytest.raises(SystemExit) as end:
        main(["cram", "builtin:random", *words, "--json", "--no-progress", "--out", out])
    assert end.value.code == 0
    (entry,) = json.loads(capsys.readouterr().out)["accessibility"]
    assert entry["points"]["n"] == [2, 5]
    assert entry["points"]["tried"] == [2, 2]
    with pytest.raises(SystemExit):
        main(["status", out])
    assert "random m=1: 4 of 4 trials" in capsys.readouterr().out
