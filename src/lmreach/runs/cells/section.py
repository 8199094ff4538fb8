"""The part of a study about decoder cells, cut to the seconds it may take."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from lmreach.errors import InputError
from lmreach.experiments.cells.decoder import Decoder, decoder_of
from lmreach.experiments.cells.rare import RareStopped
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.results.cells import CellMap, Cells, Rare, Shares, Unreachable
from lmreach.runs.cells import parts as cells

__all__ = ["MAP_TEXTS", "cells_section"]

# Beginnings that a model of English goes on with in different ways.
MAP_TEXTS = ("The capital of France is", "Once upon a time there was a", "The largest planet is")
_TOKENS = 64  # drawn from each distribution for the mean log share
_FEWEST_SAMPLES, _FEWEST_JUDGED, _FEWEST_RARE = 1000, 64, 8
_SHARES, _JUDGING, _RARE = 0.3, 0.3, 0.4  # of the seconds
_PROBED, _PROBES = 64, 3  # states in a timed product, and how many of those
_JUDGED_STREAM = 31
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
) -> tuple[Cells, Notes]:
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
    section = _Section(model, decoder, seconds, rate, seed, limit_dtype, stop)
    found: dict[str, Shares | CellMap | Unreachable | Rare] = {}
    notes: Notes = []
    for name, part in (
        ("shares", section.shares),
        ("map", section.map),
        ("unreachable", section.judged),
        ("rare", section.rare),
    ):
        if stop():
            notes.append((f"decoder cells: {name}", "the run was stopped"))
            continue
        say(f"decoder cells: {name}")
        try:
            with stoppable(section.timer(1.0)):
                record, why = part()
        except PassStopped:
            record, why = None, section.not_through(1.0)
        if record is None:
            notes.append((f"decoder cells: {name}", why))
        else:
            found[name] = record
    return Cells.model_validate(found), notes


_Part = tuple[Shares | CellMap | Unreachable | Rare | None, str]


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


@dataclass(frozen=True, eq=False)
class _Section:
    """What the parts share; each returns its record, or None and why it was left out.

    ``rate`` is the number of states per second whose scores can be computed, None without ``seconds``.
    """

    model: LoadedModel
    decoder: Decoder
    seconds: float | None
    rate: float | None
    seed: int
    limit_dtype: str
    stop: Callable[[], bool]

    def shares(self) -> _Part:
        wanted = self._affordable(_SHARES, cells.default_samples(self.decoder))
        if wanted < _FEWEST_SAMPLES:
            return None, f"the budget allows {wanted} states, and fewer than {_FEWEST_SAMPLES} say little"
        known = self.decoder.norm.kind in ("rms", "layer")
        measure = cells.measure_of(self.model, "gaussian" if known else "empirical", seed=self.seed)
        over, counted = self.timer(2 * _SHARES), list[int]()
        try:
            with stoppable(over):
                record = cells.shares_record(
                    self.model,
                    self.decoder,
                    measure,
                    samples=wanted,
                    say=counted.append,
                    stop=lambda: bool(counted) and over(),  # shares of no states are none
                )
        except PassStopped:  # states of real prompts cost passes of the model
            return None, self.not_through(2 * _SHARES)
        return record, ""

    def timer(self, share: float) -> Callable[[], bool]:
        """Return what says, from now on, whether a share of the seconds is spent or the run was stopped."""
        begun = time.monotonic()

        def over() -> bool:
            spent = time.monotonic() - begun
            return self.stop() or (self.seconds is not None and spent > share * self.seconds)

        return over

    def not_through(self, share: float) -> str:
        """Return why a part was given up."""
        within = (
            "" if self.seconds is None else f" within the {share * self.seconds:.0f} s that the budget allows"
        )
        return f"not through{within}"

    def map(self) -> _Part:
        if self.model.tokenizer is None:
            return None, "the model has no tokenizer to read texts with"
        try:
            return cells.map_record(self.model, self.decoder, MAP_TEXTS), ""
        except InputError as error:  # these texts are ours: a tokenizer of another alphabet cannot read them
            return None, str(error)

    def judged(self) -> _Part:
        decoder, tokens = self.decoder, None
        wanted = self._affordable(_JUDGING / _OVERHEAD, decoder.vocab)
        if wanted < min(decoder.vocab, _FEWEST_JUDGED):
            return None, f"the budget allows {wanted} tokens to be judged, of {decoder.vocab}"
        if wanted < decoder.vocab:
            rng = np.random.default_rng([self.seed, _JUDGED_STREAM])
            tokens = rng.choice(decoder.ids, wanted, replace=False)
        limit_s = None if self.seconds is None else 2 * _JUDGING * self.seconds
        record = cells.unreachable_record(self.model, decoder, tokens=tokens, limit_s=limit_s, stop=self.stop)
        return record, ""

    def rare(self) -> _Part:
        wanted = min(_TOKENS, self.decoder.vocab)
        allowed = None if self.seconds is None else _RARE * self.seconds
        over = self.timer(_RARE)
        try:
            if allowed is not None:
                each = cells.rare_seconds(self.decoder, seed=self.seed, stop=over)
                # Two distributions, uniform and self, hardly share tokens; half of the time for unlucky ones.
                wanted = min(wanted, int(allowed / (4 * each)))
            if wanted < min(_FEWEST_RARE, self.decoder.vocab):
                return None, f"the budget allows {wanted} tokens, and fewer than {_FEWEST_RARE} say little"
            record = cells.rare_record(
                self.model,
                self.decoder,
                tokens=wanted,
                seed=self.seed,
                limit_dtype=self.limit_dtype,
                stop=over,
            )
        except RareStopped:
            return None, self.not_through(_RARE)
        return record, ""

    def _affordable(self, share: float, most: int) -> int:
        """Return how many states' worth of scores fit into a share of the seconds, at most ``most``."""
        if self.seconds is None or self.rate is None:
            return most
        return min(most, int(share * self.seconds * self.rate))
