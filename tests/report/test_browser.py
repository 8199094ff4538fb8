"""The pages in a real browser: nothing loaded, nothing overflowing, everything visible, read and used."""

import json
import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lmreach.maths.bounds import limits
from lmreach.report import render
from lmreach.report.compare.page import write_comparison
from lmreach.results import AnyResults, open_results
from lmreach.results.run import SCHEMA_VERSION
from lmreach.runs.compare.compare import compare

from . import census_sample, copy_sample, every, sample

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "results"
# `npm install --no-save axe-core@4` puts it there; .ci/run does.
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = "<script>document.title='run'</script>\"'&\u202e\x00\n\t" + "long " * 40

pytestmark = pytest.mark.browser
NAMES = ("chromium", "chromium-browser", "google-chrome")


def hostile() -> AnyResults:
    """A study whose model, targets and tokens are what a page should not run, nor be torn apart by."""
    places = ("model.name", "examples.0.text", "examples.0.emitted", "cells.map.texts.0.text")
    places += ("cells.map.cells.0.text", "cells.shares.largest.0.text", "model.notes.0")
    return sample.changed(every.study(), dict.fromkeys(places, HOSTILE))


def compared(folder: Path) -> Path:
    """Write the comparison of two recorded studies and published values."""
    found = compare(*(RECORDED / name for name in ("gemma-3-270m", "verse")), published=["all"])
    return write_comparison(found, folder)[0]


def rendered(make: Callable[[], AnyResults]) -> Callable[[Path], Path]:
    return lambda folder: render(make(), folder)


PAGES = {
    "whole": rendered(every.study),
    "extreme": rendered(sample.extreme),
    "one": rendered(sample.one_m),
    "above": rendered(lambda: sample.without_answers("above_limit")),
    "below": rendered(lambda: sample.without_answers("below_one")),
    "thin": rendered(lambda: open_results(RECORDED / "verse")),
    "empty": rendered(sample.empty),
    "hostile": rendered(hostile),
    "copy": rendered(copy_sample.run),
    "census": rendered(census_sample.run),
    "compare": compared,
}
# No sandbox, as in a container; the rest keeps the browser itself from calling home.
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = f"no browser found (looked for {', '.join(NAMES)})"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=SWITCHES)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        reason = f"no axe-core in {AXE.parent}: npm install --no-save axe-core@4"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=PAGES)
def report(request, tmp_path_factory) -> Path:
    return PAGES[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module", params=[(1280, "light"), (390, "dark")], ids=["desktop", "phone"])
def opened(request, browser, report):
    """A page that is opened once for all that is looked at, and what it asked for meanwhile."""
    width, scheme = request.param
    # The policy of the page forbids other scripts; axe is one.
    around = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = around.new_page()
    seen: dict[str, list[str]] = {"requests": [], "console": []}
    page.on("request", lambda asked: seen["requests"].append(asked.url))
    page.on("console", lambda message: seen["console"].append(message.text))
    page.on("pageerror", lambda error: seen["console"].append(str(error)))
    page.goto(report.as_uri())
    page.wait_for_load_state("networkidle")
    yield page, seen, width
    around.close()


def test_only_the_file_itself_is_loaded(opened, report):
    page, seen, _ = opened
    assert [url for url in seen["requests"] if not url.startswith("data:")] == [report.as_uri()]
    assert seen["console"] == []
    assert page.title() != "run", "a text of the model was run as a script"


def test_a_study_is_at_most_six_screens(opened, request):
    page, _, width = opened
    # Every section, copying among them, is more than a minute measures; a comparison has as many as it has.
    if width == 1280 and not {"whole", "hostile", "compare"} & set(request.node.callspec.id.split("-")):
        assert page.evaluate("document.documentElement.scrollHeight") <= 6 * 800


def test_axe_finds_nothing_serious(opened, axe):
    page, _, _ = opened
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    faults = [(one["impact"], one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]
    assert [one for one in faults if one[0] in ("serious", "critical")] == []


def test_nothing_overflows_and_every_figure_is_visible(opened):
    page, _, width = opened
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for figure in page.locator("figure").all():
        boxes = [box for box in (drawn.bounding_box() for drawn in figure.locator("> svg").all()) if box]
        assert len(boxes) == 1
        assert 200 < boxes[0]["width"] <= width
        assert boxes[0]["height"] > 100


def test_no_text_of_a_figure_is_cut_off_or_covers_another(opened):
    page, _, _ = opened
    faults = page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].filter(svg => svg.getBoundingClientRect().width)
          .flatMap(svg => {
            const all = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
            const boxes = all.map(t => t.getBoundingClientRect()), frame = svg.getBoundingClientRect();
            const out = all.filter((t, i) => boxes[i].left < frame.left - 1
              || boxes[i].right > frame.right + 1
              || boxes[i].top < frame.top - 1 || boxes[i].bottom > frame.bottom + 1)
              .map(t => 'cut: ' + t.textContent);
            // Line boxes are taller than the letters: lines of one label may touch by a few pixels.
            const hit = all.flatMap((t, i) => all.slice(i + 1).filter((u, k) => {
              const a = boxes[i], b = boxes[i + 1 + k];
              return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
            }).map(u => `over: ${t.textContent} / ${u.textContent}`));
            return [...out, ...hit];
          })"""
    )
    assert faults == []


def test_text_stands_out_from_its_ground(opened):
    # WCAG AA: 4.5 to 1 for text, in both colour schemes.
    page, _, _ = opened
    ratio = page.evaluate(
        """() => {
          const light = c => { const [r, g, b] = c.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = light(getComputedStyle(document.body).backgroundColor);
          const of = c => { const l = light(c);
            return (Math.max(l, ground) + .05) / (Math.min(l, ground) + .05); };
          const shown = [...document.querySelectorAll('p, td, th, .small, .unit, figcaption, a, li')];
          const drawn = [...document.querySelectorAll('svg.only text, svg.wide text')]
            // A number on a dark disc stands on that, not on the page.
            .filter(t => !t.previousElementSibling || t.previousElementSibling.tagName !== 'circle')
            .map(t => getComputedStyle(t).fill);
          return Math.min(...shown.filter(e => !e.closest('.banner')).map(e => of(getComputedStyle(e).color)),
            ...drawn.filter(c => c.startsWith('rgb')).map(c => of(c)));
        }"""
    )
    assert ratio >= 4.5, ratio


def test_the_data_can_be_read_and_downloaded(opened, tmp_path):
    page, _, _ = opened
    inside = page.evaluate("JSON.parse(document.getElementById('results-json').textContent)")
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text()) == inside
    if waiting.value.suggested_filename == "comparison.json":
        assert len(inside["entries"]) >= 2
    else:
        assert waiting.value.suggested_filename == "results.json"
        assert inside["schema_version"] == SCHEMA_VERSION


def test_a_table_is_sorted_filtered_and_downloaded(opened, tmp_path):
    page, _, _ = opened
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    tables = page.locator(".scroll.wide > table")
    long = [table for table in tables.all() if table.locator("tbody tr").count() > 6]
    if not long:
        return
    table = long[0]
    head = table.locator("thead th").first
    before = table.locator("tbody th").all_inner_texts()
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert sorted(table.locator("tbody th").all_inner_texts()) == sorted(before)
    tools = table.locator("xpath=../following-sibling::div[1]")
    tools.locator("input").fill("no row has these words")
    assert table.locator("tbody tr:visible").count() == 0
    tools.locator("input").fill("")
    with page.expect_download() as waiting:
        tools.locator("button").click()
    waiting.value.save_as(tmp_path / "table.csv")
    assert len((tmp_path / "table.csv").read_text("utf-8-sig").splitlines()) >= len(before)


def test_marks_say_their_number(opened):
    page, _, _ = opened
    marks = page.locator("#figure-n50-by-m svg:visible [aria-roledescription][aria-label]")
    if marks.count() == 0:
        return
    marks.first.hover(force=True)
    shown = page.locator(".tip").inner_text()
    assert "m = " in shown
    assert "n50" in shown


def test_the_calculator_agrees_with_bounds(browser, tmp_path):
    page = browser.new_page()
    page.goto(render(sample.study(), tmp_path).as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for dtype in ("float16", "bfloat16", "float32", "float8_e4m3", "int4"):
        held = limits(width=576, vocab=49152, dtype=dtype, vector_dtype=dtype)
        exact = next(one for one in held if one.name == "every finite value")
        ball = next(one for one in held if one.name == "ball (paper)")
        page.fill("[name=width]", "576")
        page.fill("[name=vocab]", "49152")
        page.fill("[name=vectors]", "3")
        page.fill("[name=length]", "5000")
        page.select_option("[name=format]", dtype)
        for packing, limit in (("count", exact), ("ball", ball)):
            page.select_option("[name=packing]", packing)
            told = page.inner_text("#calculator-limit").split()[0].replace(",", "")
            assert float(told) == pytest.approx(limit.tokens_per_vector, rel=1e-5)
            possible = page.inner_text("#calculator-possible").split()[0].replace(",", "")
            assert int(possible) == limit.longest_fully_possible(3)
            share = page.inner_text("#calculator-share")
            if limit.log_share(5000, 3) < 0:
                power = float(share.split("10^")[1].split()[0].replace(",", ""))
                assert power == pytest.approx(limit.log_share(5000, 3) / math.log(10), rel=1e-5)
            else:
                assert "not excluded" in share
            vectors = int(page.inner_text("#calculator-vectors").replace(",", ""))
            assert limit.longest_fully_possible(vectors) >= 5000
            assert vectors == 1 or limit.longest_fully_possible(vectors - 1) < 5000
            width = int(page.inner_text("#calculator-width").replace(",", ""))
            per_coordinate = limit.tokens_per_vector / 576
            assert (width - 1) * per_coordinate * 3 < 5000 <= width * per_coordinate * 3 * (1 + 1e-12)
    page.close()


def test_a_study_is_printed_on_few_pages(browser, report, tmp_path):
    page = browser.new_page()
    page.goto(report.as_uri())
    # Chromium repeats the head of a table on each page unless a button stands in it.
    assert page.locator("thead button").count() == 0
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    page.close()
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "page.pdf").read_bytes())) < 8


def test_a_figure_is_saved_as_it_is_seen(opened, tmp_path):
    page, _, _ = opened
    figures = page.locator("figure:visible")
    if figures.count() == 0:
        return
    for form, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as waiting:
            figures.first.get_by_role("button", name=f"Download figure as {form}").click()
        waiting.value.save_as(tmp_path / f"figure.{form}")
        assert (tmp_path / f"figure.{form}").read_bytes().startswith(begins)


def test_the_map_follows_the_colours_of_the_page(browser, tmp_path):
    page = browser.new_page(color_scheme="dark")
    page.goto(render(every.study(), tmp_path).as_uri())
    texts = page.evaluate(
        "[...document.querySelectorAll('#figure-map svg.wide text')].map(t => getComputedStyle(t).fill)"
    )
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert texts
    assert "rgb(27, 31, 36)" not in texts, "the light scheme's ink on a dark page"
    assert paper == "rgb(21, 24, 28)"
    page.close()
