"""Reach against bits per coordinate, free coordinates and m, from studies that hold vectors to sets."""

import csv
import io
import math
from dataclasses import replace

import pytest

from lmreach.config.within import parse_within
from lmreach.report.compare.axes import AXES, axes_figures, strands
from lmreach.report.compare.export import table_text
from lmreach.report.compare.figures import stored_figures
from lmreach.report.compare.page import comparison_page
from lmreach.report.compare.stored import Stored, stored_of
from lmreach.report.compare.words import headline
from lmreach.report.kit.drawing import svg
from lmreach.report.kit.format import hundredths
from lmreach.results.base import Interval
from lmreach.results.compare import Comparison
from lmreach.runs.compare.compare import compare

from .. import sample

BITS = {"sign": 1, "int4": 4, "subspace:64+int4": 1, "": 32}


def held(within: str):
    results = sample.study()
    entries = tuple(
        one.model_copy(update={"within": within, "bits_vectors": int(one.m * sample.WIDTH * BITS[within])})
        for one in results.accessibility
        if one.target == "random" and one.m in (2, 4)
    )
    return results.model_copy(update={"accessibility": entries})


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(*map(held, BITS))


def test_studies_of_one_model_are_named_by_their_sets(compared: Comparison) -> None:
    model = sample.study().model.name
    assert [one.study for one in compared.entries] == [
        f"{model} within {within or 'any float32'}" for within in BITS
    ]
    assert "what vectors are held to" in [one.what for one in compared.warnings]


def test_three_figures_where_sets_differ_and_none_where_they_do_not(compared: Comparison) -> None:
    assert [one.name for one in stored_figures(compared)] == ["stored-bits", "stored-free", "stored-m"]
    assert 'id="figure-stored-free"' in comparison_page(compared)
    assert stored_figures(compare(held("sign"), held("sign"))) == []


def test_the_headline_says_which_part_of_the_bits_comes_back(compared: Comparison) -> None:
    said = next(one for one in headline(compared) if one.startswith("Of the bits that 2 vectors store"))
    n50 = next(one.n50.value for one in compared.entries[0].conditions if one.m == 2)
    assert n50 is not None
    share = hundredths(n50 * math.log2(sample.USABLE) / (2 * sample.WIDTH))
    assert f"{share} of 512 within sign" in said
    assert not any(one.startswith("Of the bits") for one in headline(compare(held("sign"), held("sign"))))


def test_what_counting_allows_is_bits_times_coordinates_times_vectors(compared: Comparison) -> None:
    found = {(one.within.text, one.m): one for one in stored_of(compared) if one.group.endswith("random")}
    token = math.log2(sample.USABLE)
    assert found["sign", 4].counted == pytest.approx(4 * sample.WIDTH / token)
    part = found["subspace:64+int4", 2]
    assert (part.free, part.bits) == (64, 4)
    assert part.counted == pytest.approx(2 * 64 * 4 / token)


def stored(within: str, bits: float, m: int, n50: float, steps: int = 300) -> Stored:
    return Stored(
        group="a model, random",
        within=parse_within(within),
        m=m,
        width=64,
        vocab=512,
        bits=bits,
        n50=Interval(value=n50, low=0.9 * n50, high=1.1 * n50),
        strings=16,
        limit=99,
        steps=steps,
    )


def test_different_steps_are_never_on_one_line() -> None:
    found = [stored("sign", 1, 1, 4), stored("int4", 4, 1, 8), stored("int8", 8, 1, 9, steps=600)]
    (bits,) = strands(AXES[0], found)
    assert [one.within.text for one in bits.points] == ["sign", "int4"]
    assert strands(AXES[1], found) == strands(AXES[2], found) == []


def test_a_line_has_one_point_a_place_and_its_exponent_is_that_of_its_points() -> None:
    formats = [("sign", 1), ("int2", 2), ("int4", 4), ("e5m2", 8), ("int8", 8)]
    found = [stored(name, bits, 1, 3 * bits**0.5) for name, bits in formats]
    (bits,) = strands(AXES[0], found)
    assert [one.within.text for one in bits.line] == ["sign", "int2", "int4", "int8"]
    assert bits.growth is not None
    assert bits.growth.exponent == pytest.approx(0.5)


def test_an_n50_without_a_value_is_an_arrow_and_no_part_of_the_line() -> None:
    below = stored("sign", 1, 1, 1).n50.model_copy(
        update={"value": None, "low": None, "high": 1.0, "verdict": "below_one"}
    )
    found = [replace(stored("sign", 1, 1, 1), n50=below), stored("int4", 4, 1, 8)]
    (figure,) = axes_figures(found)
    assert "↓" in svg(figure.wide)
    assert "below one" in figure.description


def test_the_table_holds_utilisation_with_its_interval(compared: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(table_text(compared, "csv"))))
    row = next(one for one in rows if one["within"] == "int4" and one["m"] == "4")
    share = math.log2(sample.USABLE) / (4 * sample.WIDTH * 4)
    for end in ("", "_low", "_high"):
        assert float(row[f"utilisation{end}"]) == pytest.approx(float(row[f"n50{end}"]) * share)
    assert "Utilisation" in table_text(compared, "markdown", "m")
