"""Comparisons hold what the studies hold, and say where those differ."""

import csv
import io
import math
from pathlib import Path

import pytest

from lmreach.errors import InputError
from lmreach.report.compare.export import table_text
from lmreach.results import StudyResults, open_results
from lmreach.results.compare import Comparison
from lmreach.runs.compare.compare import compare

from ...report import sample

RECORDED = Path(__file__).parents[3] / "docs" / "results"
NAMES = ("gemma-3-270m", "smollm2-135m", "verse")


@pytest.fixture(scope="module")
def recorded() -> Comparison:
    return compare(*(RECORDED / name for name in NAMES), published=["gemma-3-270m", "pythia-6.9b"])


def serious(compared: Comparison) -> dict[str, dict[str, str]]:
    return {one.what: one.values for one in compared.warnings}


def test_every_number_is_the_one_of_its_study(recorded: Comparison) -> None:
    entries = iter(recorded.measured)
    for name in NAMES:
        study = open_results(RECORDED / name / "results.json")
        assert isinstance(study, StudyResults)
        for line in study.slopes:
            entry = next(entries)
            assert (entry.study, entry.target, entry.slope) == (study.model.name, line.target, line.slope)
            assert entry.m == line.m
            assert entry.conditions == tuple(one for one in study.accessibility if one.target == line.target)
            ratios = {one.limit: one.ratio for one in line.ratios}
            for premise in ("hidden", "input", "format"):
                limit = next(
                    one for one in study.limits if one.premise == premise and one.tightest_of_premise
                )
                beside = getattr(entry, premise)
                assert (beside.name, beside.tokens_per_vector) == (limit.name, limit.tokens_per_vector)
                assert beside.ratio == ratios[limit.name]
                assert beside.ratio.value == pytest.approx(limit.tokens_per_vector / line.slope.value)
    assert next(entries, None) is None


def test_bits_are_counted_as_those_of_n50(recorded: Comparison) -> None:
    # n50 of one condition carries n50 log2(V) / (m d) bits per coordinate; the slope replaces n50 / m.
    for entry in recorded.measured:
        for one in entry.conditions:
            assert one.bits_per_coordinate is not None
            assert one.tokens_per_vector is not None
            assert entry.slope.value is not None
            share = one.bits_per_coordinate / one.tokens_per_vector
            assert entry.bits_per_coordinate == pytest.approx(share * entry.slope.value)


def test_published_slopes_are_marked_and_have_no_interval(recorded: Comparison) -> None:
    published = [entry for entry in recorded.entries if entry.origin == "published"]
    assert [(one.study, one.target, one.slope.value) for one in published] == [
        ("gemma-3-270m (published)", "random words", 22.97),
        ("gemma-3-270m (published)", "natural text", 44.54),
        ("pythia-6.9b (published)", "listed by the paper", 283.55),
    ]
    for one in published:
        assert (one.slope.low, one.slope.high, one.conditions) == (None, None, ())
        assert one.ball is not None
        assert one.ball.tokens_per_vector == pytest.approx(one.width * math.log(4097) / math.log(one.vocab))


def test_what_differs_in_the_recorded_runs(recorded: Comparison) -> None:
    found = serious(recorded)
    assert found["steps per string"]["SmolLM2-135M-Instruct.Q4_1.gguf"] == "200 of at most 200"
    assert found["steps per string"]["gemma-3-270m (published)"] == "at most 3000"
    assert found["protocol"]["builtin:verse"] == "frontier"
    assert found["strings that still grew"].keys() == {
        "gemma-3-270m-q4_k_m.gguf, random",
        "SmolLM2-135M-Instruct.Q4_1.gguf, random",
    }


def test_a_study_beside_itself_differs_in_nothing() -> None:
    study = sample.study()
    compared = compare(study, study)
    assert serious(compared) == {}
    assert {one.study for one in compared.entries} == {f"{study.model.name} #1", f"{study.model.name} #2"}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"config": {"cram": {"max_steps": 7}}}, "steps per string"),
        ({"config": {"cram": {"lr": 0.125}}}, "settings of the search"),
        ({"config": {"limit_dtype": "bfloat16"}}, "format behind eps"),
        ({"accessibility.0.protocol": "fixed"}, "protocol"),
        ({"accessibility.0.steps": 10**6}, "steps per string"),
        ({"accessibility.0.target": "words"}, "targets"),
    ],
)
def test_what_moves_the_numbers_is_a_warning(changes: dict[str, object], what: str) -> None:
    study = sample.study()
    compared = compare(study, sample.changed(study, changes))
    assert what in serious(compared)


def test_how_much_was_run_is_no_warning() -> None:
    study = sample.study()
    cram = {"max_steps": 7, "strings": 3, "seed": 1, "batch_size": 2}
    one, other = (
        sample.changed(study, {"config": {"cram": cram | more}})
        for more in ({}, {"strings": 9, "seed": 5, "batch_size": 64})
    )
    assert serious(compare(one, other)) == {}


def test_targets_of_one_name_and_other_content_are_found() -> None:
    study = sample.study()
    files = [
        sample.changed(study, {"provenance.target_files": {"text:a.txt": digest * 64}}) for digest in "ab"
    ]
    assert "text of text:a.txt" in serious(compare(*files))
    assert serious(compare(files[0], files[0])) == {}


def test_runs_of_one_model_take_the_names_of_their_folders(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(sample.study().model_dump_json(), encoding="utf-8")
    compared = compare(tmp_path / "first", str(tmp_path / "second" / "results.json"))
    model = sample.study().model.name
    assert [one.study for one in compared.entries[::2]] == [f"{model} (first)", f"{model} (second)"]


def test_csv_holds_every_number_in_full(recorded: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(table_text(recorded, "csv"))))
    conditions = [(entry, one) for entry in recorded.measured for one in entry.conditions]
    assert len(rows) == len(conditions) + 3
    for row, (entry, one) in zip(rows, conditions, strict=False):
        assert (row["study"], row["target"], int(row["m"])) == (entry.study, entry.target, one.m)
        assert float(row["n50"]) == one.n50.value
        assert row["n50_low"] == ("" if one.n50.low is None else str(one.n50.low))
        assert float(row["slope"]) == entry.slope.value
        assert float(row["limit_hidden"]) == entry.hidden.tokens_per_vector
    assert {(row["origin"], row["m"], row["n50"]) for row in rows[len(conditions) :]} == {
        ("published", "", "")
    }


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="at least one RUN"):
        compare()
    with pytest.raises(InputError, match=r"a study; got .*census"):
        compare(RECORDED / "census" / "smollm2-one-token.json")
    with pytest.raises(InputError, match="nothing was measured"):
        compare(sample.empty())
    with pytest.raises(InputError, match="pythia-160m"):
        compare(sample.study(), published=["gpt-9"])
