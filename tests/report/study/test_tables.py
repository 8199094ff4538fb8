"""The tables: one row per record, both ratios, nothing dropped."""

import math

import pytest

from lmreach.report.study import tables
from lmreach.results.run import Provenance
from lmreach.results.study import Support

from .. import sample

ALL = (
    tables.limits,
    tables.slopes,
    tables.measured,
    tables.ratios,
    tables.support,
    tables.model,
    tables.provenance,
    tables.config,
    tables.examples,
)


def column(table, head, row=0):
    (index,) = [i for i, column in enumerate(table.columns) if column.head == head]
    return table.rows[row].cells[index]


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("results", [sample.study(), sample.empty(), sample.without_answers("no_data")])
def test_every_row_has_every_column(make, results):
    table = make(results)
    assert all(len(row.cells) == len(table.columns) for row in table.rows)
    assert table.source


def test_one_row_per_record():
    results = sample.study()
    assert len(tables.limits(results).rows) == len(results.limits)
    assert len(tables.measured(results).rows) == len(results.accessibility)
    assert len(tables.slopes(results).rows) == len(results.slopes)
    assert len(tables.examples(results).rows) == len(results.examples)
    assert len(tables.provenance(results).rows) == len(Provenance.model_fields) - 1, "no files"
    assert len(tables.support(results).rows) == len(Support.model_fields)


def test_limits_are_ordered_and_the_tightest_of_each_premise_is_marked():
    rows = tables.limits(sample.study()).rows
    assert [row.cells[1].text for row in rows] == ["hidden"] * 3 + ["input"] * 2 + ["format"]
    assert [row.cells[0].text for row in rows if row.strong] == [
        "norm ellipsoid",
        "input box",
        "float32 grid",
    ]


def test_tokens_per_vector_and_bits_stand_side_by_side():
    # 1568 tokens of 128,256 ids are log2(128256) * 1568 = 26,607 bits; 4096 numbers of 16 bits hold 65,536.
    ids = 1568 * math.log2(128_256)
    change = {"tokens_per_vector": 1568.0, "bits_ids": ids, "bits_vectors": 4096 * 16, "n50.value": 1568.0}
    results = sample.changed(
        sample.study(), {f"accessibility.0.{name}": value for name, value in change.items()}
    )
    table = tables.measured(results)
    assert column(table, "n50 / m").text == "1,568"
    assert column(table, "n50 as ids").text == "26,607"
    assert column(table, "Vectors").text == "65,536"
    assert column(table, "Ids / vectors").text == "0.406"


def test_what_differs_between_rows_is_said_in_them():
    results = sample.changed(
        sample.study(), {"accessibility.0.bos": "before", "accessibility.0.suffix": "Say it:"}
    )
    table = tables.measured(results)
    told = "frontier, start token before, suffix “Say it:”, length limit 128 tokens"
    assert table.rows[0].cells[0].small == told
    assert table.rows[1].cells[0].small == "frontier, no start token, length limit 128 tokens"
    assert not table.source.startswith("Protocol")


def test_null_facts_say_what_null_means():
    rows = {row.cells[0].text: row.cells[1].text for row in tables.model(sample.study()).rows}
    assert rows["Soft cap on logits"] == "none"
    assert rows["Revision"] == "n/a"
    assert rows["Vocabulary (ids)"].startswith("1,024 rows, 1,000 usable")


def test_long_lists_are_cut_with_their_length():
    results = sample.changed(sample.study(), {"model.special_ids": list(range(100))})
    rows = {row.cells[0].text: row.cells[1].text for row in tables.model(results).rows}
    assert rows["Special ids"].endswith("23, and 76 more")
