"""What a run's optimiser works on and starts from: the quick copy of the model, the length of its starts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from lmreach.config import CramPlan, OptimiserConfig
from lmreach.experiments.cramming.start_scale import find_start
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import search_copy, twin, untimed
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.results.study import SearchRecord

SEARCH_SHARE = 0.1
"""Of what remains of a budget before cramming, for choosing the length of the first vectors."""


@dataclass(frozen=True, slots=True)
class Search:
    """What `lmreach.experiments.cramming.cram.cram` is given.

    Attributes
    ----------
    model
        The copy that steps are taken on, or the model itself.
    config
        The plan as it was asked for: what was found stands in the record.
    record
        What was chosen and from what; handed in again it gives the same search. None: nothing is run.
    """

    model: LoadedModel
    config: CramPlan
    record: SearchRecord | None

    @property
    def optimiser(self) -> OptimiserConfig:
        """What each string is run with; starts are as long as real inputs where no time was left to look."""
        scale = self.start_scale
        return self.config.optimiser(1.0 if scale is None else scale)

    @property
    def start_scale(self) -> float | None:
        """Length of the first vectors, found or asked for; None: the protocol's own, or nothing was found."""
        record = self.record
        if record is None or "start_scale" not in record.model_fields_set:
            return self.config.start_scale
        return record.start_scale

    @property
    def doubt(self) -> str:
        """Why the length of the first vectors is not founded on a probe; empty where it is, or was given."""
        return "" if self.record is None else self.record.doubt


def prepare(
    model: LoadedModel,
    config: CramPlan,
    *,
    m: int,
    kept: SearchRecord | None = None,
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Search:
    """Choose the copy and the starts' length, or take what an earlier part of the run has chosen.

    Parameters
    ----------
    m
        The smallest number of prompt vectors that will be asked for.
    kept
        The record of an interrupted run that goes on here.
    seconds
        Most time for the probe of the starts' length, which is then a smaller one; None: as long as it takes.
    stop
        Asked before every step of the probe.

    Notes
    -----
    The published protocol has its own starts, and its seconds are compared with ours: it is left as it is.
    """
    begun = time.monotonic()
    if config.protocol == "published":
        return Search(model, config, SearchRecord(dtype=_name(model), attention=None, start_scale=None))
    if kept is not None:
        copied = _as_kept(model, kept)
        return Search(copied, config, kept)
    ends = None if seconds is None else begun + seconds

    def over() -> bool:
        return stop() or (ends is not None and time.monotonic() > ends)

    try:
        with stoppable(over):
            found = search_copy(model, config.search_dtype)
    except PassStopped:
        found = untimed(model)
    scale, start = config.start_scale, None
    if scale is None:
        left = None if ends is None else max(ends - time.monotonic(), 0.0)
        probe = find_start(model, config.optimiser(1.0), m=m, search=found.model, seconds=left, stop=stop)
        scale, start = probe.scale, probe.written()
    record = SearchRecord(
        dtype=found.dtype,
        attention=found.attention,
        probe_seconds=found.seconds,
        probe_of_start=start,
        start_scale=scale,
        seconds=round(time.monotonic() - begun, 1),
    )
    return Search(found.model, config, record)


def _as_kept(model: LoadedModel, kept: SearchRecord) -> LoadedModel:
    """Return the copy that a record names; its timings are not asked again, they would differ."""
    own = str(getattr(model.model.config, "_attn_implementation", None))
    if (kept.dtype, kept.attention) == (_name(model), own):
        return model
    return twin(model, getattr(torch, kept.dtype), kept.attention)


def _name(model: LoadedModel) -> str:
    return str(model.dtype).removeprefix("torch.")
