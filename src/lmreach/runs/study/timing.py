"""Timed steps before a plan is made: what a pass, a position and a decoded token cost here and now."""

import time
from collections.abc import Callable

import numpy as np
import torch

from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.frontier import block_length
from lmreach.experiments.targets.draw import draw
from lmreach.models.decode import greedy
from lmreach.models.frame import frame_of
from lmreach.models.loaded import LoadedModel
from lmreach.runs.study.search import Search
from lmreach.runs.study.step_model import StepModel

__all__ = ["time_steps"]

_FEW, _MANY = 1, 8  # rows
_TOKENS = 4
# Quick steps are timed more than once: the quickest counts, as others may use the machine.
_QUICK_S, _TIMES = 0.3, 4


def time_steps(model: LoadedModel, search: Search, *, now: Callable[[], float] = time.monotonic) -> StepModel:
    """Time optimiser steps of one and of eight strings at m = 1, and a few decoding steps.

    Parameters
    ----------
    search
        What steps are taken on.
    now
        The clock.

    Raises
    ------
    PassStopped
        A limit that was put around this was met.

    Notes
    -----
    The first step of each is left out: it pays for memory and kernels that later steps reuse.
    """
    width, config = model.facts.width, search.config
    frame = frame_of(model, config.bos, config.prefix, config.suffix)
    n = block_length(config, 1, width)
    if model.facts.context is not None:
        n = max(1, min(n, model.facts.context - 1 - frame.length))
    few, many = (_step_seconds(model, search, rows, n, now) for rows in (_FEW, _MANY))
    row = 1 + frame.length + n
    per_position = max((many - few) / ((_MANY - _FEW) * row), 0.1 * many / (_MANY * row))
    return StepModel(
        per_pass=max(many - _MANY * row * per_position, 0.0),
        per_position=per_position,
        per_token=_token_seconds(model, now),
        block=lambda m: block_length(config, m, width),
        around=frame.length,
    )


def _step_seconds(model: LoadedModel, search: Search, rows: int, n: int, now: Callable[[], float]) -> float:
    """Return the seconds of the quickest of a few steps."""
    ticks = [now()]

    def enough() -> bool:
        if len(ticks) < 3:
            return False
        return len(ticks) > 1 + _TIMES or ticks[-1] - ticks[-2] > _QUICK_S

    config = search.optimiser.model_copy(
        update={"protocol": "fixed", "restarts": 1, "max_steps": 3 + _TIMES, "patience": 3 + _TIMES}
    )
    cram(
        model,
        draw(model, "random", rows, n, seed=config.seed).ids,
        1,
        config,
        generators=[np.random.default_rng(i) for i in range(rows)],
        batch_size=rows,
        search=search.model,
        on_step=lambda _step: ticks.append(now()),
        stop=enough,
    )
    # A string so short that it came out at once leaves the first step alone.
    laps = np.diff(ticks)
    return float(min(laps[1:] if len(laps) > 1 else laps, default=0.0))


def _token_seconds(model: LoadedModel, now: Callable[[], float]) -> float:
    vectors = model.input_vectors(torch.from_numpy(model.plain_ids[:1]).to(model.device))
    tokens = _TOKENS if model.facts.context is None else max(1, min(_TOKENS, model.facts.context - 1))
    begun = now()
    greedy(model, vectors, tokens)
    return (now() - begun) / tokens
