"""Numbers and tokens as text."""

import math

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.report.kit.format import duration, interval, literal, number, percent, plain, power, prose

NASTY = [
    "</script>",
    "<s>",
    "&",
    '"',
    "'",
    "\n",
    "\t",
    "null",
    "n/a",
    "NA",
    "nan",
    "",
    ",",
    "<!--",
    "]]>",
    "&amp;",
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (math.nan, "n/a"),
        (math.inf, "infinity"),
        (-math.inf, "-infinity"),
        (True, "yes"),
        (0.0, "0"),
        (5.4, "5.40"),
        (9.996, "10.00"),
        (590.091, "590"),
        (6388.23189, "6,388"),
        (262144, "262,144"),
        (0.406, "0.406"),
        (0.00288, "0.00288"),
        (1.2345e-7, "1.23e-7"),
        (1.2345e12, "1.23e12"),
        (-0.41, "-0.410"),
        ("text", "text"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@given(st.floats(min_value=1e-4, max_value=1e8))
def test_number_is_within_half_of_its_last_digit(value):
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=5.1e-3)


def test_prose_keeps_the_whole_part():
    assert [prose(value) for value in (5.37, 61.3, 1234.5, 0.188)] == ["5.4", "61", "1,234", "0.19"]


def test_interval_names_an_end_that_is_not_known():
    assert interval(4.6, 6.3) == "4.60 to 6.30"
    assert interval(4.6, None) == "from 4.60, upper end not known"
    assert interval(math.nan, 6.3) == "up to 6.30, lower end not known"
    assert interval(None, math.inf) == "no interval"


def test_duration_and_percent():
    assert duration(12.34) == "12.3 s"
    assert duration(231.0) == "3\u00a0min\u00a051\u00a0s"
    assert duration(7260) == "2\u00a0h\u00a01\u00a0min"
    assert duration(None) == "n/a"
    assert percent(0.95) == "95 %"


def test_power_never_forms_the_number():
    assert power(-1609.4379) == "10⁻⁶⁹⁹ (e⁻¹⁶⁰⁹)"
    assert power(-3e6).startswith("10⁻¹³⁰²⁸⁸³")


@pytest.mark.parametrize("token", NASTY)
def test_a_token_comes_back_from_the_page_unchanged(token):
    cell = _parse(literal(token))
    assert "".join(cell.itertext()) == token
    assert {child.tag for child in cell} <= {"span"}


@given(st.text())
def test_any_text_is_shown_without_markup_and_nothing_is_lost(text):
    shown = "".join(_parse(literal(text)).itertext())
    assert shown == "".join(char if char in "\n\t" else plain(char) for char in text)


@pytest.mark.parametrize(
    ("char", "shown"), [("\x00", "\\x00"), ("\r", "\\x0d"), ("\ud83d", "\\ud83d"), ("\u202e", "\\u202e")]
)
def test_what_html_cannot_hold_is_written_out(char, shown):
    assert plain(char) == shown
    assert "".join(_parse(literal(char)).itertext()) == shown


def test_plain_is_one_line():
    assert plain("a\nb\tc") == "a↵b→c"


def _parse(markup):
    fragment = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parseFragment(str(markup))
    (cell,) = list(fragment)
    assert cell.tag == "code"
    return cell
