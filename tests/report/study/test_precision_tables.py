"""Tables of information, falls and precision, and the sentence about what is not known."""

import copy

from lmreach.report.html import page
from lmreach.report.study import precision_tables as told
from tests.report import sample

INFORMATION = {
    "ce_without_bits": 93.0,
    "ce_with_bits": 1.5,
    "bits_per_vector": 91.5,
    "bits_per_coordinate": 0.357,
    "bits_per_stored_bit": 0.0112,
    "tokens_gained": 8.4,
}
FALL = {"n90": 5.1, "n10": 11.2, "width": 6.1, "low": 5.0, "high": 7.5, "relative": 0.7, "predicted": 0.32}


def told_study() -> dict:
    results = copy.deepcopy(sample.study())
    for record in results["results"]["accessibility"]:
        record["information"], record["cliff"] = dict(INFORMATION), {**FALL, "factor_per_token": 1.3}
    numbers = [
        {"what": "n50", "target": "random", "m": 1, "relative_width": 0.23, "known": False},
        {"what": "n50", "target": "self", "m": 1, "relative_width": None, "known": False},
        {"what": "slope", "target": "random", "m": None, "relative_width": 0.08, "known": True},
    ]
    results["results"]["precision"] = {"wanted": 0.1, "numbers": numbers, "ended_early": []}
    for slope in results["results"]["slopes"]:
        slope |= {"covariance": [0.01, 0.2, -0.02], "through_origin": [2.7, 2.5, 2.9]}
        slope |= {"exponent": [0.98, 0.9, 1.05], "shape_words": "n50 grows as m to the power 0.98"}
    return results


def test_every_number_of_the_records_stands_in_the_tables() -> None:
    results = told_study()
    for table, expected in ((told.information(results), "91.5"), (told.falls(results), "5.00 to 7.50")):
        assert len(table.rows) == len(results["results"]["accessibility"])
        text = " ".join(f"{cell.text} {cell.small}" for cell in table.rows[0].cells)
        assert expected in text
    assert "compression" not in told.information(results).source


def test_what_is_not_known_is_said() -> None:
    results = told_study()
    said = told.unknown_words(results)
    assert said == (
        "Not known to the wanted 10 % (interval over value): 2 of 3 numbers, widest 23 %, 1 with an open end."
    )
    shown = [[cell.text for cell in row.cells] for row in told.precision(results).rows]
    assert shown[1] == ["n50, self, m = 1", "an end is open", "no"]
    results["results"]["precision"]["numbers"] = results["results"]["precision"]["numbers"][2:]
    assert told.unknown_words(results).startswith("Every n50 and slope is known")


def test_the_page_holds_them_and_older_results_go_without() -> None:
    text = page(told_study())
    for part in ("information-table", "falls-table", "precision-table", "Not known to the wanted 10"):
        assert part in text
    assert told.unknown_words(sample.study()) == ""
    assert "precision-table" not in page(sample.study())
