"""Stable names of trials: what was asked decides the key, never where, when or in which order it ran."""

import hashlib
import json
from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Int

from lmreach.config import CramPlan
from lmreach.identity import weights_of

RECORD_VERSION = 1

# Settings that say nothing about one string stay out of its key; the batch size changes its rounding only. A
# trial at one length is that of its target: which other lengths are tried, and up to where, is no part of it.
_NOT_IN_KEY = {"strings", "batch_size", "length"}
_NOT_IN_KEY_AT_A_LENGTH = _NOT_IN_KEY | {"n_max", "lookahead"}


def cram_key(
    *,
    fingerprint: str,
    dtype: str,
    m: int,
    target: Int[np.ndarray, " n"],
    config: CramPlan,
    occurrence: int = 0,
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
        Protocol, optimiser and seed; the number of strings, the lengths tried (the target has its own) and
        the batch size are left out.
    occurrence
        How often the same target came before among the strings asked for: each is a trial of its own.
    """
    asked = {
        "record": RECORD_VERSION,
        "kind": "cram",
        "fingerprint": weights_of(fingerprint),
        "dtype": dtype,
        "m": m,
        "target": [int(i) for i in target],
        "occurrence": occurrence,
        "config": config.model_dump(mode="json", exclude=_outside(config) | _absent(config)),
    }
    return digest(asked)


def _outside(config: CramPlan) -> set[str]:
    return _NOT_IN_KEY if config.protocol == "frontier" else _NOT_IN_KEY_AT_A_LENGTH


def _absent(config: CramPlan) -> set[str]:
    """Name the texts that are not there: keys written before there were any stay what they are."""
    return {name for name in ("prefix", "suffix") if not getattr(config, name)}


def occurrences(targets: Int[np.ndarray, "strings n"]) -> list[int]:
    """Return for each target how many equal ones stand before it."""
    seen: Counter[bytes] = Counter()
    counts = []
    for target in targets:
        counts.append(seen[target.tobytes()])
        seen[target.tobytes()] += 1
    return counts


def digest(value: Any) -> str:
    """Return 32 hex digits of the sha256 of ``value`` written as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def key_seed(key: str, stream: int) -> np.random.Generator:
    """Return the random generator that belongs to a trial: order and batch cannot reach it."""
    return np.random.default_rng([int(key, 16), stream])
