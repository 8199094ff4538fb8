"""A run on target files: named by their own names and contents, wherever they lie."""

import hashlib
import json
from pathlib import Path

from lmreach.config import CramPlan, StudyConfig
from lmreach.runs.study.run import resume_study, run_study


def test_results_and_page_hold_no_path(tmp_path: Path) -> None:
    folder = tmp_path / "private folder"
    folder.mkdir()
    notes = folder / "my notes.ids"
    notes.write_text("1 2 3 4\n5 6 7 8\n", encoding="utf-8")
    config = StudyConfig(
        model="builtin:random",
        m=(1,),
        targets=(f"ids:{notes}",),
        budget_s=None,
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(strings=2, max_steps=3, n_max=4),
    )
    run = run_study(config, tmp_path / "run").folder
    for name in ("results.json", "report.html"):
        assert "private folder" not in (run / name).read_text(encoding="utf-8")
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert results["config"]["targets"] == ["ids:my notes.ids"]
    assert [entry["target"] for entry in results["accessibility"]] == ["ids:my notes.ids"]
    digest = hashlib.sha256(notes.read_bytes()).hexdigest()
    assert results["provenance"]["target_files"] == {"ids:my notes.ids": digest}
    resume_study(run)
    again = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert again["accessibility"] == results["accessibility"]
