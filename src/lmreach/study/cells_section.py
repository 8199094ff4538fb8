"""The part of a study about decoder cells, cut to the seconds it may take."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lmreach.experiments.decoder import Decoder, decoder_of
from lmreach.experiments.rare_cells import RareStopped
from lmreach.models.loaded import LoadedModel
from lmreach.study import cells

__all__ = ["MAP_TEXTS", "cells_section"]

# Beginnings that any model with a tokenizer can read.
MAP_TEXTS = ("The capital of France is", "Once upon a time there was a", "The largest planet is")
_TOKENS = 64  # drawn from each distribution for the mean log share
_FEWEST_SAMPLES, _FEWEST_JUDGED, _FEWEST_RARE = 1000, 64, 8
_SHARES, _JUDGING, _RARE = 0.3, 0.3, 0.4  # of the seconds
_PROBED, _PROBES = 64, 3  # states in a timed product, and how many of those
_OVERHEAD = 2.0  # of judging a token, over one product with all rows

Notes = list[tuple[str, str]]


def cells_section(
    model: LoadedModel,
    *,
    seconds: float | None,
    seed: int,
    limit_dtype: str,
    stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[dict[str, Any], Notes]:
    """Return shares, refined limit, verdicts and map as the seconds allow, and what was left out and why.

    Parameters
    ----------
    seconds
        For all parts together; None: whole parts, however long they take.
    limit_dtype
        Number format whose unit roundoff sets eps in ln P.
    stop
        Asked often; what was not finished by then is left out.
    say
        Told before each part.
    """
    decoder = decoder_of(model)
    rate = None if seconds is None else _states_per_second(decoder)
    found: dict[str, Any] = {}
    notes: Notes = []
    for name, part in (("shares", _shares), ("map", _map), ("unreachable", _judged), ("rare", _rare)):
        if stop():
            notes.append((f"decoder cells: {name}", "the run was stopped"))
            continue
        say(f"decoder cells: {name}")
        record, why = part(model, decoder, seconds, rate, seed, limit_dtype, stop)
        if record is None:
            notes.append((f"decoder cells: {name}", why))
        else:
            found[name] = record
    return found, notes


_Part = tuple[dict[str, Any] | None, str]


def _states_per_second(decoder: Decoder) -> float:
    """Time the product that all parts consist of; the best of some, for other work may interrupt one."""
    states = torch.randn(_PROBED, decoder.width, generator=torch.Generator().manual_seed(0))
    states = states.to(decoder.rows.device)
    decoder.scores(states)
    best = float("inf")
    for _ in range(_PROBES):
        begun = time.monotonic()
        decoder.scores(states)
        best = min(best, time.monotonic() - begun)
    return _PROBED / max(best, 1e-6)


def _shares(
    model: LoadedModel,
    decoder: Decoder,
    seconds: float | None,
    rate: float | None,
    seed: int,
    limit_dtype: str,
    stop: Callable[[], bool],
) -> _Part:
    wanted = cells.default_samples(decoder)
    if seconds is not None and rate is not None:
        wanted = min(wanted, int(_SHARES * seconds * rate))
    if wanted < _FEWEST_SAMPLES:
        return None, f"the budget allows {wanted} states, and fewer than {_FEWEST_SAMPLES} say little"
    known = decoder.norm.kind in ("rms", "layer")
    measure = cells.measure_of(model, "gaussian" if known else "empirical", seed=seed)
    return cells.shares_record(model, decoder, measure, samples=wanted), ""


def _judged(
    model: LoadedModel,
    decoder: Decoder,
    seconds: float | None,
    rate: float | None,
    seed: int,
    limit_dtype: str,
    stop: Callable[[], bool],
) -> _Part:
    tokens, limit_s = None, None
    if seconds is not None and rate is not None:
        limit_s = 2 * _JUDGING * seconds
        affordable = int(_JUDGING * seconds * rate / _OVERHEAD)
        if affordable < min(decoder.vocab, _FEWEST_JUDGED):
            return None, f"the budget allows {affordable} tokens to be judged, of {decoder.vocab}"
        if affordable < decoder.vocab:
            rng = np.random.default_rng([seed, 31])
            tokens = rng.choice(decoder.ids, affordable, replace=False)
    return cells.unreachable_record(model, decoder, tokens=tokens, limit_s=limit_s, stop=stop), ""


def _rare(
    model: LoadedModel,
    decoder: Decoder,
    seconds: float | None,
    rate: float | None,
    seed: int,
    limit_dtype: str,
    stop: Callable[[], bool],
) -> _Part:
    wanted = min(_TOKENS, decoder.vocab)
    allowed = None if seconds is None else _RARE * seconds
    over = _over(stop, allowed)
    try:
        if allowed is not None:
            each = cells.rare_seconds(decoder, seed=seed, stop=over)
            # Two distributions, uniform and self, hardly share tokens; half of the time for unlucky ones.
            wanted = min(wanted, int(allowed / (4 * each)))
        if wanted < min(_FEWEST_RARE, decoder.vocab):
            return None, f"the budget allows {wanted} tokens, and fewer than {_FEWEST_RARE} say little"
        record = cells.rare_record(
            model, decoder, tokens=wanted, seed=seed, limit_dtype=limit_dtype, stop=over
        )
    except RareStopped:
        return None, f"not through within the {allowed or 0:.0f} s that the budget allows"
    return record, ""


def _over(stop: Callable[[], bool], seconds: float | None) -> Callable[[], bool]:
    begun = time.monotonic()
    return lambda: stop() or (seconds is not None and time.monotonic() - begun > seconds)


def _map(
    model: LoadedModel,
    decoder: Decoder,
    seconds: float | None,
    rate: float | None,
    seed: int,
    limit_dtype: str,
    stop: Callable[[], bool],
) -> _Part:
    if model.tokenizer is None:
        return None, "the model has no tokenizer to read texts with"
    return cells.map_record(model, decoder, MAP_TEXTS), ""
