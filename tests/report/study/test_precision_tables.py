"""Tables of information, falls and precision, and the sentence about what is not known."""

from lmreach.report.html import page
from lmreach.report.study import precision_tables as told
from tests.report import sample


def test_every_number_of_the_records_stands_in_the_tables() -> None:
    results = sample.known_well()
    for table, expected in ((told.information(results), "91.5"), (told.falls(results), "5.00 to 7.50")):
        assert len(table.rows) == len(results.accessibility)
        text = " ".join(f"{cell.text} {cell.small}" for cell in table.rows[0].cells)
        assert expected in text
    assert "compression" not in told.information(results).source


def test_what_is_not_known_is_said() -> None:
    results = sample.known_well()
    said = told.unknown_words(results)
    assert said == (
        "1 of the 3 numbers is known as well as was asked (an interval of at most 10 % of the value): the "
        "widest interval is 23 % of its value, and 1 of the intervals has an open end."
    )
    shown = [[cell.text for cell in row.cells] for row in told.precision(results).rows]
    assert shown[1] == ["n50, self, m = 1", "an end is open", "no"]
    known = results.model_dump(mode="json")["precision"]["numbers"][2:]
    results = sample.changed(results, {"precision.numbers": known})
    assert told.unknown_words(results).startswith("Every n50 and slope is known")


def test_the_page_holds_them_and_older_results_go_without() -> None:
    text = page(sample.known_well())
    for part in ("information-table", "falls-table", "precision-table", "known as well as was asked"):
        assert part in text
    assert told.unknown_words(sample.study()) == ""
    assert "precision-table" not in page(sample.study())
