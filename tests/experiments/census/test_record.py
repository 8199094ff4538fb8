"""The recorded exact censuses keep to the theorems, and the page quotes them."""

import json
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
RECORD = json.loads((DOCS / "results" / "census" / "exact.json").read_text(encoding="utf-8"))["censuses"]


def test_no_recorded_count_exceeds_prompts_or_texts() -> None:
    assert len(RECORD) > 150
    for one in RECORD:
        for length, distinct in enumerate(one["distinct"], start=1):
            assert 1 <= distinct <= min(one["prompts"], one["vocab"] ** length)
        assert one["distinct"] == sorted(one["distinct"])
        assert one["fully_reachable"] <= one["half_reachable"]
        full = one["vocab"] ** one["fully_reachable"]
        assert one["fully_reachable"] == 0 or one["distinct"][one["fully_reachable"] - 1] == full


def test_the_page_quotes_the_record() -> None:
    page = (DOCS / "census.md").read_text(encoding="utf-8")
    for one in RECORD:
        if one["part"] == "reach":
            shown = f"{one['fully_reachable']} / {one['half_reachable']} / {one['distinct'][-1]:,}"
            assert shown in page, (one["model"], one["m"])
        if one["part"] in ("saturation", "saturation mamba"):
            assert f" {one['distinct'][-1]:,} |" in page, (one["model"], one["m"])
