"""Imports go one way: each layer is imported in a fresh process and asked what came along."""

import subprocess
import sys

import pytest

FORBIDDEN = {
    "lmreach": ["torch", "transformers", "scipy", "lmreach.models", "lmreach.maths"],
    "lmreach.maths.bounds": [
        "torch",
        "transformers",
        "lmreach.models",
        "lmreach.stats",
        "lmreach.experiments",
    ],
    "lmreach.stats.slope": [
        "torch",
        "transformers",
        "lmreach.models",
        "lmreach.maths",
        "lmreach.experiments",
    ],
    "lmreach.stats.accessibility": ["torch", "transformers", "lmreach.models", "lmreach.experiments"],
    "lmreach.paper": ["torch", "transformers", "lmreach.models", "lmreach.experiments"],
    "lmreach.models.load": ["lmreach.experiments", "lmreach.engine", "lmreach.report", "lmreach.study"],
    "lmreach.experiments.cram": ["lmreach.stats", "lmreach.engine", "lmreach.report", "lmreach.study"],
    "lmreach.experiments.geometry": ["lmreach.stats", "lmreach.engine", "lmreach.report", "lmreach.study"],
    "lmreach.engine.store": [
        "torch",
        "transformers",
        "lmreach.models",
        "lmreach.experiments",
        "lmreach.study",
    ],
    "lmreach.engine.keys": [
        "torch",
        "transformers",
        "lmreach.models",
        "lmreach.experiments",
        "lmreach.study",
    ],
    "lmreach.report.html": [
        "torch",
        "transformers",
        "lmreach.models",
        "lmreach.experiments",
        "lmreach.study",
    ],
    "lmreach.report.figures": ["torch", "transformers", "lmreach.models", "lmreach.experiments"],
    "lmreach.study.schedule": ["torch", "transformers", "lmreach.models", "lmreach.cli"],
    "lmreach.study.run": ["lmreach.cli"],
}


@pytest.mark.parametrize("layer", sorted(FORBIDDEN))
def test_a_layer_brings_nothing_from_above(layer: str) -> None:
    code = f"import sys, {layer}; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = set(eval(done.stdout))
    assert not loaded & set(FORBIDDEN[layer])


def test_only_models_imports_transformers() -> None:
    from pathlib import Path

    import lmreach

    root = Path(lmreach.__file__).parent
    users = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        if any(
            line.startswith(("import transformers", "from transformers"))
            for line in path.read_text().splitlines()
        )
    }
    assert users == {"models"}


def test_public_names_load() -> None:
    import lmreach

    for name in lmreach.__all__:
        assert getattr(lmreach, name) is not None
    with pytest.raises(AttributeError, match="run_study"):
        lmreach.nothing  # noqa: B018
