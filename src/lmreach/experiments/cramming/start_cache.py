"""Lengths of first vectors that were found before, on disk beside the converted models.

The probe takes minutes on a model of some size, and its answer hangs on the model, on m and on how it is
optimised: so every command and every run takes it from here once it is known.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from lmreach.config import OptimiserConfig
from lmreach.models import cache
from lmreach.models.loaded import LoadedModel
from lmreach.results.study import StartProbe

__all__ = ["recall", "remember", "start_key"]

_VERSION = 1  # raised when the probe changes its meaning

# What has no part in a probe: its steps, strings and seeds are its own. Whatever else a config holds has.
_NOT_ASKED = {"protocol", "max_steps", "patience", "lookahead", "restarts", "start_scale", "seed", "flips"}


def start_key(
    model: LoadedModel, config: OptimiserConfig, m: int, *, quick: bool = False
) -> dict[str, JsonValue]:
    """Return what the answer hangs on, JSON-ready: weights, number format, m, and how vectors are moved.

    Parameters
    ----------
    quick
        Whether it is the answer of the quick probe.
    """
    key: dict[str, JsonValue] = {
        "version": _VERSION,
        "fingerprint": model.facts.fingerprint,
        "dtype": model.facts.dtype,
        "m": m,
        "config": config.model_dump(mode="json", exclude=_NOT_ASKED),
    }
    return key | {"probe": "quick"} if quick else key


def folder() -> Path:
    """Return where probes are kept."""
    return cache.root() / cache.STARTS


def recall(key: Mapping[str, JsonValue]) -> StartProbe | None:
    """Return the numbers of an earlier probe, None if there are none that can be read."""
    try:
        kept = json.loads(_place(key).read_text(encoding="utf-8"))
        return StartProbe.model_validate(kept["probe"]) if kept["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(key: Mapping[str, JsonValue], probe: StartProbe) -> None:
    """Keep the numbers of a probe; where the place cannot be written nothing is kept, and nothing is lost."""
    text = json.dumps({"key": key, "probe": probe.model_dump(mode="json")}, indent=1, allow_nan=False)
    try:
        cache.write(_place(key), text)
    except OSError:
        return


def _place(key: Mapping[str, JsonValue]) -> Path:
    text = json.dumps(key, sort_keys=True, separators=(",", ":"))
    return folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
