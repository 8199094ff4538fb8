"""The parts of a study beside cramming: hidden states, decoder cells, census, copying.

All but the first have a share of what remains of the budget, and what they found is kept with the run: a
resumed run does not measure it again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from lmreach.config import StudyConfig
from lmreach.engine.clock import Clock
from lmreach.engine.store import Store
from lmreach.errors import InputError
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

__all__ = ["Sections"]

# Of what remains of a budget as each part begins.
_CELLS_SHARE = 0.12
_CENSUS_SHARE = 0.06
_COPY_SHARE = 0.15


@dataclass(frozen=True, eq=False)
class Sections:
    """What the parts share; each returns what it found, None where it was left out.

    Attributes
    ----------
    store
        Keeps what was found.
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
    notes: list[tuple[str, str]] = field(default_factory=list)

    def support(self) -> HiddenSupport | None:
        """Measure where final hidden states lie; a resumed run measures it again."""
        if self.config.support_positions == 0:
            self._left_out("support of hidden states", "not asked for")
            return None
        self.say("measuring the support of hidden states")
        support = hidden_support(
            self.model,
            positions=self.config.support_positions,
            seed=self.config.cram.seed,
            stop=self.clock.over,
        )
        if support is None:
            self._left_out("support of hidden states", "stopped before the first prompts were through")
        return support

    def decoder_cells(self) -> Cells | None:
        """Measure the decoder's cells."""
        if not self.config.decoder_cells:
            self._left_out("decoder cells", "not asked for")
            return None
        kept = self.store.meta("decoder_cells")
        if kept is None:
            found, notes = cells_section(
                self.model,
                seconds=self._share(_CELLS_SHARE),
                seed=self.config.cram.seed,
                limit_dtype=self.config.limit_dtype,
                stop=self.clock.over,
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
        seconds = self._share(_CENSUS_SHARE)
        if not self.config.decoder_cells or seconds is None:
            self._left_out("census of outputs", "only within a budget; see lmreach census")
            return None
        if self.clock.over():
            self._left_out("census of outputs", "no time was left")
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
        if self.clock.over():
            self._left_out("copying in context", "no time was left")
            return None
        self.say("asking for copies of random strings")
        try:
            with stoppable(self.clock.over):
                found = copy_section(
                    self.model,
                    budget_s=self._share(_COPY_SHARE),
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

    def _share(self, share: float) -> float | None:
        """Return the seconds that a share of the remaining budget is; None without a budget."""
        remaining = self.clock.remaining()
        return None if remaining is None else share * remaining

    def _left_out(self, what: str, why: str) -> None:
        self.notes.append((what, why))
