"""The census on the page: sentences, figures and tables from a plain dict."""

import copy
import math
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from lmreach.report.census.entries import rough
from lmreach.report.census.section import (
    census_figures,
    count_figure,
    discovery_figure,
    parts,
    sentences,
    tables,
)
from lmreach.report.figures import figures
from lmreach.report.html import page
from lmreach.report.kit.drawing import png, svg
from tests.report.sample import study

VOCAB, PROMPTS = 2, (8, 64, 512)


def length(k: int, distinct: int, prompts: int, vocab: int, **more: Any) -> dict[str, Any]:
    return {
        "length": k,
        "distinct": distinct,
        "prompts": prompts,
        "entropy_nats": 1.0,
        "entropy_bits": 1.44,
        "seen_once": 3,
        "seen_twice": 1,
        "top": [{"ids": [1] * k, "prompts": 5, "text": "<b>& it\n</b>"}],
        "log_bound_nats": min(math.log(prompts), k * math.log(vocab)),
        "log_share_nats": math.log(distinct) - k * math.log(vocab),
        **more,
    }


def census() -> dict[str, Any]:
    """An invented census: three grids and two kinds of real prompts."""
    grids = [
        {
            "q": 2,
            "width": 3,
            "m": m,
            "n": 12,
            "vocab": VOCAB,
            "order": "all",
            "extent": 1.5,
            "prompts": prompts,
            "exact": True,
            "fully_reachable": m,
            "half_reachable": m + 2,
            "lengths": [length(k, min(2**k, prompts // 2), prompts, VOCAB) for k in range(1, 13)],
            "estimates": [],
            "tied": 0,
            "close": 2,
            "decoded_again": 2,
            "seconds": 0.5,
            "missing": {
                "length": 4,
                "count": 9,
                "of": 16,
                "never_first": [],
                "never": [1],
                "missing_though_all_tokens_occur": 2,
                "repeats": 2,
                "repeats_missing": 1,
                "listed": 0,
                "sequences": [],
                "reasons": {
                    "measure": "given",
                    "unreachable_tokens": [1],
                    "missing_with_unreachable_token": 7,
                    "auc_cell_shares": {
                        "value": 0.8,
                        "low": 0.6,
                        "high": 1.0,
                        "positives": 7,
                        "negatives": 9,
                    },
                    "auc_cell_shares_of_occurring_tokens": None,
                },
            },
        }
        for m, prompts in enumerate(PROMPTS, start=1)
    ]
    estimate = {"value": 4e7, "low": 1e6, "high": 9e8, "standard_error": 1e6, "seen": 300, "confidence": 0.95}
    shares = {"value": 0.42, "low": 0.4, "high": 0.44, "confidence": 0.95}
    tokens = []
    for m, prompts, guess in ((1, 1000, None), (2, 500, estimate)):
        more = {"chao1": guess, "ace": guess, "coverage": shares if guess else None}
        counted = [length(k, 30 * k, prompts, 1000, **more) for k in range(1, 9)]
        curves = [
            {"length": k, "prompts": [1, 10, 100, prompts], "distinct": [1.0, 9.0, 25.0, 30.0 * k]}
            for k in range(1, 9)
        ]
        tokens.append(
            {
                "prompt_tokens": m,
                "n": 8,
                "vocab": 1000,
                "bos": "none",
                "seed": 0,
                "prompts": prompts,
                "planned": prompts,
                "complete": guess is None,
                "log_all_prompts_nats": m * math.log(1000),
                "lengths": counted,
                "discovery": curves,
                "tied": 0,
                "close": 1,
                "seconds": 3.0,
            }
        )
    return {"grids": grids, "tokens": tokens}


def results(kind: str = "census") -> dict[str, Any]:
    whole = study()
    return {**whole, "kind": kind, "results": {**whole["results"], "census": census()}}


def test_sentences_say_the_result_without_theory() -> None:
    grid, *_, one, two = sentences(census())
    assert grid == (
        "All 8 prompts of 1 vector with 2 values per coordinate were tried: they give 4 different outputs "
        "of 12 tokens, of 4,096 that there are. Every text of up to 1 token can be produced; longer ones "
        "only in part."
    )
    assert "After all 1,000 prompts of one token the model goes on in 240 different ways" in one
    assert "follows 5 prompts (0.5 %)" in one
    assert "500 random prompts of 2 tokens" in two
    assert "at least about 40 million" in two


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1"),
        (999_999, "999,999"),
        (1e6 - 1e-6, "1 million"),
        (68_719_476_736, "68.7 billion"),
        (3e20, "10^20"),
    ],
)
def test_counts_are_written_for_readers(count: float, words: str) -> None:
    assert rough(count) == words


def test_a_grid_that_reaches_nothing_in_full_says_so() -> None:
    given = census()
    given["grids"][0]["fully_reachable"] = 0
    assert "Not even every single token" in sentences(given)[0]


def test_figures_hold_every_count_and_limit() -> None:
    found = {figure.name: figure for figure in census_figures(census())}
    assert set(found) == {"census-counts", "census-discovery"}
    for figure in found.values():
        for chart in (figure.wide, figure.narrow):
            assert chart is not None
            ET.fromstring(svg(chart))
    text = svg(found["census-counts"].wide)
    for words in ("m = 1", "limit, m = 3", "2-token prompts", "limit, 2 tokens"):
        assert words in text
    assert "every prompt" in svg(found["census-discovery"].wide)
    assert png(found["census-counts"].wide).startswith(b"\x89PNG")


def test_no_part_needs_the_others() -> None:
    grids = {**census(), "tokens": []}
    assert discovery_figure(grids) is None
    assert {table.name for table in tables(grids)} == {"census-grids", "census-missing"}
    tokens = {**census(), "grids": []}
    assert {table.name for table in tables(tokens)} == {"census-tokens", "census-popular"}
    assert count_figure({"grids": [], "tokens": []}) is None
    assert parts({}).tables == ()


def test_a_sketch_shows_its_error() -> None:
    given = census()
    grid = given["grids"][0]
    grid |= {"lengths": [], "exact": False, "fully_reachable": None, "half_reachable": None, "missing": None}
    grid["estimates"] = [
        {"length": k, "distinct": 1e6, "standard_error": 8e3, "log_bound_nats": 20.0, "log_share_nats": 0.0}
        for k in (1, 2)
    ]
    given["tokens"] = []
    assert "about 1 million different outputs" in sentences(given)[0]
    row = next(table for table in tables(given) if table.name == "census-grids").rows[0]
    assert any("8,000" in cell.small for cell in row.cells)
    assert count_figure(given) is not None


@pytest.mark.parametrize("kind", ["census", "study"])
def test_the_page_holds_the_section_and_escapes_texts(kind: str) -> None:
    text = page(results(kind))
    assert "Outputs counted" in text
    assert "figure-census-counts" in text
    assert "<b>& it" not in text
    assert "&lt;b&gt;&amp; it" in text
    assert ("n50 against the number" in text) == (kind == "study")


def test_figures_of_a_study_come_first() -> None:
    whole = study()
    assert [f.name for f in figures(whole)] == [f.name for f in figures(results("study"))][:-2]


def test_nothing_is_changed_by_drawing() -> None:
    given = census()
    before = copy.deepcopy(given)
    parts(given)
    assert given == before
