"""Where a result came from: versions, machine, threads and commit, without any path or host name."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue

from lmreach import __version__
from lmreach.config.targets import TargetKind, labels
from lmreach.results.run import Provenance

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "scipy", "gguf", "accelerate")

# Settings whose words may be paths; those of targets have names of their own.
_PATHS = ("fine_tune", "runs")


def provenance(*, threads: int, device: str, started: datetime, **run: Any) -> Provenance:
    """Return what identifies the software and machine behind a result.

    Parameters
    ----------
    threads
        Threads that the arithmetic really used.
    device
        Device that the model really sat on.
    started
        When the run began.
    run
        Fields of `Provenance` that the run itself knows.
    """
    return Provenance(
        lmreach=__version__,
        versions={name: there for name in _PACKAGES if (there := _version(name)) is not None},
        python=platform.python_version(),
        platform=f"{platform.system()}-{platform.machine()}",
        processor=_processor(),
        cores=os.cpu_count(),
        threads=threads,
        device=device,
        git_commit=_commit(),
        started=started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **run,
    )


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _processor() -> str:
    """Return the processor's own name where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def _commit() -> str | None:
    """Return the commit of the source tree this package runs from, or None when it was installed."""
    here = Path(__file__).resolve().parent
    root = next((parent for parent in here.parents if (parent / ".git").exists()), None)
    if root is None or not (root / "pyproject.toml").is_file() or "site-packages" in here.parts:
        return None
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def command_line() -> str:
    """Return the command as typed, files and folders by their own names instead of their paths."""
    return " ".join(["lmreach", *(without_path(word) for word in sys.argv[1:])])


def without_path(word: str) -> str:
    """Return a word with the file or folder it names by its own name: results travel, paths do not."""
    kind, colon, rest = word.partition(":")
    if colon and rest and kind in ("text", "ids", "words", "dataset"):
        return TargetKind.parse(word).label
    path = Path(word)
    return _last(word) if path.is_absolute() or (os.sep in word and path.exists()) else word


def public(config: BaseModel, model: str) -> dict[str, JsonValue]:
    """Return settings as results show them: the model by its name, no paths.

    Parameters
    ----------
    model
        Name of the model that was loaded.
    """
    return _public(config.model_dump(mode="json"), model)


def _public(settings: dict[str, Any], model: str) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = dict(settings)
    for name, value in settings.items():
        if isinstance(value, dict):
            shown[name] = _public(value, model)
        elif name == "model" and value is not None:
            shown[name] = model
        elif name == "targets":
            shown[name] = list(labels(value))
        elif name in _PATHS and value is not None:
            shown[name] = without_path(value) if isinstance(value, str) else [*map(without_path, value)]
    return shown


def _last(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def machine() -> dict[str, str]:
    """Return what a run goes on with, by name: versions and machine, whose change it is told of."""
    found = {name: there for name in _PACKAGES if (there := _version(name)) is not None}
    return {
        "lmreach": __version__,
        **found,
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Say in words what is another than it was; empty: nothing."""
    names = [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
    return ", ".join(
        f"{name} {now.get(name, 'none')} instead of {before.get(name, 'none')}" for name in names
    )
