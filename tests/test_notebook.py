"""docs/notebook.md runs as it stands, and the example notebook is that page with what it showed."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("build", ROOT / "examples" / "build.py")
assert spec is not None
assert spec.loader is not None
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


@pytest.fixture
def example() -> dict:
    return json.loads(build.TARGET.read_text(encoding="utf-8"))


def test_the_page_runs_and_every_value_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for kind, source in build.cells(build.SOURCE.read_text(encoding="utf-8")):
        if kind == "code":
            _, value = build.run(source, names)
            assert value is None or build.shown(value)["text/plain"]
    assert names["study"].n50["random", 2].verdict == "estimated"
    assert names["again"] == names["study"]


def test_the_example_is_the_page(example: dict) -> None:
    kept = [(cell["cell_type"], "".join(cell["source"])) for cell in example["cells"]]
    assert kept == build.cells(build.SOURCE.read_text(encoding="utf-8"))


def test_the_example_shows_pictures_tables_and_no_paths(example: dict) -> None:
    outputs = [output for cell in example["cells"] for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/plain", "text/html", "image/svg+xml"} <= kinds
    assert all(output["output_type"] != "error" for output in outputs)
    assert "/tmp/" not in json.dumps(outputs)
    assert str(Path.home()) not in json.dumps(outputs)
