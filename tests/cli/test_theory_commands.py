"""bounds, support and paper as typed."""

import json
from pathlib import Path

import pytest

from lmreach.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    caught = capsys.readouterr()
    assert end.value.code == code, caught.err
    return caught.err if code else caught.out


def test_the_table_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "bounds", "builtin:random", "-m", "4", "-n", "100", "--unbounded")
    assert max(map(len, out.splitlines())) <= 80
    assert "all up" in out
    assert "\n*norm ellipsoid" in out
    assert "norm ellipsoid: 10^" in out


@pytest.mark.parametrize(
    "dtype", ["float32", "tf32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8", "int4"]
)
def test_every_format_without_a_model(capsys: pytest.CaptureFixture[str], dtype: str) -> None:
    words = ("--width", "65536", "--vocab", "50304", "-m", "1000000", "-n", "7", "--unbounded", "--json")
    found = json.loads(run(capsys, "bounds", *words, "--limit-dtype", dtype))
    assert json.loads(run(capsys, "bounds", *words, "--dtype", dtype)) == found
    ball, every = found["limits"]
    assert ball["tightest_of_premise"]
    assert every["name"] == "every finite value"
    assert dtype in every["note"]
    assert found["unbounded_log10_tokens"]["ball (paper)"] > 1000


def test_stored_vectors_are_half_precision_unless_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("bounds", "--width", "8", "--vocab", "9", "--json")
    for more, values in (
        ((), "63487"),
        (("--dtype", "bfloat16"), "65279"),
        (("--dtype", "float32"), "4278190079"),
        (("--vector-dtype", "bf16"), "65279"),
    ):
        assert values in json.loads(run(capsys, *words, *more))["limits"][1]["note"]


def test_support_feeds_bounds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "s.safetensors")
    words = ("support", "builtin:random", "--positions", "400", "--prompt-tokens", "4", "16", "--no-progress")
    shown = run(capsys, *words, "--out", file)
    assert max(map(len, shown.splitlines()[:-1])) <= 100
    assert "half-angle" in shown
    measured = json.loads(run(capsys, *words, "--json"))
    assert measured["lengths"] == [4, 16]
    assert measured["lengths_end_at"] == "asked"
    assert {step["by"] for step in measured["growth"]} == {"length", "samples"}
    assert sum(step["states"] for step in measured["growth"] if step["by"] == "length") == measured["samples"]
    found = json.loads(run(capsys, "bounds", "builtin:random", "--support", file, "--json"))["limits"]
    by_name = {limit["name"]: limit for limit in found}
    assert by_name["cone (paper)"]["packing"] == "convention"
    assert not by_name["cone (paper)"]["tightest_of_premise"]
    assert by_name["enclosing cone"]["packing"] == "proved"
    assert by_name["enclosing cone"]["log_packing_nats"] <= by_name["ball (paper)"]["log_packing_nats"] + 1e-9
    assert "box of hidden states" in by_name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bounds", "builtin:random", "--support", "none"), "none"),
        (("bounds", "builtin:random", "--vector-dtype", "float61"), "float61"),
        (("bounds", "builtin:random", "--dtype", "int8"), "got int8"),
        (("bounds", "--width", "8", "--vocab", "9", "--dtype", "int9"), "int8"),
        (("bounds", "--width", "8"), "--vocab"),
        (("bounds", "builtin:random", "--width", "8"), "leave one out"),
        (("support", "builtin:random", "--prompt-tokens", "600"), "512"),
        (("support", "builtin:random", "--positions", "0"), "positions"),
        (("support", "builtin:random", "--prompts", "words"), "words"),
        (("support", "builtin:random", "--limit-dtype", "float61"), "float61"),
        (("support", "builtin:random", "--seed", "-1"), "seed"),
        (("paper", "--dtype", "flaot16"), "float16"),
    ],
)
def test_refusals_are_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    err = run(capsys, *words, *(("--no-progress",) if words[0] == "support" else ()), code=2)
    assert said in err
    assert err.startswith("lmreach: ")
    assert len(err.splitlines()) == 1


def test_the_published_table(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "paper")
    assert max(map(len, out.splitlines())) <= 100
    assert "5.9386" in out
    assert "6.528" in out
    assert "carries" in out or "cancels" in out
    assert "underflows" in out
    entry = json.loads(run(capsys, "paper", "--json"))
    assert len(entry["models"]) == 11
    assert len(entry["notes"]) >= 4


@pytest.mark.parametrize(
    ("positions", "end", "shown"), [("64", "positions", "affords"), ("2400", "context", "the context")]
)
def test_what_set_the_longest_prompt_is_told(
    capsys: pytest.CaptureFixture[str], positions: str, end: str, shown: str
) -> None:
    words = ("support", "builtin:random", "--positions", positions, "--prompts", "random", "--no-progress")
    assert shown in run(capsys, *words)
    found = json.loads(run(capsys, *words, "--json"))
    assert (found["lengths_end_at"], found["context"]) == (end, 512)
    assert found["lengths"][-1] == (512 if end == "context" else int(positions) // 2)


WIDTHS = ("bounds", "--vocab", "50304", "--dtype", "float16")


def test_whether_a_length_is_possible_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*WIDTHS, "--width", "768", "-m", "1")
    for n, answer in (
        (590, "Every sequence of 590 tokens from 1 vector: not excluded: the tightest limit allows 590"),
        (591, "Every sequence of 591 tokens from 1 vector: excluded by ball (paper) (premise hidden), which"),
        (9999, "Every sequence of 9,999 tokens from 1 vector: excluded by ball (paper)"),
    ):
        said = " ".join(run(capsys, *words, "-n", str(n)).split())
        assert answer in said
        assert ("not excluded under format" in said) is (n == 591)


def test_bounds_answer_backwards(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, *WIDTHS, "--width", "768", "--need", "591")
    assert "2 under the premise hidden (ball (paper))" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    out = " ".join(run(capsys, *WIDTHS, "--need", "590").split())
    assert "Every sequence of 590 tokens from 1 vector needs a width of at least 768" in out
    found = json.loads(run(capsys, *WIDTHS, "--need", "590", "--json"))
    assert found["widths_needed"]["ball (paper)"] == 768
    assert "--vocab and --need" in run(capsys, "bounds", "--vocab", "9", code=2)
    assert "--need" in run(capsys, *WIDTHS, "--need", "0", code=2)
