"""Imports go one way, in every module: read from the source, so that a lazy import counts like any other."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lmreach

ROOT = Path(lmreach.__file__).parent

# What each layer may import of the package, itself always. A layer that is not named here does not exist.
BASE = {"errors", "files", "identity", "progress"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "files": {"errors"},
    "identity": {"errors"},
    "paper": {"errors", "maths"},
    "config": {"errors"},
    "results": {"errors", "config"},
    "maths": {"errors"},
    "stats": {"errors", "maths"},
    "models": {*BASE, "config", "maths"},
    "experiments": {*BASE, "config", "results", "maths", "stats", "models"},
    "engine": {*BASE, "config", "results"},
    # A comparison of several runs fits its exponents while it draws: no run of its own could hold them.
    "report": {*BASE, "config", "results", "maths", "stats"},
    "runs": {"config", "results", "maths", "stats", "models", "experiments", "engine", "report"}
    | {*BASE, "paper"},
    "cli": {"paper", "maths", "stats", "models", "experiments", "engine", "report", "runs"}
    | {*BASE, "config", "results"},
}
# How a result looks is the report's business: one file of the results asks it, when something is to be shown.
SHOWS = "results/shown.py"
ONLY_MODELS = {"transformers", "tokenizers"}
WITHOUT_TORCH = {*BASE, "paper", "config", "results", "maths", "stats", "engine", "report"}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return every absolute name that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_module_has_a_layer() -> None:
    top = {"__init__", "__main__"}
    assert {layer(path) for path in modules()} - top == set(ALLOWED)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_downwards(path: Path) -> None:
    own = layer(path)
    if own in {"__init__", "__main__"}:
        return
    used = {name.split(".")[1] for name in imported(path) if name.startswith("lmreach.")} - {"__version__"}
    shown = {"report"} if path.relative_to(ROOT).as_posix() == SHOWS else set()
    assert used <= ALLOWED[own] | {own} | shown
    outside = {name.split(".")[0] for name in imported(path)}
    if own != "models":
        assert not outside & ONLY_MODELS
    if own in WITHOUT_TORCH:
        assert "torch" not in outside


@pytest.mark.parametrize(
    "module",
    [
        "lmreach",
        "lmreach.config",
        "lmreach.results",
        "lmreach.cli",
        "lmreach.stats.slope",
        "lmreach.report.html",
    ],
)
def test_light_modules_bring_no_torch(module: str) -> None:
    code = f"import sys, {module}; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_public_names_load() -> None:
    for name in lmreach.__all__:
        assert getattr(lmreach, name) is not None
    with pytest.raises(AttributeError, match="study"):
        lmreach.nothing  # noqa: B018
