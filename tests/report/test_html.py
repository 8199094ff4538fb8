"""The whole page: valid, self-contained, safe with hostile text, the same number of rows as records."""

import base64
import hashlib
import json
import math
import re
import stat
from functools import partial
from itertools import pairwise

import html5lib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError, OutputError
from lmreach.report import page, render
from lmreach.report.figures import figures
from lmreach.report.study import tables, words
from lmreach.results import parse as read

from . import sample

STUDIES = {
    "known well": sample.known_well,
    "ordinary": sample.study,
    "one m": sample.one_m,
    "above the limit": lambda: sample.without_answers("above_limit"),
    "below one": lambda: sample.without_answers("below_one"),
    "no data": lambda: sample.without_answers("no_data"),
    "extreme": sample.extreme,
    "empty": sample.empty,
}
TOKENS = [
    "</script>",
    "<s>",
    "&",
    '"',
    "\n",
    "null",
    "n/a",
    "NA",
    "nan",
    "",
    ",",
    "<!--",
    "'",
    "{{ 1 }}",
    "{% x %}",
]


def parse(text):
    """Parse a page; any parse error of the HTML standard raises."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def strict_json(text):
    def refuse(word):
        raise AssertionError(f"not strict JSON: {word}")

    return json.loads(text, parse_constant=refuse)


def by_id(root, name):
    (found,) = [element for element in root.iter() if element.get("id") == name]
    return found


def text_of(element):
    return "".join(element.itertext())


def body_rows(root, table):
    return by_id(root, f"{table}-table").findall("tbody/tr")


@pytest.fixture(scope="module", params=STUDIES, ids=lambda name: name.replace(" ", "-"))
def studied(request):
    results = STUDIES[request.param]()
    text = page(results)
    return results, text, parse(text)


def test_valid_and_self_contained(studied):
    _, text, root = studied
    links = {
        value
        for element in root.iter()
        for key, value in element.attrib.items()
        if (key if isinstance(key, str) else key[-1]).split(":")[-1]
        in {"href", "src", "srcset", "action", "data"}
    }
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in text
    assert "url(http" not in text
    data = {"results-json", "format-constants"}
    scripts = [element for element in root.iter("script") if element.get("id") not in data]
    assert all(element.get("type") == "application/json" for element in map(partial(by_id, root), data))
    assert len(scripts) == 1, "one script, ours, whose hash the page's policy names"
    digest = base64.b64encode(hashlib.sha256(text_of(scripts[0]).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert not [key for element in root.iter() for key in element.attrib if str(key).startswith("on")]


def test_ids_are_unique_and_every_inner_link_has_its_place(studied):
    root = studied[2]
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    used = {element.get("href")[1:] for element in root.iter("a") if element.get("href").startswith("#")}
    used |= {name for element in root.iter() for name in (element.get("aria-labelledby") or "").split()}
    assert used <= set(ids)


def test_headings_in_order_and_tables_described(studied):
    root = studied[2]
    levels = [int(element.tag[1]) for element in root.iter() if element.tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    for table in root.iter("table"):
        assert text_of(table.find("caption")).strip()
        assert {head.get("scope") for head in table.iter("th")} == {"col", "row"}
    for drawn in root.iter("{http://www.w3.org/2000/svg}svg"):
        assert drawn.get("role") == "img"
        assert [text_of(by_id(root, name)) for name in drawn.get("aria-labelledby").split()]


def test_the_results_are_in_the_page_once(studied):
    results, _, root = studied
    written = results.model_dump(mode="json")
    assert strict_json(text_of(by_id(root, "results-json"))) == written
    assert read(written) == results


def test_as_many_rows_as_records(studied):
    results, _, root = studied
    shown = {
        "limits": results.limits,
        "measured": results.accessibility,
        "slopes": results.slopes,
        "examples": results.examples,
    }
    for table, records in shown.items():
        if records:
            assert len(body_rows(root, table)) == len(records)


def test_sections_without_data_say_so():
    text = page(sample.empty())
    for said in (
        "No figure: nothing was measured",
        "No slope was estimated",
        "No accessibility curve",
        "No limit was computed",
        "Nothing was measured in this run",
        "was not measured in this run",
        "No example was recorded",
        "Nothing was left out",
    ):
        assert said in text


def test_what_was_left_out_and_interruption_are_shown():
    results = sample.empty()
    assert "This run was interrupted" not in page(results)
    left = [{"what": "self targets", "why": "the budget of 300 s was spent"}]
    results = sample.changed(results, {"not_done": left, "provenance.interrupted": True})
    assert "the budget of 300 s was spent" in page(results)
    assert "This run was interrupted" in page(results)


def test_the_notes_a_reader_needs():
    text = page(sample.study())
    assert words.BALL_NOTE in text
    assert "1,024 rows, 1,000 usable; V = 1,000 (usable ids) entered C" in text
    assert "no start token" in text
    assert "arXiv 2605.22223" in text
    assert "lmreach verify RUN" in text
    assert "compress" not in text.lower()


def hostile(token):
    """Put one token everywhere a text can stand."""
    example = {"target": token, "m": 1, "key": token, "reach": 1, "text": token, "emitted": token}
    return sample.changed(
        sample.one_m(),
        {
            "model.name": f"model {token}",
            "model.notes": [token],
            "not_done": [{"what": token, "why": token}],
            "examples": [example] * 3,
            "limits.1.name": token,
            "limits.1.note": token,
            "limits.1.source": token,
            "accessibility.1.target": token,
            "accessibility.1.outcomes": {token: 3},
            "provenance.command": token,
            "config": {token: token},
        },
    )


def test_tokens_are_shown_literally_one_row_each():
    examples = [
        {"target": "ids", "m": 1, "key": "k", "reach": 1, "text": token, "emitted": token} for token in TOKENS
    ]
    results = sample.changed(sample.empty(), {"examples": examples})
    root = parse(page(results))
    rows = body_rows(root, "examples")
    assert [[text_of(code) for code in row.iter("code")] for row in rows] == [
        [token, token] for token in TOKENS
    ]
    assert read(strict_json(text_of(by_id(root, "results-json")))) == results


def test_hostile_text_in_every_place_is_never_markup():
    results = hostile(" ".join(TOKENS))
    root = parse(page(results))
    assert _markup(root) == _markup(parse(page(hostile("x"))))
    assert read(strict_json(text_of(by_id(root, "results-json")))) == results


def _markup(root):
    """Return the elements of a page, without figures and marks of special characters: these may differ."""
    main = [element for element in root.iter() if isinstance(element.tag, str) and "svg" not in element.tag]
    return [element.tag for element in main if element.get("class") not in {"newline", "tab", "escape"}]


def test_text_that_html_cannot_hold_is_written_out(tmp_path):
    path = render(hostile("\x00 \ud83d \u202e \r\n \x1b[0m \ufffe"), tmp_path)
    shown = text_of(parse(path.read_text(encoding="utf-8")))
    assert "\\x00 \\ud83d \\u202e \\x0d↵ \\x1b[0m \\ufffe" in shown


def _leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for key, item in items for leaf in _leaves(item, (*path, str(key)))]
    return found or [".".join(path)]


LEAVES = _leaves(sample.one_m().model_dump(mode="json"))
ODD_VALUES = [None, 0, 0.0, -1.0, 1e300, 10**30, math.nan, math.inf]
ODD = st.sampled_from(ODD_VALUES)


def odd_results(changes):
    """Return the changed results, or None where the models refuse them."""
    try:
        return sample.changed(sample.one_m(), changes)
    except InputError:
        return None


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(LEAVES), ODD, min_size=1, max_size=3))
def test_odd_values_are_refused_or_never_stop_words_and_tables(changes):
    results = odd_results(changes)
    if results is None:
        return
    said = words.headline(results)
    for make in (
        tables.limits,
        tables.slopes,
        tables.measured,
        tables.ratios,
        tables.model,
        tables.provenance,
    ):
        said += [cell.text for row in make(results).rows for cell in row.cells]
    assert all(type(text) is str for text in said)
    assert not any(re.search(r"\b(nan|inf)\b", text) for text in said)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_no_results(odd):
    with pytest.raises(InputError, match="finite number"):
        sample.changed(sample.one_m(), {"limits.0.tokens_per_vector": odd})


@pytest.mark.parametrize("odd", ODD_VALUES)
@pytest.mark.parametrize("field", ["limit", "n50.value", "curve.n.0", "curve.share.1"])
def test_odd_values_never_stop_the_figures(field, odd):
    results = odd_results({f"accessibility.0.{field}": odd})
    for figure in figures(results) if results is not None else ():
        drawn = figure.wide.to_json()
        assert "NaN" not in drawn
        assert "Infinity" not in drawn


def test_written_whole_or_not_at_all(tmp_path):
    path = render(sample.empty(), tmp_path / "run")
    assert path == tmp_path / "run" / "report.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert render(sample.empty(), tmp_path / "other.html") == tmp_path / "other.html"
    assert sorted(item.name for item in (tmp_path / "run").iterdir()) == ["report.html"]


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match="a place that can be written"):
        render(sample.empty(), tmp_path / "taken")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OutputError):
        render(sample.empty(), tmp_path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["report.html", "taken"]


def test_the_same_results_give_the_same_page():
    assert page(sample.one_m()) == page(sample.one_m())
