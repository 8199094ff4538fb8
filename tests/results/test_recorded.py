"""Every recorded results.json opens, says the same numbers as before, and comes back unchanged."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmreach.errors import InputError, OutputError
from lmreach.results import CensusResults, CopyResults, StudyResults, open_results, parse

ROOT = Path(__file__).parents[2] / "docs" / "results"
EVERY = sorted(ROOT.rglob("*.json"))
# Made by scripts, not by runs: counts of many models, and answers of single commands.
NO_RUNS = {
    "exact.json",
    "gemma-3-270m-rare.json",
    "gemma-3-270m-reachability.json",
    "smollm2-135m-reachability.json",
}
RUNS = [path for path in EVERY if path.name not in NO_RUNS]

# What schema 2 no longer holds: said elsewhere in the file, or read by nobody.
LEFT_BEHIND = {
    "words",  # of a fall and of other layouts' fits: their numbers stand in a table
    "bits_gained",  # bits without the vectors minus with them
    "most_bits_per_coordinate",
    "positions",  # of a prompt with its answer
    "entropy_nats",  # the bits stand beside it
    "log_all_prompts_nats",  # m ln V
    "model_name",  # model.name
    "n50_low",  # n50 of an accessibility entry
    "n50_high",
    "relative_width",  # of an interval, from its ends
    "n90",  # of the fit of another prompt layout, of which n50 is compared
    "n10",
    "width",
    "lapse",
    "first_wrong",  # one entry a string; quartiles stand beside it
}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Walk what a JSON value holds, each leaf with the key it stands under."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, name)
    else:
        yield name, value


def ids(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_records_are_there() -> None:
    assert len(RUNS) == 16
    assert len(EVERY) == 20


@pytest.mark.parametrize("path", RUNS, ids=ids)
def test_a_recorded_run_opens_and_comes_back(path: Path) -> None:
    results = open_results(path)
    kinds = {"census": CensusResults, "copying": CopyResults}
    assert type(results) is kinds.get(path.parent.name, StudyResults)
    written = json.loads(json.dumps(results.model_dump(mode="json"), allow_nan=False))
    assert parse(written) == results


@pytest.mark.parametrize("path", RUNS, ids=ids)
def test_no_number_changes(path: Path) -> None:
    raw = json.loads(path.read_text(encoding="utf-8"))
    new = list(leaves(open_results(path).model_dump(mode="json")))
    held = {value for _, value in new if isinstance(value, int | float | str)}
    lost = {name for name, value in leaves(raw) if value is not None and value not in held}
    assert lost <= LEFT_BEHIND
    numbers = {value for _, value in leaves(raw) if isinstance(value, int | float)}
    made_up = {v for name, v in new if isinstance(v, int | float) and v not in numbers} - {2}
    assert not made_up


def test_n50_has_one_shape() -> None:
    study = open_results(ROOT / "verse" / "results.json")
    assert isinstance(study, StudyResults)
    raw = json.loads((ROOT / "verse" / "results.json").read_text(encoding="utf-8"))["results"]
    for entry, old in zip(study.accessibility, raw["accessibility"], strict=True):
        assert entry.n50.value == old["n50"]["value"]
        assert entry.n50.relative_width == old["relative_width"]
    for slope, old in zip(study.slopes, raw["slopes"], strict=True):
        assert (slope.slope.value, slope.slope.low, slope.slope.high) == (
            old["slope"],
            old["low"],
            old["high"],
        )
        assert slope.slope.relative_width == old["relative_width"]
        # The slope's points are the entries of its target.
        own = {entry.m: entry.n50.value for entry in study.accessibility if entry.target == slope.target}
        assert [own[m] for m in slope.m] == old["n50"]
    path = ROOT / "copying" / "quick-rope.json"
    copied, old = (
        open_results(path),
        json.loads(path.read_text(encoding="utf-8"))["results"]["copying"]["n50"],
    )
    assert isinstance(copied, CopyResults)
    n50 = copied.copying.n50
    assert [n50.value, n50.low, n50.high] == old["n50"]
    assert n50.words == old["words"]
    assert math.isclose(n50.relative_width or 0, (old["n50"][2] - old["n50"][1]) / old["n50"][0])


@pytest.mark.parametrize("name", sorted(NO_RUNS))
def test_what_no_run_wrote_is_refused_in_one_line(name: str) -> None:
    path = next(path for path in EVERY if path.name == name)
    with pytest.raises(InputError, match="results of schema 1 to 2") as raised:
        open_results(path)
    assert "\n" not in str(raised.value)


BAD: dict[str, Any] = {
    "later": ({"schema_version": 3, "kind": "study"}, "schema 3"),
    "no dict": ([1, 2], "list"),
    "empty": ({}, "nothing"),
    "no model": ({"schema": 1, "kind": "study", "results": {}}, "'model'"),
    "another kind": ({"schema": 1, "kind": "poem", "results": {}}, "'poem'"),
    "cut": ({"schema_version": 2, "kind": "census"}, "field required"),
    "no kind": ({"schema_version": 2}, "kind"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_said_in_one_line(case: str) -> None:
    raw, words = BAD[case]
    with pytest.raises(InputError, match=words) as raised:
        parse(raw)
    assert "\n" not in str(raised.value)


def test_a_number_that_is_none_is_refused() -> None:
    raw = open_results(RUNS[-1]).model_dump(mode="json")
    raw["limits"][0]["tokens_per_vector"] = math.nan
    with pytest.raises(InputError, match=r"limits\.0\.tokens_per_vector: input should be a finite number"):
        parse(raw)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{", encoding="utf-8")
    with pytest.raises(OutputError, match=r"readable results\.json"):
        open_results(tmp_path)
