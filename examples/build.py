"""Run the code of docs/notebook.md and write it, with what it shows, as examples/first_study.ipynb.

python examples/build.py
"""

import ast
import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "docs" / "notebook.md"
TARGET = HERE / "first_study.ipynb"
_BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)


def cells(text: str) -> list[tuple[str, str]]:
    """Return the page as cells in order: (markdown or code, source)."""
    found, end = [], 0
    for block in _BLOCK.finditer(text):
        found += [("markdown", text[end : block.start()].strip()), ("code", block[1].rstrip())]
        end = block.end()
    found.append(("markdown", text[end:].strip()))
    return [(kind, source) for kind, source in found if source]


def run(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell as a notebook does; returns what it printed, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return printed.getvalue(), value


def shown(value: Any) -> dict[str, Any]:
    """Return what a notebook keeps of a value: charts as pictures, results as sections, all as text."""
    if hasattr(value, "mark_bar") or hasattr(value, "layer"):
        picture = io.StringIO()
        value.save(picture, format="svg")
        return {"image/svg+xml": picture.getvalue(), "text/plain": type(value).__name__}
    data = {"text/plain": repr(value)}
    section = getattr(value, "_repr_html_", None)
    return data if section is None else {"text/html": section(), **data}


def notebook() -> dict[str, Any]:
    """Run every cell in an empty folder and return the notebook."""
    names: dict[str, Any] = {}
    made, number = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for kind, source in cells(SOURCE.read_text(encoding="utf-8")):
            lines = source.splitlines(keepends=True)
            if kind == "markdown":
                made.append({"cell_type": kind, "metadata": {}, "source": lines})
                continue
            number += 1
            printed, value = run(source, names)
            outputs: list[dict[str, Any]] = []
            if printed:
                outputs.append({"output_type": "stream", "name": "stdout", "text": printed})
            if value is not None:
                result = {"output_type": "execute_result", "metadata": {}, "execution_count": number}
                outputs.append({**result, "data": shown(value)})
            made.append(
                {
                    "cell_type": kind,
                    "metadata": {},
                    "execution_count": number,
                    "source": lines,
                    "outputs": outputs,
                }
            )
    for place, cell in enumerate(made):
        cell["id"] = f"cell-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    TARGET.write_text(json.dumps(notebook(), indent=1, ensure_ascii=False) + os.linesep, encoding="utf-8")
    print(TARGET)
