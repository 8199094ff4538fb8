"""Measurements within sets: recorded once, gone on with, and the page is what the records say."""

import argparse
from pathlib import Path

import pytest
from benchmarks import cram_formats, formats_figure
from benchmarks.formats_record import Record, read
from benchmarks.truth_record import Truth, chance_of_any, read_truth

from lmreach.errors import InputError, OutputError
from lmreach.report.kit.drawing import svg
from lmreach.results.base import Share

ROOT = Path(__file__).parents[1]


def asked(out: Path, **changes: object) -> argparse.Namespace:
    words = {
        "model": "builtin:random",
        "within": ["sign", "int2"],
        "m": [1],
        "methods": [cram_formats.USUAL],
        "targets": "random",
        "strings": 2,
        "start_scale": 1.0,
        "max_steps": 4,
        "restarts": 1,
        "lr": None,
        "lookahead": None,
        "length": None,
        "seed": 0,
        "batch_size": None,
        "search_dtype": "float32",
        "out": out,
    }
    return argparse.Namespace(**(words | changes))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("formats") / "new" / "random.jsonl"
    cram_formats.run(asked(path))
    return path


def test_what_is_recorded_is_not_measured_again(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = recorded.read_text(encoding="utf-8")
    cram_formats.run(asked(recorded))
    assert recorded.read_text(encoding="utf-8") == before
    assert capsys.readouterr().out.count(": in random.jsonl") == 2
    first, second = read(recorded)
    assert (first.within, first.bits_per_coordinate, second.bits_per_coordinate) == ("sign", 1.0, 2.0)
    assert first.limit == pytest.approx(64 / 9)


def test_a_search_that_a_set_has_no_use_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an evenly spaced format"):
        cram_formats.run(asked(tmp_path / "x.jsonl", within=["box"], methods=["annealed"]))
    with pytest.raises(InputError, match="a method of"):
        cram_formats.run(asked(tmp_path / "x.jsonl", methods=["guessing"]))
    (tmp_path / "broken.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1 of broken\.jsonl"):
        read(tmp_path / "broken.jsonl")


def records(recorded: Path, n50s: dict[str, float]) -> list[Record]:
    (first, *_) = read(recorded)
    made = []
    for within, value in n50s.items():
        bits = {"sign": 1, "int2": 2, "int4": 4, "box": 32}[within]
        optimiser = first.asked.optimiser.model_copy(update={"within": within})
        n50 = first.n50.model_copy(
            update={"value": value, "low": 0.9 * value, "high": 1.1 * value, "verdict": "estimated"}
        )
        share = n50.model_copy(update={"value": 0.25, "low": 0.2, "high": 0.3})
        change = {"bits": 64.0 * bits, "n50": n50, "utilisation": share, "limit": 7.0 * bits}
        asked = first.asked.model_copy(update={"optimiser": optimiser})
        made.append(first.model_copy(update={"asked": asked, **change}))
    return made


def test_tables_and_figure_come_from_the_records(recorded: Path) -> None:
    found = records(recorded, {"sign": 2.0, "int2": 4.0, "int4": 8.0, "box": 9.0})
    parts = formats_figure.parts_of(found, [])
    assert (
        "| 1 | sign | 64 | 4 | 20 | 2 | 2.0 (1.8 to 2.2) | 7.0 | 3.5 | 25 % (20 % to 30 %) |"
        in parts["measured"]
    )
    assert "| 1 | box |" in parts["measured"]
    assert "bits per coordinate | builtin:random, random, m = 1, 4 steps | 3 | 1.00" in parts["exponents"]
    picture = formats_figure.picture(formats_figure.stored(found))
    assert picture is not None
    assert "Tokens reached against bits per coordinate" in svg(picture)


def test_chances_of_even_cells_are_those_of_counting() -> None:
    even = [0.25] * 4
    # 16 prompts for 16 sequences: each is missed by all with chance (1 - 1/16)^16.
    assert chance_of_any(even, 16, 2) == pytest.approx(1 - (15 / 16) ** 16)
    assert chance_of_any([1.0, 0.0], 8, 3) == pytest.approx(1 / 8)


def test_the_length_of_one_half_is_read_between_lengths() -> None:
    assert formats_figure.crossing([1.0, 0.75, 0.25]) == "2.50"
    assert formats_figure.crossing([1.0, 0.75]) == "above 2"
    one = Truth(
        model="tiny:a",
        within="sign",
        m=1,
        bits=8,
        n=1,
        limit=2.67,
        reachable=6,
        sequences=8,
        counted=1.0,
        by_states=0.9,
        by_first_tokens=0.8,
        median_prompts=9.5,
        restarts=1,
        max_steps=150,
        found=Share(count=6, of=6, share=1.0, low=0.54, high=1.0),
    )
    row = "| a | 1 | 1 | 6 of 8 | 75 % | 100 % | 90 % | 80 % | 9.50 | 6 of 6: 1.00 (0.54 to 1.00) |"
    assert row in formats_figure.truth([one])


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(OutputError, match="generated: measured"):
        formats_figure.filled("nothing", {"measured": "x"})


def test_the_page_is_what_the_records_say() -> None:
    files = sorted((ROOT / "docs/results/formats").glob("*.jsonl"))
    truths = ROOT / formats_figure.TRUTH
    text = (ROOT / formats_figure.PAGE).read_text(encoding="utf-8")
    found = formats_figure.read_all(files)
    parts = formats_figure.parts_of(found, read_truth(truths) if truths.exists() else [])
    assert formats_figure.filled(text, parts) == text, "run python -m benchmarks.formats_figure"
