"""The parts of a study beside cramming: hidden states, decoder cells, census, copying.

Cramming is the main job. These come after its first complete picture, each with a share of what a budget
leaves beside the measurement, and are named as left out where that is too little. What they found is kept
with the run: a resumed run does not measure it again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from lmreach.config import StudyConfig
from lmreach.engine.clock import Clock
from lmreach.engine.store import Store
from lmreach.errors import InputError
from lmreach.experiments.census.tokens import BLOCK
from lmreach.experiments.states.stream import HiddenSupport, hidden_support
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.results.cells import Cells
from lmreach.results.census import Census
from lmreach.results.copying import Copying
from lmreach.results.upgrade import read_cells, read_census, read_copying
from lmreach.runs.cells.section import cells_section
from lmreach.runs.census.run import census_section
from lmreach.runs.copying.run import copy_section
from lmreach.runs.study.step_model import StepModel

__all__ = ["Sections"]

# Of the seconds that a budget leaves to these parts.
_SHARES = {"support": 0.2, "cells": 0.5, "census": 0.3}
_SHARES_WITH_COPY = {"support": 0.15, "cells": 0.35, "census": 0.15, "copying": 0.35}
# Prompts of a support: positions each, and how many are sampled at once from the model itself.
_PROMPT, _AT_ONCE = 64, 32
_FEWEST_POSITIONS = 512
# A pass forth alone takes so much of one forth and back.
_FORTH = 0.4
_CENSUS_TOKENS = 8


@dataclass(frozen=True, eq=False)
class Sections:
    """What the parts share; each returns what it found, None where it was left out.

    Attributes
    ----------
    store
        Keeps what was found.
    available
        Seconds left for all parts together; None: no limit.
    steps
        What a pass costs; None: not known, then nothing is planned by it.
    say
        Told before each part.
    notes
        What was left out, and why.
    """

    model: LoadedModel
    config: StudyConfig
    store: Store
    clock: Clock
    say: Callable[[str], None]
    available: Callable[[], float | None] = lambda: None
    steps: StepModel | None = None
    notes: list[tuple[str, str]] = field(default_factory=list)

    def support(self) -> HiddenSupport | None:
        """Measure where final hidden states lie; a resumed run measures it again."""
        what, asked = "support of hidden states", self.config.support_positions
        if asked == 0:
            self._left_out(what, "not asked for")
            return None
        if self.clock.over():
            self._left_out(what, "no time was left")
            return None
        seconds = self._share("support")
        positions = self._affordable(asked, seconds)
        if positions < min(asked, _FEWEST_POSITIONS):
            self._left_out(what, f"the {max(seconds or 0, 0):.0f} s that the budget left for it were too few")
            return None
        self.say("measuring the support of hidden states")
        support = hidden_support(
            self.model, positions=positions, seed=self.config.cram.seed, stop=self.clock.within(seconds)
        )
        if support is None:
            self._left_out(what, "stopped before the first prompts were through")
        elif positions < asked:
            self.notes.append((f"hidden states beyond {positions} of {asked}", "no time was left for them"))
        return support

    def _affordable(self, asked: int, seconds: float | None) -> int:
        """Return how many hidden states can be measured: each costs a pass, and half are of sampled text."""
        if seconds is None or self.steps is None:
            return asked
        sampling = _PROMPT * max(self.steps.per_token, _FORTH * self.steps.per_position * _AT_ONCE)
        each = _FORTH * self.steps.per_position + sampling / (2 * _AT_ONCE * _PROMPT)
        return int(min(asked, max(seconds - sampling, 0.0) / each))

    def decoder_cells(self) -> Cells | None:
        """Measure the decoder's cells."""
        if not self.config.decoder_cells:
            self._left_out("decoder cells", "not asked for")
            return None
        kept = self.store.meta("decoder_cells")
        if kept is None and self._no_time("decoder cells"):
            return None
        if kept is None:
            seconds = self._share("cells")
            found, notes = cells_section(
                self.model,
                seconds=seconds,
                seed=self.config.cram.seed,
                limit_dtype=self.config.limit_dtype,
                stop=self.clock.within(seconds),
                say=self.say,
            )
            kept = {"found": found.model_dump(mode="json"), "notes": notes}
            if not self.clock.stopped():
                self.store.put_meta("decoder_cells", kept)
        self.notes.extend((what, why) for what, why in kept["notes"])
        return read_cells(kept["found"])

    def census(self) -> Census | None:
        """Count the outputs of one-token prompts, with the start token that the cramming has."""
        kept = read_census(self.store.meta("census_of_tokens"))
        if kept is not None:
            return kept
        seconds = self._share("census")
        if not self.config.decoder_cells or seconds is None:
            self._left_out("census of outputs", "only within a budget; see lmreach census")
            return None
        if self._no_time("census of outputs"):
            return None
        first = 0.0 if self.steps is None else _FORTH * self.steps.per_position * BLOCK * _CENSUS_TOKENS
        if first > seconds:
            why = f"its first block takes {first:.0f} s, the budget left {seconds:.0f} s for it"
            self._left_out("census of outputs", why)
            return None
        self.say("counting the outputs of one-token prompts")
        cram = self.config.cram
        try:
            counted = census_section(
                self.model, budget_s=seconds, bos=cram.bos, seed=cram.seed, stop=self.clock.over
            )
        except PassStopped:
            self._left_out("census of outputs", "no prompts were through within its share of the budget")
            return None
        if not self.clock.stopped():
            self.store.put_meta("census_of_tokens", counted.model_dump(mode="json"))
        return counted

    def copying(self) -> Copying | None:
        """Ask the model to copy strings in context, where that is asked for."""
        if not self.config.copying:
            return None
        kept = read_copying(self.store.meta("copying"))
        if kept is not None:
            return kept
        if self._no_time("copying in context"):
            return None
        self.say("asking for copies of random strings")
        try:
            seconds = self._share("copying")
            with stoppable(self.clock.within(seconds)):
                found = copy_section(
                    self.model,
                    budget_s=seconds,
                    seed=self.config.cram.seed,
                    stop=self.clock.over,
                    say=self.say,
                )
        except PassStopped:
            self._left_out("copying in context", "stopped before it was through")
            return None
        except InputError as error:
            self._left_out("copying in context", str(error))
            return None
        if not found.finished:
            self.notes.append(("copying of longer strings", "its share of the budget was spent"))
        if not self.clock.stopped():
            self.store.put_meta("copying", found.model_dump(mode="json"))
        return found

    def _share(self, part: str) -> float | None:
        """Return the seconds of a part; None without a budget."""
        seconds = self.available()
        if seconds is None:
            return None
        shares = _SHARES_WITH_COPY if self.config.copying else _SHARES
        parts = list(shares)
        # Each has its share of what those before it have left.
        return seconds * shares[part] / sum(shares[one] for one in parts[parts.index(part) :])

    def _no_time(self, what: str) -> bool:
        """Name a part as left out if no time is left for it."""
        if self.clock.over():
            self._left_out(what, "no time was left")
            return True
        seconds = self.available()
        if seconds is not None and seconds <= 0:
            self._left_out(what, "the budget was too short for it beside the measurement")
            return True
        return False

    def _left_out(self, what: str, why: str) -> None:
        self.notes.append((what, why))
