"""Is what lies in a folder a whole checkpoint? Looked at before any weight is read.

A file cut short or a shard that never arrived may load as random numbers, which only the output shows.
"""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmreach.errors import ModelError, problem
from lmreach.models.adapter import ADAPTER, require_library

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_OLD_SINGLE, _OLD_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_HEADER_LIMIT = 100_000_000  # bytes; the format's own limit
_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3"}
_NEEDED = {".json", ".safetensors", ".bin", ".model", ".txt", ".tiktoken", ".jinja"}
_AGAIN = "fetch or copy the model again"


@dataclass(frozen=True)
class Checkpoint:
    """Weights of a folder that were found whole.

    Attributes
    ----------
    files
        The weight files.
    elements
        Number of stored weights (None for the older pickle format, whose header is not read).
    stored_dtype
        dtype of most of them, or ``unknown``.
    adapter
        Kind of an adapter that lies beside them; empty: none.
    """

    files: tuple[Path, ...]
    elements: int | None
    stored_dtype: str
    adapter: str = ""


def inspect(folder: Path, *, pickles: bool = False) -> Checkpoint:
    """Check that ``folder`` holds a config and whole weight files.

    Parameters
    ----------
    pickles
        Whether weights may be in the older format: reading one is running it.

    Raises
    ------
    ModelError
        Naming the file or tensor that is missing, cut short, or listed nowhere; or weights that are pickled.
    """
    _check_kind(folder)
    read_json(folder / "config.json", f"a model folder with config.json (in {folder.name})")
    return replace(_weights(folder, pickles=pickles), adapter=_adapter_beside(folder))


def _adapter_beside(folder: Path) -> str:
    return require_library(folder.name, _adapter_facts(folder)) if (folder / ADAPTER).is_file() else ""


def _weights(folder: Path, *, pickles: bool) -> Checkpoint:
    # In the order in which transformers looks for them.
    if (folder / _SINGLE).is_file():
        return _summary({folder / _SINGLE: header(folder / _SINGLE)})
    if (folder / _INDEX).is_file():
        return _summary(_indexed(folder))
    old = next((name for name in (_OLD_INDEX, _OLD_SINGLE) if (folder / name).is_file()), None)
    if old is not None and not pickles:
        raise pickled(folder.name, old)
    if old == _OLD_INDEX:
        return Checkpoint(tuple(_shards(folder, _OLD_INDEX)), None, "unknown")
    if old == _OLD_SINGLE:
        return Checkpoint((folder / _OLD_SINGLE,), None, "unknown")
    raise ModelError(
        problem(
            f"weights ({_SINGLE} or {_INDEX})",
            f"none in the folder {folder.name}",
            "give a folder with weights",
        )
    )


def pickled(name: str, file: str) -> ModelError:
    """Return the refusal of weights that are a program."""
    remedy = "convert them to safetensors, or pass --allow-pickle if you trust whoever made them"
    return ModelError(problem("weights that are data (safetensors, GGUF)", f"{file} in {name}", remedy))


def _check_kind(folder: Path) -> None:
    """Refuse what is no whole model, saying what it is and what to give instead."""
    try:
        names = sorted(folder.iterdir())
    except OSError as error:
        got = f"'{folder}': {error.strerror}"
        raise ModelError(problem("a folder that can be read", got, "check its permissions")) from error
    for path in names:
        if path.is_symlink() and not path.exists() and path.suffix in _NEEDED:
            got = f"{path.name} in {folder.name}, a link to a file that is gone"
            raise ModelError(problem("all files of a model", got, _AGAIN))
    whole = (folder / "config.json").is_file()
    if not whole and (folder / ADAPTER).is_file():
        raise _adapter_alone(folder)
    ggufs = [path.name for path in names if path.suffix == ".gguf"]
    if not whole and ggufs:
        got = f"the folder {folder.name} of .gguf files"
        raise ModelError(problem("a model folder or one .gguf file", got, f"give e.g. {folder / ggufs[0]}"))
    if not whole and (folder / "model_index.json").is_file():
        got = f"{folder.name}, a diffusion pipeline"
        raise ModelError(problem("a causal language model", got, "give a language model"))


def _adapter_facts(folder: Path) -> dict[str, Any]:
    return read_json(folder / ADAPTER, f"an adapter's {ADAPTER}")


def _adapter_alone(folder: Path) -> ModelError:
    """Compose what is said of an adapter without the model it was trained on."""
    facts = _adapter_facts(folder)
    kind, base = facts.get("peft_type", "PEFT"), facts.get("base_model_name_or_path") or "its base model"
    merge = "merge it (peft: merge_and_unload, then save_pretrained) and give the merged folder"
    got = f"{folder.name}, a {kind} adapter of {base}"
    if kind == "PROMPT_TUNING":
        merge = f"its vectors are for: lmreach judge {folder.name} {base} --target text:FILE"
    return ModelError(problem("a model", got, merge))


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Return a JSON object, or raise a `ModelError` that names the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(problem(what, f"no {path.name}", "give the folder that holds it")) from None
    except (OSError, ValueError) as error:
        raise ModelError(problem(what, f"{path.name}, which is no JSON ({error})", _AGAIN)) from None
    if not isinstance(value, dict):
        raise ModelError(problem(what, f"{path.name}, which holds no JSON object", _AGAIN))
    return value


def header(path: Path) -> dict[str, Any]:
    """Return the tensor entries of a safetensors file after checking its size against them.

    The format: 8 bytes little-endian length, so many bytes of JSON, then the tensors; each entry gives dtype,
    shape and its first and last offset, so the file's size is known before any tensor is read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(_HEADER_LIMIT, size - 8):
            raise _broken(path, f"{size} bytes, too short for its own header or no safetensors file")
        try:
            entries = json.loads(file.read(length))
        except ValueError:
            raise _broken(path, "a header that is no JSON") from None
    entries.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    if size != 8 + length + end:
        raise _broken(path, f"{size} bytes where the header says {8 + length + end}")
    return dict(entries)


def _broken(path: Path, got: str) -> ModelError:
    return ModelError(problem(f"a whole safetensors file {path.name}", got, _AGAIN))


def _shards(folder: Path, index: str) -> list[Path]:
    """Return the shards an index lists, after checking that each is there."""
    weight_map = read_json(folder / index, f"an index of shards {index}").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(problem(f"a weight_map in {index}", "none", _AGAIN))
    shards = [folder / name for name in sorted(set(weight_map.values()))]
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing:
        raise ModelError(problem(f"all {len(shards)} shards of {index}", f"no {', '.join(missing)}", _AGAIN))
    return shards


def _indexed(folder: Path) -> dict[Path, dict[str, Any]]:
    headers = {shard: header(shard) for shard in _shards(folder, _INDEX)}
    listed = set(read_json(folder / _INDEX, _INDEX)["weight_map"].items())
    stored = {(name, shard.name) for shard, entries in headers.items() for name in entries}
    for name, shard in sorted(listed - stored):
        raise ModelError(
            problem(f"tensor {name} in {shard}, as {_INDEX} says", f"no such tensor in {shard}", _AGAIN)
        )
    for name, shard in sorted(stored - listed):
        raise ModelError(problem(f"every tensor of {shard} in {_INDEX}", f"{name} is not listed", _AGAIN))
    return headers


def _summary(headers: dict[Path, dict[str, Any]]) -> Checkpoint:
    sizes: Counter[str] = Counter()
    for entries in headers.values():
        for entry in entries.values():
            count = 1
            for length in entry["shape"]:
                count *= length
            sizes[_NAMES.get(entry["dtype"], entry["dtype"].lower())] += count
    most = sizes.most_common(1)
    return Checkpoint(tuple(headers), sizes.total(), most[0][0] if most else "unknown")
