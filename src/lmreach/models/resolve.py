"""What a user means by a model: a loaded one, a built-in, a GGUF file, a folder, or a name on the hub."""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lmreach.errors import ModelError, problem
from lmreach.models import builtin, tiny_spec

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FILE_ENDINGS = (".gguf", ".safetensors", ".bin", ".pt", ".pth", ".json", ".txt")
_GGUF_MAGIC = b"GGUF"

Kind = Literal["builtin", "tiny", "gguf", "folder", "hub"]


@dataclass(frozen=True)
class Found:
    """Where a model is: a built-in's or hub name, or an existing path."""

    kind: Kind
    name: str
    path: Path | None = None


def find(spec: str | Path) -> Found:
    """Decide what ``spec`` names, without opening any connection.

    What looks like a path (a `Path`, several slashes, a leading dot or slash, a known file ending, a first
    part that is a folder here) is never taken for a name on the hub.

    Raises
    ------
    ModelError
        For a path that does not exist, a file that is no GGUF, or a name that can be neither.
    """
    text = str(spec)
    if text.startswith(builtin.PREFIX):
        return Found("builtin", text.removeprefix(builtin.PREFIX))
    if text.startswith(tiny_spec.PREFIX):
        return Found("tiny", text)
    path = Path(spec).expanduser()
    if path.is_dir():
        return Found("folder", path.resolve().name, path)
    if path.is_file():
        return Found("gguf", path.name, _checked_gguf(path))
    if isinstance(spec, Path) or _looks_like_path(text):
        raise ModelError(
            problem("a model folder or a .gguf file", f"{text}, which does not exist", _advice(path))
        )
    if not _HUB_ID.fullmatch(text):
        raise ModelError(
            problem(
                "a folder, a .gguf file, builtin:NAME or a hub name like org/name",
                repr(text),
                "check the spelling",
            )
        )
    return Found("hub", text)


def _looks_like_path(text: str) -> bool:
    parts = text.replace("\\", "/").split("/")
    if text.startswith((".", "/", "~", "\\")) or len(parts) > 2 or text.lower().endswith(_FILE_ENDINGS):
        return True
    return len(parts) == 2 and (not parts[1] or Path(parts[0]).is_dir())


def _advice(path: Path) -> str:
    """Name the nearest thing that exists beside a path that does not."""
    near = path.parent
    try:
        names = [p.name for p in near.iterdir()]
    except OSError:
        return f"the folder {near} is not there either: check the path"
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {near / close[0]}?" if close else f"looked in {near.resolve()}: check the spelling"


def _checked_gguf(path: Path) -> Path:
    with path.open("rb") as file:
        magic = file.read(len(_GGUF_MAGIC))
    if magic != _GGUF_MAGIC:
        raise ModelError(
            problem(
                "a model folder or a .gguf file",
                f"the file {path.name}, which does not begin like a GGUF file",
                "give the folder that holds config.json and the weights",
            )
        )
    return path
