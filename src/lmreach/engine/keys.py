"""Stable names of trials: what was asked decides the key, never where, when or in which order it ran."""

import hashlib
import json
from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Int
from pydantic import JsonValue

from lmreach.config import CramPlan
from lmreach.engine.store import Store
from lmreach.identity import weights_of

RECORD_VERSION = 2
"""Of the keys that new runs have. A run keeps the version it began with, or its trials would be run again."""

# Settings that say nothing about one string stay out of its key; the batch size changes its rounding only. A
# trial at one length is that of its target: which other lengths are tried, and up to where, is no part of it.
_NOT_IN_KEY = {"strings", "batch_size", "length"}
_NOT_IN_KEY_AT_A_LENGTH = _NOT_IN_KEY | {"n_max", "lookahead"}

# What each setting was when keys of version 2 began, or what a later one means when it is not in use. These
# are left out of a key, so that a new setting changes no old key. Entries are added, never changed: where the
# default of a setting changes, both the old and the new value keep the keys they have.
_UNSAID: dict[str, JsonValue] = {
    "protocol": "frontier",
    "n_max": None,
    "max_steps": 300,
    "patience": 150,
    "lookahead": None,
    "lr": 0.5,
    "lr_end": 0.03,
    "start_scale": None,
    "beta1": 0.85,
    "beta2": 0.9,
    "unsolved_weight": 2.0,
    "unsolved_weight_end": 12.0,
    "restarts": 1,
    "bos": "none",
    "prefix": "",
    "suffix": "",
    "search_dtype": "auto",
    "seed": 0,
    "within": "",
    "flips": 20,
}

# The settings that keys of version 1 spell out; texts only where there are any.
_IN_VERSION_1 = set(_UNSAID) - {"within", "flips"}
_TEXTS = {"prefix", "suffix"}


def cram_key(
    *,
    fingerprint: str,
    dtype: str,
    m: int,
    target: Int[np.ndarray, " n"],
    config: CramPlan,
    occurrence: int = 0,
    version: int = RECORD_VERSION,
    start_scale: float | None = None,
) -> str:
    """Return the key of one cramming trial: 32 hex digits of a sha256.

    Parameters
    ----------
    fingerprint, dtype
        Of the model as computed with; of the fingerprint, the part that names the weights: a run belongs to
        one model, settings included, and keys stay what they were before fingerprints knew of settings.
    m
        Number of prompt vectors.
    target
        The ids asked for, shape (n,).
    config
        Protocol, optimiser and seed as they were asked for; the number of strings, the lengths tried (the
        target has its own) and the batch size are left out.
    occurrence
        How often the same target came before among the strings asked for: each is a trial of its own.
    version
        Of the run's keys, see `record_version`.
    start_scale
        Length of the first vectors that was found. Part of keys of version 1 only, where a slow machine that
        found another length drew other starts.
    """
    asked: dict[str, JsonValue] = {
        "record": version,
        "kind": "cram",
        "fingerprint": weights_of(fingerprint),
        "dtype": dtype,
        "m": m,
        "target": [int(i) for i in target],
        "occurrence": occurrence,
        "config": _version_1(config, start_scale) if version == 1 else _said(config),
    }
    return digest(asked)


def cut_key(key: str, steps: int) -> str:
    """Return the key of a trial that was cut after so many steps: the whole one can still be run."""
    return digest({"kind": "cut", "of": key, "steps": steps})


def _said(config: CramPlan) -> dict[str, JsonValue]:
    """Return the settings of a string that are not `_UNSAID`."""
    outside = _NOT_IN_KEY if config.protocol == "frontier" else _NOT_IN_KEY_AT_A_LENGTH
    held = config.model_dump(mode="json", exclude=outside)
    return {name: value for name, value in held.items() if value != _UNSAID[name]}


def _version_1(config: CramPlan, start_scale: float | None) -> dict[str, JsonValue]:
    outside = _NOT_IN_KEY if config.protocol == "frontier" else _NOT_IN_KEY_AT_A_LENGTH
    held = config.model_dump(mode="json", include=_IN_VERSION_1 - outside)
    given = {name: value for name, value in held.items() if value or name not in _TEXTS}
    return {**given, "start_scale": config.start_scale if start_scale is None else start_scale}


def record_version(store: Store) -> int:
    """Return the version of a run's keys, and keep it: the present one, or 1 where older trials are there."""
    kept = store.meta(_KEPT_AS)
    if kept is None:
        kept = 1 if store.keys() else RECORD_VERSION
        store.put_meta(_KEPT_AS, kept)
    return int(kept)


_KEPT_AS = "record_version"


def occurrences(targets: Int[np.ndarray, "strings n"]) -> list[int]:
    """Return for each target how many equal ones stand before it."""
    return Occurrences().of(targets, 0)


class Occurrences:
    """Counts of equal targets before each, of strings that become more and never others."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()
        self._counts: list[int] = []

    def of(self, targets: Int[np.ndarray, "strings n"], first: int) -> list[int]:
        """Return the counts from a place on; only what is new is counted."""
        for target in targets[len(self._counts) :]:
            self._counts.append(self._seen[target.tobytes()])
            self._seen[target.tobytes()] += 1
        return self._counts[first : len(targets)]


def digest(value: Any) -> str:
    """Return 32 hex digits of the sha256 of ``value`` written as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def key_seed(key: str, stream: int) -> np.random.Generator:
    """Return the random generator that belongs to a trial: order and batch cannot reach it."""
    return np.random.default_rng([int(key, 16), stream])
