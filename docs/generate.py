"""Write the reference pages from the code: ``python docs/generate.py``; a test holds them to it.

commands.md is what ``--help`` says, python.md the public functions, results-json.md the fields of a file,
contributing.md the CONTRIBUTING.md of the repository.
"""

import inspect
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmreach
from lmreach.cli import COMMANDS, app
from lmreach.cli.codes import EXIT_CODES
from lmreach.cli.examples import EXAMPLES
from lmreach.cli.help import explain
from lmreach.models.facts import ModelFacts
from lmreach.results import CensusResults, CopyResults, StudyResults
from lmreach.results.base import Result
from lmreach.results.run import Model

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py: change the code, then run it. -->"


def commands() -> str:
    """Return the page of the command line."""
    for name in COMMANDS:
        explain(name)
    app.help_epilogue = None
    whole = app.generate_docs(output_format="markdown")
    body = whole[whole.index("## lmreach study") :]
    for name, lines in EXAMPLES.items():
        usage = re.search(rf"## lmreach {name}\n\n```console\n.*?```\n", body, re.DOTALL)
        assert usage is not None, name
        shown = "\n".join(lines)
        body = body.replace(usage[0], f"{usage[0]}\n```sh\n{shown}\n```\n", 1)
    index = "\n".join(f"* [`{name}`](#lmreach-{name}): {summary}" for name, summary in COMMANDS.items())
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    return f"""# Command line

{NOTE}

MODEL is a Hugging Face id, a folder, a `.gguf` file, or `builtin:verse` / `builtin:random`
([your model](models.md)). Every command takes `--config FILE.toml` (names as here, with `_` for `-`; the command
line wins) and `--debug`, which shows a stack trace. With `NO_COLOR` set, nothing is coloured. The examples
follow from one another, from the top.

{index}

## Exit codes

| code | meaning |
|---|---|
{codes}

## Completion

```sh
lmreach completion bash >> ~/.bashrc
```

`zsh`, `fish` and `powershell` likewise; `lmreach completion --help` says where each shell looks.

{body.strip()}
"""


def python() -> str:
    """Return the page of the public names."""
    names = [name for name in lmreach.__all__ if name != "__version__"]
    calls = [name for name in names if not inspect.isclass(getattr(lmreach, name))]
    classes = [name for name in names if name not in calls]
    parts = [_call(name) for name in calls] + ["## Configs and results", *map(_class, classes)]
    body = "\n\n".join(parts)
    return f"""# Python API

{NOTE}

Every command of the command line is one of these functions, with the same names and defaults; how they are used
together is on the page [in Python and in a notebook](notebook.md). Importing `lmreach` imports no torch.

## Functions

{body}
"""


def _call(name: str) -> str:
    function = getattr(lmreach, name)
    return f"### {name}\n\n```python\nlmreach.{name}{_signature(function)}\n```\n\n{_numpydoc(function)}"


def _class(name: str) -> str:
    kind = getattr(lmreach, name)
    heading = f"### {name}\n\n{_numpydoc(kind)}"
    fields = getattr(kind, "model_fields", {})
    if not fields or issubclass(kind, Result):
        return heading
    rows = [
        f"| `{field}` | {_kind(info.annotation)} | {_default(info)} | {_cell(info.description or '')} |"
        for field, info in fields.items()
    ]
    table = "\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows])
    return f"{heading}\n\n{table}"


def _default(info: Any) -> str:
    if info.is_required():
        return "needed"
    value = info.get_default(call_default_factory=True)
    return "its own" if hasattr(type(value), "model_fields") else f"`{value!r}`"


def _signature(function: Any) -> str:
    parts = []
    star = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        shown = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        default = parameter.default
        given = "" if default is parameter.empty else f"={'...' if callable(default) else repr(default)}"
        parts.append(f"{shown}{parameter.name}{given}")
    return f"({', '.join(parts)})"


def _numpydoc(thing: Any) -> str:
    """Return a numpydoc docstring as Markdown: sections as bold heads, parameters as a list."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    out: list[str] = []
    section = ""
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if below and set(below) == {"-"} and len(below) >= 3:
            section = line.strip()
            out += [f"**{section}**", ""]
        elif set(line) == {"-"}:
            continue
        elif section == "Examples":
            out.append(f"    {line}" if line else "")
        elif section and line and not line.startswith(" "):
            out.append(f"* `{line}`")
        elif section and line:
            out.append(f"  {line.strip()}")
        else:
            out.append(line)
    text = re.sub(r"``([^`]*)``", r"`\1`", "\n".join(out)).strip()
    return re.sub(r"(\* `[^`]*`)\n  ", r"\1: ", text)


def results_json() -> str:
    """Return the page of the fields of results.json."""
    parts = []
    seen: set[type] = set()
    for kind in (StudyResults, CensusResults, CopyResults):
        parts += [_fields(one) for one in _parts(kind, seen)]
    body = "\n\n".join(parts)
    return f"""# results.json

{NOTE}

Every run writes `results.json`: strict JSON, without NaN or infinities, everything that its page shows. The page
hands it out too, and `lmreach.open_results(FOLDER)` reads it, those of older versions among them. `kind` says
whether a file holds a study (a cram too), a census or a copying run; `schema_version` is raised when a field
changes its name or meaning. A missing number is `null`, and what it means then stands here. Lengths are in tokens,
times in seconds, information in nats where the name says so and else in bits.

{body}
"""


def _parts(kind: type[Result], seen: set[type]) -> Iterator[type[Result]]:
    """Give a result and every part that stands in it, each once, outer ones first."""
    if kind in seen:
        return
    seen.add(kind)
    yield kind
    for info in kind.model_fields.values():
        for inner in _named(info.annotation):
            yield from _parts(inner, seen)


def _named(annotation: Any) -> Iterator[type[Result]]:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        if issubclass(annotation, Result):
            yield annotation
        for base in _bases_of_list(annotation):
            yield from _named(base)
        return
    for inner in typing.get_args(annotation):
        yield from _named(inner)


def _bases_of_list(kind: type) -> tuple[Any, ...]:
    """Return what a list of our own, such as `Limits`, is a list of."""
    return getattr(kind, "__orig_bases__", ()) if issubclass(kind, tuple) else ()


def _fields(kind: type[Result]) -> str:
    name = kind.__name__.partition("[")[0]
    text = (inspect.getdoc(kind) or "").partition("\nAttributes\n")[0]
    meanings: dict[str, str] = {}
    for one in reversed([*kind.__mro__, *([ModelFacts] if kind is Model else [])]):
        meanings |= _attributes((inspect.getdoc(one) or "").partition("\nAttributes\n")[2])
    rows = []
    for field, info in kind.model_fields.items():
        rows.append(f"| `{field}` | {_kind(info.annotation)} | {_cell(meanings.get(field, ''))} |")
    table = "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])
    intro = re.sub(r"``([^`]*)``", r"`\1`", text).strip()
    return f"## {name}\n\n{intro}\n\n{table}"


def _attributes(listed: str) -> dict[str, str]:
    """Return the meaning of each name of a docstring's Attributes."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in listed.splitlines():
        if line and not line.startswith((" ", "-")):
            names = [name.strip() for name in line.split(",")]
        elif line.strip() and names and not line.startswith("-"):
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


def _cell(text: str) -> str:
    plain = re.sub(r"``([^`]*)``", r"`\1`", " ".join(text.split()))
    return plain.replace("|", "\\|")


_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null"}


def _kind(annotation: Any) -> str:
    """Say in words what a field holds."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and not inner:
        for base in _bases_of_list(annotation):
            return _kind(base)
        name = annotation.__name__.partition("[")[0]
        return f"[{name}](#{name.lower()})" if issubclass(annotation, Result) else name
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if origin is typing.Annotated:
        return _kind(inner[0])
    if origin in (tuple, list):
        one = _kind(inner[0])
        return f"list of {one}s" if one in _PLAIN.values() else f"list of {one}"
    if origin is dict:
        return f"by {_kind(inner[0])}: {_kind(inner[1])}"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_kind, inner)))
    return "any JSON"


def contributing() -> str:
    """Return CONTRIBUTING.md, its links seen from this folder."""
    text = (FOLDER.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{NOTE}\n{rest.replace('](docs/', '](')}"


PAGES = {
    "commands.md": commands,
    "python.md": python,
    "results-json.md": results_json,
    "contributing.md": contributing,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
        print(FOLDER / name)
