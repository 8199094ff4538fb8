"""What a user means by a model: a loaded one, a built-in, a GGUF file, a folder, or a name on the hub."""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lmreach.errors import ModelError, problem
from lmreach.models.tiny_spec import PREFIX, TinySpec

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FILE_ENDINGS = (".gguf", ".safetensors", ".bin", ".pt", ".pth", ".json", ".txt")
_GGUF_MAGIC = b"GGUF"
_CACHED = "models--"  # how the cache of the hub library begins the folder of a model

BUILTIN = "builtin:"
"""What the names of built-in models begin with."""
BUILTIN_NAMES = ("verse", "random")

Kind = Literal["builtin", "tiny", "gguf", "folder", "hub"]


@dataclass(frozen=True)
class Found:
    """Where a model is: a built-in's or hub name, or an existing path.

    Attributes
    ----------
    revision
        Commit of a snapshot in the cache of the hub library.
    """

    kind: Kind
    name: str
    path: Path | None = None
    revision: str | None = None


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
    if text.startswith(BUILTIN):
        return Found("builtin", _builtin(text.removeprefix(BUILTIN)))
    if text.startswith(PREFIX):
        TinySpec.parse(text)  # refuses what cannot be built
        return Found("tiny", text)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _folder(path.resolve())
    if path.is_file():
        return Found("gguf", path.name, _checked_gguf(path))
    if path.is_symlink():
        got = f"{text}, a link to {path.readlink().name}, which is gone"
        raise ModelError(problem("a model folder or a .gguf file", got, "fetch or copy the model again"))
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


def _builtin(name: str) -> str:
    if name not in BUILTIN_NAMES:
        known = ", ".join(BUILTIN + one for one in BUILTIN_NAMES)
        raise ModelError(problem(f"one of {known}", BUILTIN + name, "choose one of these"))
    return name


def _folder(path: Path) -> Found:
    """Name a folder; one in the cache of the hub library by the model's name and commit."""
    if path.name.startswith(_CACHED) and (path / "snapshots").is_dir():
        path = _snapshot(path)
    repository = path.parent.parent.name
    if path.parent.name == "snapshots" and repository.startswith(_CACHED):
        return Found("folder", repository.removeprefix(_CACHED).replace("--", "/"), path, path.name)
    return Found("folder", path.name, path)


def _snapshot(repository: Path) -> Path:
    """Return the snapshot of a repository in the cache: that of its main branch, or the only one."""
    branch = repository / "refs" / "main"
    if branch.is_file():
        chosen = repository / "snapshots" / branch.read_text(encoding="utf-8").strip()
        if chosen.is_dir():
            return chosen
    kept = sorted(one for one in (repository / "snapshots").iterdir() if one.is_dir())
    if len(kept) == 1:
        return kept[0]
    remedy = f"give one of {', '.join(one.name for one in kept)}" if kept else "fetch the model again"
    got = f"{len(kept)} in {repository.name}, and no main branch"
    raise ModelError(problem("one snapshot in a folder of the hub cache", got, remedy))


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
