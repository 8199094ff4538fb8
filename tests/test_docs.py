"""The docs: reference pages are those of the code, links lead somewhere, every command and snippet is run."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cyclopts import CycloptsError

from lmreach.cli import app, main
from lmreach.errors import LmreachError

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUICK = ("bounds", "paper", "completion", "help")
"""Commands that take no time: run with the quick tests, the others with the slow ones."""
# What a page leaves to the reader, and what stands for it here.
GIVEN = [
    (r"\bSOME/MODEL\b|\bMODEL\b|[\w.-]+\.gguf\b|\b[\w-]+/[A-Z][\w.-]+\b", "builtin:verse"),
    (r"text:(my\.txt|FILE|[\w.]+)", "text:my.txt"),
    (r"ids:(FILE|target\.ids)", "ids:my.ids"),
    (r"\bVECTORS\b|my_vectors\.npy", "my.npy"),
    (r"my\.toml|FILE\.toml", "my.toml"),
    (r"\blmreach-runs/\S+|\bRUN\b(?!\.\.\.)", "my-study"),
]


def commands(text: str) -> Iterator[str]:
    """Give every command of a page: lines of its blocks, and what stands in backticks as a whole one."""
    blocks = re.findall(r"^```(?:sh|console)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    inline = [" ".join(found.split()) for found in re.findall(r"(?<!`)`(lmreach [^`]+)`(?!`)", text)]
    unsaid = r"\[OPTIONS\]|\[ARGS|COMMAND|\.\.\.|KIND|NAME|SHELL"
    for line in [*lines, *inline]:
        words = line.strip()
        # Two words are the mere name of a command.
        whole = len(words.split()) > 2 or words == "lmreach paper"
        if words.startswith("lmreach ") and whole and not re.search(unsaid, words):
            yield words


def typed(line: str) -> list[str]:
    """Return the words of a command, with something in place of what is left to the reader."""
    for left, here in GIVEN:
        line = re.sub(left, here, line)
    line = line.replace("`", "")
    for place, here in (("FOLDER", "my-folder"), ("CERT", "my-study"), ("FILE", "my-file")):
        line = re.sub(rf"\b{place}\b", here, line)
    words = shlex.split(line, comments=True)
    return words[1 : words.index(">>")] if ">>" in words else words[1:]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what a reader is asked to have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_text("Shall I compare thee to a summer's day? " * 40, encoding="utf-8")
    (tmp_path / "my.ids").write_text("1 2 3\n", encoding="utf-8")
    (tmp_path / "my.toml").write_text("", encoding="utf-8")
    np.save(tmp_path / "my.npy", np.random.default_rng(0).normal(size=(2, 256)).astype(np.float32))
    return tmp_path


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["commands.md", "python.md", "results-json.md", "contributing.md"])
def test_reference_pages_are_up_to_date(generate, name: str) -> None:
    kept = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert kept == generate.PAGES[name](), "run: python docs/generate.py"


def test_every_command_of_the_docs_reads(folder: Path) -> None:
    wrong = []
    read = 0
    for page in PAGES:
        for line in commands(page.read_text(encoding="utf-8")):
            try:
                app.config = ()
                words = [word for word in typed(line) if word != "--debug"]
                if "--config" in words:
                    del words[words.index("--config") : words.index("--config") + 2]
                if not {"--help", "-h"} & set(words):
                    app.parse_args(words, exit_on_error=False, print_error=False)
                read += 1
            except (CycloptsError, LmreachError, ValueError) as error:
                wrong.append(f"{page.name}: {line}: {error}")
    assert wrong == []
    assert read > 100


def test_quick_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for page in PAGES:
        for line in commands(page.read_text(encoding="utf-8")):
            words = typed(line)
            if words and words[0] in QUICK and not ({"--help", "--support"} & set(words)):
                with pytest.raises(SystemExit) as end:
                    main(words)
                assert end.value.code == 0, (page.name, line, capsys.readouterr().err)


def test_links_lead_somewhere() -> None:
    dead = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for aim in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = aim.partition("#")
            if "://" in aim or aim.startswith("mailto:"):
                continue
            there = (page.parent / path).resolve() if path else page
            if not there.exists():
                dead.append(f"{page.name}: {aim}")
            elif anchor and there.suffix == ".md" and anchor not in _anchors(there):
                dead.append(f"{page.name}: {aim} (no such heading)")
    assert dead == []


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", head.lower().replace("`", "")).strip().replace(" ", "-") for head in heads
    }


def test_every_page_is_in_the_site() -> None:
    listed = set(re.findall(r'"([\w/.-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8")))
    there = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert listed == there


@pytest.mark.parametrize("page", ["models.md"])
def test_snippets_run(page: str, folder: Path) -> None:
    names: dict = {}
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.M)
    assert blocks, "a page without snippets has no place in this test"
    for block in blocks:
        exec(block, names)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["five-minutes.md", "questions.md", "published.md", "commands.md"])
def test_every_command_of_a_guide_runs(page: str, folder: Path) -> None:
    """In the order of the page, budgets cut to 20 seconds."""
    for words in (["study", "builtin:verse", "-m", "1", "--budget", "40s", "--out", "my-study"], _CRAM):
        _run(words, folder)
    certificate = next((folder / "my-cram" / "certificates").glob("*.safetensors")).name
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for line in commands(text.replace("NAME.safetensors", certificate)):
        words = typed(
            re.sub(r"--budget \w+", "--budget 20s", line).replace("--open", "").replace("--clear", "")
        )
        if words[0] not in QUICK and "--resume" not in words:
            fresh = (
                ["--fresh"] if "--out" in words and words[0] in ("study", "cram", "census", "copy") else []
            )
            _run([*words, *fresh], folder)


_CRAM = shlex.split("cram builtin:verse -m 1 2 --strings 6 --max-steps 60 --out my-cram")


def _run(words: list[str], folder: Path) -> None:
    command = [sys.executable, "-m", "lmreach", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode in (0, 1), (words, done.stderr[-2000:])
    assert "Traceback" not in done.stderr, (words, done.stderr[-2000:])
