"""How long one string takes on this machine: a few timed steps before a plan is made."""

import time

import numpy as np

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.frontier import block_length
from lmreach.experiments.targets.draw import draw
from lmreach.models.loaded import LoadedModel

_STEPS = 3
# Most strings stop growing before their last step, and frontiers grow beyond the probe's short one.
_STEPS_USED = 0.8
_FRONTIER_GROWTH = 2.0


def seconds_per_string(
    model: LoadedModel, config: OptimiserConfig, *, rows: int, search: LoadedModel | None = None
) -> float:
    """Return a rough cost in seconds of one string at m = 1, from a few steps of ``rows`` random strings.

    The first step is left out: it pays for memory and kernels that later steps reuse.
    """
    n = block_length(config, 1, model.facts.width) + 1
    ids = draw(model, "random", rows, n, seed=config.seed).ids
    ticks: list[float] = []
    cram(
        model,
        ids,
        1,
        config.model_copy(update={"protocol": "fixed", "restarts": 1}),
        generators=[np.random.default_rng(i) for i in range(rows)],
        batch_size=rows,
        search=search,
        on_step=lambda _step: ticks.append(time.monotonic()),
        stop=lambda: len(ticks) > _STEPS,
    )
    if len(ticks) < 2:
        return 0.0
    step = (ticks[-1] - ticks[0]) / (len(ticks) - 1)
    return step / rows * config.max_steps * _STEPS_USED * _FRONTIER_GROWTH
