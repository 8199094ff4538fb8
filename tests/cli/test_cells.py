"""cells as typed: parts, files, exit codes and refusals."""

import json
from pathlib import Path

import pytest
import torch

from lmreach.cli import main
from lmreach.models.tiny import tiny, tiny_tokenizer
from lmreach.results.answers import CellsResults


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as end:
        main(["cells", *words, "--no-progress"])
    caught = capsys.readouterr()
    assert end.value.code == code, caught.err
    return caught.err if code else caught.out


def test_shares_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "builtin:random", "--samples", "5000")
    assert max(map(len, out.splitlines())) <= 90
    for said in ("5,000 (seed 0)", "Gini", "largest cells", "argmax cells", "norm-shaped Gaussian"):
        assert said in out


def test_json_holds_counts_intervals_and_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("builtin:verse", "--samples", "3000", "--seed", "4", "--json")
    found = json.loads(run(capsys, *words))
    assert found == json.loads(run(capsys, *words))
    part = found["shares"]
    assert part["samples"] == 3000
    assert part["seed"] == 4
    assert len(part["largest"]) == 10
    assert all(cell["low"] < cell["share"] < cell["high"] for cell in part["largest"])
    assert part["hit"] <= found["vocab"]
    assert part["ranks"][0]["share"] == part["largest"][0]["share"]
    other = json.loads(run(capsys, *words, "--convention", "nearest-row"))["shares"]
    assert other["convention"] == "nearest-row"
    assert other["largest"] != part["largest"]


@pytest.mark.parametrize("measure", ["ellipsoid", "ball", "box", "empirical"])
def test_every_measure(capsys: pytest.CaptureFixture[str], tmp_path: Path, measure: str) -> None:
    file = str(tmp_path / "s.safetensors")
    with pytest.raises(SystemExit):
        main(["support", "builtin:random", "--positions", "200", "--prompt-tokens", "8", "--out", file])
    more = ("--support", file) if measure in ("ball", "box") else ()
    more = ("--prompts", "random") if measure == "empirical" else more
    capsys.readouterr()
    out = run(capsys, "builtin:random", "--measure", measure, "--samples", "500", *more)
    assert ("states of one prompt depend" in out) == (measure == "empirical")


def test_a_map_alone_is_drawn_without_sampling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = run(capsys, "builtin:verse", "--map", "The king", "O my love", "What is", "--out", str(tmp_path))
    assert "Shares" not in out
    assert "on the plane" in out
    assert f"written: {tmp_path / 'map.svg'}" in out
    assert (tmp_path / "map.png").stat().st_size > 10_000
    words = (
        "--map",
        "The king",
        "O my love",
        "What is",
        "--samples",
        "100",
        "--out",
        str(tmp_path),
        "--json",
    )
    found = json.loads(run(capsys, "builtin:verse", *words))
    assert found["shares"]["samples"] == 100
    assert sum(cell["area"] for cell in found["map"]["cells"]) == pytest.approx(1)
    assert [text["text"] for text in found["map"]["texts"]] == ["The king", "O my love", "What is"]


def test_the_map_says_what_the_model_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from lmreach.models.load import load

    texts = ("The king", "O my love", "What is")
    words = ("builtin:verse", "--map", *texts, "--out", str(tmp_path), "--json")
    found = json.loads(run(capsys, *words))["map"]
    model = load("builtin:verse")
    for text, told in zip(texts, found["texts"], strict=True):
        ids = torch.from_numpy(model.encode(text))[None]
        with torch.no_grad():
            logits = model.logits(model.input_vectors(ids))[0, -1, model.usable_ids]
        assert told["id"] == model.usable_ids[int(logits.argmax())]
        top = logits.topk(2).values
        assert told["margin"] == pytest.approx(float(top[0] - top[1]), abs=1e-4)


def test_unreachable(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "builtin:verse", "--unreachable", "--json"))
    assert found["shares"] is None
    part = found["unreachable"]
    assert sum(part["counts"].values()) == found["vocab"]
    assert set(part["share_removed"]) == {"10", "100", "1000"}
    assert "reachable" in run(capsys, "builtin:verse", "--unreachable")


def test_rare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "a text.txt"
    file.write_text("O my love is like a red red rose. " * 20)
    words = ("builtin:verse", "--rare", "2", "--text", str(file))
    found = json.loads(run(capsys, *words, "--json"))
    assert found["shares"] is None
    part = found["rare"]
    assert [mean["name"] for mean in part["means"]] == ["uniform", "self", "text:a text.txt"]
    assert [ratio["text"] for ratio in part["ratios"]] == ["self", "text:a text.txt"]
    for mean in part["means"]:
        assert mean["draws"] == 2
        for limit in mean["limits"].values():
            assert limit["value"] == pytest.approx(limit["log_packing"] / -mean["value"])
    out = str(CellsResults.model_validate(found))
    assert max(map(len, out.splitlines())) <= 90
    assert "predicted slope of self over uniform tokens" in out
    assert str(tmp_path) not in out


def test_an_empty_text_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "empty.txt"
    file.write_text("")
    assert "which has none" in run(capsys, "builtin:verse", "--rare", "4", "--text", str(file), code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("builtin:random", "--rare", "100000"), "from 2 to"),
        (("builtin:random", "--rare", "1"), "from 2 to"),
        (("builtin:random", "--text", "some.txt"), "--rare with --text"),
        (("builtin:verse", "--rare", "4", "--text", "no such.txt"), "check the path"),
        (("builtin:random", "--map"), "--map"),
        (("builtin:random", "--measure", "box"), "support missing"),
        (("builtin:random", "--measure", "ball"), "support missing"),
        (("builtin:random", "--measure", "sphere"), "gaussian, ellipsoid, ball, box, empirical"),
        (("builtin:random", "--convention", "voronoi", "--samples", "9"), "nearest-row"),
        (("builtin:random", "--samples", "0"), "--samples of at least 1"),
        (("builtin:random", "--support", "x"), "--measure ball or box"),
        (("builtin:random", "--measure", "box", "--support", "none"), "no file"),
        (("builtin:random", "--prompts", "random"), "--measure empirical"),
        (("builtin:random", "--measure", "empirical", "--prompts", "nonsense"), "nonsense"),
        (("builtin:random", "--seed", "-1"), "--seed of at least 0"),
        (("builtin:random", "--map", "a", "b", "c"), "tokenizer"),
        (("builtin:verse", "--map", "a", "b"), "three texts"),
        (("builtin:verse", "--map", "a", "b", ""), "which has none"),
        (("builtin:verse", "--map", "a", "a", "b"), "one line"),
        (("builtin:verse", "--map", "a", "b", "c" * 5000), "tokens"),
    ],
)
def test_refusals_are_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    err = run(capsys, *words, code=2)
    assert said in err
    assert err.startswith("lmreach: ")
    assert len(err.splitlines()) == 1


def test_a_support_of_another_model_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "s.safetensors")
    with pytest.raises(SystemExit):
        main(["support", "builtin:random", "--positions", "200", "--prompt-tokens", "8", "--out", file])
    capsys.readouterr()
    err = run(capsys, "builtin:verse", "--measure", "box", "--support", file, code=2)
    assert "one of width 64" in err


@pytest.mark.parametrize(("value", "said"), [(0.0, "zero"), (float("nan"), "finite")])
def test_a_broken_head_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, value: float, said: str
) -> None:
    model = tiny("llama")
    with torch.no_grad():
        model.lm_head.weight.fill_(value)
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    capsys.readouterr()
    err = run(capsys, str(tmp_path), "--samples", "10", code=2)
    assert said in err
    assert len(err.splitlines()) == 1
