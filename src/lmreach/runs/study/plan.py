"""What a study would do, without doing it: its schedule from timed steps, its memory from one full step."""

import resource
import sys
import time
from typing import Any

import numpy as np
import torch

from lmreach.config import StudyConfig
from lmreach.config.given import configure
from lmreach.config.targets import labels
from lmreach.engine.clock import Clock
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import search_copy
from lmreach.progress import Progress, Silent
from lmreach.results.plan import PlannedCondition, PlanResults
from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.rounds import elsewhere_seconds, picture_seconds, planned
from lmreach.runs.study.search import SEARCH_SHARE, Search
from lmreach.runs.study.step_model import StepModel
from lmreach.runs.study.strings import Strings
from lmreach.runs.study.study_schedule import PICTURE_STRINGS
from lmreach.runs.study.threads import timed_threads
from lmreach.runs.study.timing import time_steps

__all__ = ["plan"]

_ROUND_WITHOUT_BUDGET = 32
# Drawing the report holds more than a step of a small model does; cells, two arrays as large as the head.
_REPORT_BYTES, _HEADS = 250 * 2**20, 2


def plan(
    model: ModelLike,
    config: StudyConfig | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    begun: float | None = None,
    **settings: Any,
) -> PlanResults:
    """Say what a study would measure, for how long, and in how much memory.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    config, settings
        See `StudyConfig`; settings by name replace those of the config.
    tokenizer
        Goes with a model of transformers.
    progress
        Told how far it is.
    begun
        When loading began, on `time.monotonic`; None: now.

    Raises
    ------
    LmreachError
        What a study would refuse.
    """
    asked, watched = configure(StudyConfig, config, settings), progress or Silent()
    if asked.cram.protocol != "frontier":
        remedy = "leave --protocol out, or run it: Ctrl-C leaves a valid run"
        raise InputError(problem("protocol frontier for a plan", asked.cram.protocol, remedy))
    clock = Clock(asked.budget_s, begun=begun)
    loaded = load(model, asked.load, tokenizer=tokenizer, progress=watched.note)
    strings = Strings(loaded, asked, watched.stage)
    strings.check()
    watched.stage("timing steps")
    with timed_threads(loaded) as threads:
        search = _search(loaded, asked)
        steps = time_steps(loaded, search)
        before = clock.spent()
        if asked.budget_s is not None:
            before += SEARCH_SHARE * max(asked.budget_s - before, 0.0)
        conditions, waiting = _conditions(asked, steps, before)
        _one_full_step(loaded, search, strings, steps, max(conditions, key=lambda one: one.m))
    spent = sum(one.seconds for one in conditions)
    elsewhere = (
        None if asked.budget_s is None else max(elsewhere_seconds(asked.budget_s) - before, clock.closing)
    )
    then = None
    if asked.budget_s is not None and elsewhere is not None:
        then = max(asked.budget_s - before - elsewhere - spent, 0.0)
    first = conditions[0]
    return PlanResults(
        model=loaded.facts.name,
        device=str(loaded.device),
        threads=threads,
        budget_s=asked.budget_s,
        before_s=before,
        conditions=conditions,
        measuring_s=spent,
        then_s=then,
        elsewhere_s=elsewhere,
        waiting=waiting,
        step_s=steps.step(Condition(first.target, first.m), min(first.strings, PICTURE_STRINGS)),
        peak_bytes=_peak_bytes(loaded.device) + _beside_bytes(loaded, asked),
    )


def _search(model: LoadedModel, asked: StudyConfig) -> Search:
    """Choose the copy that steps are taken on, as a study does; the length of starts changes no time."""
    return Search(search_copy(model, asked.cram.search_dtype).model, asked.cram, None)


def _conditions(
    asked: StudyConfig, steps: StepModel, before: float
) -> tuple[tuple[PlannedCondition, ...], tuple[str, ...]]:
    """Return what is measured first, or all without a budget, and what waits."""
    cram = asked.cram
    if asked.budget_s is None:
        every = [Condition(kind, m, cram.max_steps) for m in asked.m for kind in labels(asked.targets)]
        own = [(one, cram.strings) for one in every]
        waiting: tuple[str, ...] = ()
    else:
        schedule = planned(asked, steps, picture_seconds(asked.budget_s, before))
        own = [(one, min(PICTURE_STRINGS, cram.strings)) for one in schedule.picture]
        waiting = tuple(f"{kind} m={m}" for kind, m in schedule.waiting)
    found = [
        PlannedCondition(
            target=one.target,
            m=one.m,
            steps=one.steps,
            strings=strings,
            seconds=steps.seconds(Chunk(one, 0, strings)),
        )
        for one, strings in own
    ]
    return tuple(found), waiting


def _one_full_step(
    model: LoadedModel, search: Search, strings: Strings, steps: StepModel, widest: PlannedCondition
) -> None:
    """Take two steps as wide as any of the plan, for the memory they need."""
    n = min(round(2 * steps.frontier(Condition("random", widest.m))), strings.limit(widest.m))
    rows = min(widest.strings, _ROUND_WITHOUT_BUDGET)
    taken: list[float] = []
    cram(
        model,
        draw(model, "random", rows, n, seed=0).ids,
        widest.m,
        search.optimiser.model_copy(update={"protocol": "fixed", "max_steps": 2, "patience": 2}),
        generators=[np.random.default_rng(i) for i in range(rows)],
        batch_size=rows,
        search=search.model,
        on_step=lambda _: taken.append(time.monotonic()),
        stop=lambda: len(taken) > 1,
    )


def _peak_bytes(device: torch.device) -> int:
    """Return the most memory held so far: of the GPU where the model is on one, else of the process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def _beside_bytes(model: LoadedModel, asked: StudyConfig) -> int:
    """Return the bytes that the parts beside cramming take."""
    head = 4 * model.facts.rows * model.facts.hidden_width
    return _REPORT_BYTES + (_HEADS * head if asked.decoder_cells else 0)
