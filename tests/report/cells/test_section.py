"""The section of the decoder's cells: words, figure, tables, and hostile tokens that stay text."""

import copy
import json

import html5lib
import pytest

from lmreach.report.cells.ranks import rank_figure
from lmreach.report.cells.section import parts
from lmreach.report.html import page
from tests.report.sample import study

HOSTILE = "</svg></script><b onclick=x>&\"' \ud800\x00"


def cells(text: str = "the") -> dict:
    """Invented for the tests; no number in it was measured."""
    mean = {
        "verdict": "estimated",
        "draws": 64,
        "distinct": 60,
        "value": -9.5,
        "se": 0.4,
        "low": -10.3,
        "high": -8.7,
        "confidence": 0.95,
        "limits": {"ball (paper)": {"verdict": "estimated", "value": 120.0, "low": 110.0, "high": None}},
    }
    square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    return {
        "shares": {
            "measure": "gaussian",
            "measure_words": "norm-shaped Gaussian (RMSNorm)",
            "convention": "argmax",
            "words": "900 of 1,000 cells were hit by 20,000 states",
            "cells": 1000,
            "samples": 20000,
            "confidence": 0.95,
            "unhit_limit": 1.5e-4,
            "ranks": [
                {"rank": 1, "share": 0.02, "low": 0.018, "high": 0.022},
                {"rank": 900, "share": 5e-5, "low": 1.3e-6, "high": 2.8e-4},
            ],
            "largest": [{"id": 7, "text": text, "share": 0.02, "low": 0.018, "high": 0.022}],
        },
        "rare": {
            "measure": "norm-shaped Gaussian",
            "replicates": 8,
            "particles": 128,
            "means": [{**mean, "name": "uniform"}, {**mean, "name": "self", "value": -6.0}],
            "ratios": [{"text": "self", "verdict": "estimated", "value": 1.58, "low": 1.4, "high": 1.8}],
        },
        "unreachable": {
            "support": "ellipsoid",
            "vocab": 1000,
            "judged": 1000,
            "counts": {"reachable": 997, "tie-only": 2, "unreachable": 1, "undetermined": 0},
            "unreachable": [3],
            "tie-only": [4, 5],
            "texts": {"3": text, "4": text, "5": "b"},
            "share_removed_with_ties": {"10": 0.03, "100": 0.26},
        },
        "map": {
            "model": text,
            "rectangle": [0.0, 1.0, 0.0, 1.0],
            "cells": [{"id": 7, "text": text, "area": 1.0, "corners": square}],
            "levels": [0.5],
            "bands": [[{"id": 7, "corners": square}]],
            "texts": [
                {"text": text, "x": x, "y": 0.5, "id": 7, "token": text, "margin": 0.2}
                for x in (0.2, 0.5, 0.8)
            ],
            "outline": None,
        },
    }


def report(measured: dict | None) -> str:
    results = study()
    results["results"]["cells"] = measured
    return page(results)


def test_every_part_is_said_in_words() -> None:
    told = " ".join(parts(cells()).sentences)
    for words in ("900 of 1,000", "-9.50 ± 0.40", "1.58 times", "1 can never win", "3 % at n = 10", "26 %"):
        assert words in told


@pytest.mark.parametrize("name", ["shares", "rare", "unreachable", "map"])
def test_each_part_may_be_absent(name: str) -> None:
    some = cells()
    del some[name]
    assert 'id="cells"' in report(some)
    assert 'id="figure-map"' in report(some) or name == "map"


def test_without_any_the_section_is_left_out() -> None:
    assert 'id="cells"' not in report(None)
    assert 'id="cells"' not in report({})


def markup(text: str) -> list[str]:
    tree = html5lib.parse(text, namespaceHTMLElements=False)
    return [element.tag for element in tree.iter() if isinstance(element.tag, str)]


def test_hostile_tokens_stay_text() -> None:
    """The same elements as with a harmless token, and data that strict readers take."""
    plain, hostile = report(cells("x")), report(cells(HOSTILE))
    assert [t for t in markup(hostile) if t in ("b", "script")] == [
        t for t in markup(plain) if t in ("b", "script")
    ]
    assert "onclick=x>" not in hostile.replace("&gt;", "").split("results-json")[0]
    start = hostile.index('id="results-json">') + len('id="results-json">')
    json.loads(hostile[start : hostile.index("</script>", start)])


def test_a_sample_of_tokens_is_called_one() -> None:
    some = copy.deepcopy(cells())
    some["unreachable"]["judged"] = 500
    assert "Of 500 drawn at random of 1,000 usable tokens" in " ".join(parts(some).sentences)


def test_the_rank_plot_keeps_to_points_with_an_interval_above_zero() -> None:
    shares = cells()["shares"]
    assert rank_figure(shares) is not None
    shares["ranks"] = []
    assert rank_figure(shares) is None
