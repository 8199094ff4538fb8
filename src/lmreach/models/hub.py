"""Models named on the Hugging Face hub: fetched (or found in its cache), then treated as a folder."""

import os
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from lmreach.config import LoadConfig
from lmreach.errors import ModelError, problem
from lmreach.models.checkpoint import pickled

_SIDE_FILES = (".json", ".txt", ".model", ".tiktoken", ".jinja")
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_TIMEOUT = 10.0  # seconds for the first answer

# The hub library has changed its HTTP client twice; its own error names the base class of the one in use.
# Clients of the older kind raise OSError, as does a full disk.
_UNREACHABLE: tuple[type[BaseException], ...] = (HfHubHTTPError.__bases__[0], OSError, OfflineModeIsEnabled)


def is_offline(config: LoadConfig) -> bool:
    """Whether connections are ruled out, by our own option or by the hub library's variables."""
    flags = (os.environ.get("HF_HUB_OFFLINE", ""), os.environ.get("TRANSFORMERS_OFFLINE", ""))
    return config.offline or any(flag.upper() in {"1", "ON", "YES", "TRUE"} for flag in flags)


def fetch(name: str, config: LoadConfig, say: Callable[[str], None]) -> tuple[Path, str]:
    """Return the local folder of a hub model and its commit.

    Raises
    ------
    ModelError
        In different words: offline and not cached, not reachable, gated, no such model or revision.
    """
    if is_offline(config):
        return _cached(name, config, "offline is set (--offline, HF_HUB_OFFLINE)")
    try:
        info = HfApi().model_info(name, revision=config.revision, timeout=_TIMEOUT)
        wanted = wanted_files(
            [sibling.rfilename for sibling in info.siblings or []], code=config.trust_remote_code
        )
        pickles = [file for file in wanted if file.endswith(".bin")]
        if pickles and not config.allow_pickle:
            raise pickled(name, pickles[0])
        say(f"fetching {name} at {str(info.sha)[:8]} from the hub")
        folder = snapshot_download(name, revision=info.sha, allow_patterns=wanted)
    except GatedRepoError as error:
        raise _refused("a model you have access to", f"{name}, which is gated", _GATED) from error
    except RevisionNotFoundError as error:
        raise _refused(
            f"a revision of {name}", f"{config.revision}, which it does not have", "check it"
        ) from error
    except RepositoryNotFoundError as error:
        raise _refused("a model on the hub", f"{name}: no such model, or a private one", _UNKNOWN) from error
    except _UNREACHABLE as error:
        return _cached(name, config, f"the hub cannot be reached ({type(error).__name__})")
    return Path(folder), str(info.sha)


_GATED = "accept its terms on the hub and log in with `hf auth login`, or give a folder"
_UNKNOWN = "check the spelling, log in for a private model, or give a folder"


def wanted_files(files: list[str], *, code: bool) -> list[str]:
    """Choose what to fetch: one set of weights (safetensors before pickles), settings, tokenizer."""
    top = [name for name in files if "/" not in name]
    base = next((name for name in _WEIGHTS if name in top), "")
    stem, ending = base.removesuffix(".index.json").rsplit(".", 1) if base else ("model", "safetensors")
    weights = [
        n for n in top if n.endswith(f".{ending}") and (n == f"{stem}.{ending}" or n.startswith(f"{stem}-"))
    ]
    return weights + [n for n in top if n.endswith((*_SIDE_FILES, ".py") if code else _SIDE_FILES)]


def _cached(name: str, config: LoadConfig, why: str) -> tuple[Path, str]:
    try:
        folder = Path(snapshot_download(name, revision=config.revision, local_files_only=True))
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, OSError, ValueError) as error:
        where = f"{name} neither as a folder nor in the hub cache {constants.HF_HUB_CACHE}"
        remedy = "go online without the offline flag once, or give a folder or a .gguf file"
        raise _refused(f"a local model, because {why}", where, remedy) from error
    return folder, folder.name


def _refused(expected: str, got: str, remedy: str) -> ModelError:
    return ModelError(problem(expected, got, remedy))
