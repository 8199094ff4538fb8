"""The cells of a model's decoder, asked about alone: shares, rare cells, unreachable tokens, a map."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lmreach.config import CellsConfig
from lmreach.config.given import configure
from lmreach.engine.clock import Clock
from lmreach.experiments.cells.decoder import Decoder, decoder_of
from lmreach.experiments.cells.rare import RareStopped
from lmreach.experiments.states.file import SavedSupport
from lmreach.files import check_place
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, watching
from lmreach.report.cells.map import save_cell_map
from lmreach.results.answers import CellsResults
from lmreach.results.cells import Cells, Rare, Shares, Unreachable
from lmreach.runs.cells import parts

__all__ = ["cells"]

_EVERY_S = 10.0
Stop = Callable[[], bool]


def cells(
    model: ModelLike,
    config: CellsConfig | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    stop: Stop = lambda: False,
    begun: float | None = None,
    **settings: Any,
) -> CellsResults:
    """Estimate how big each token's cell is; find unreachable tokens; draw the cells between three texts.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    config, settings
        See `CellsConfig`; settings by name replace those of the config.
    out
        Folder for map.svg and map.png; None: the map is not written.
    tokenizer
        Goes with a model of transformers.
    progress
        Told how far it is; None: a bar where somebody looks on, else nobody.
    stop
        Asked often; after a yes the parts that are through are returned.
    begun
        When the budget began, on `time.monotonic`; None: now.

    Raises
    ------
    LmreachError
        Settings that contradict each other, or a model, text or support file that cannot be used.
    """
    asked = configure(CellsConfig, config, settings)
    if asked.map and out is not None:
        check_place(Path(out))
    with watching(progress) as watched:
        loaded = load(model, asked.load, tokenizer=tokenizer, progress=watched.note)
        clock = Clock(asked.budget_s, stop, begun=begun)
        work = _Work(loaded, decoder_of(loaded), asked, watched, clock.over)
        measured = work.parts()
    found = CellsResults.from_object(
        measured,
        model=loaded.facts.name,
        vocab=work.decoder.vocab,
        width=work.decoder.width,
        interrupted=clock.told,
    )
    if out is None or found.map is None:
        return found
    drawn = save_cell_map(found.map, Path(out))
    return found.model_copy(update={"files": tuple(map(str, drawn))})


class _Work:
    """What the parts share."""

    def __init__(
        self, model: LoadedModel, decoder: Decoder, asked: CellsConfig, progress: Progress, stop: Stop
    ) -> None:
        self.model, self.decoder, self.asked = model, decoder, asked
        self.progress, self.stop = progress, stop
        self.support: SavedSupport | None = None
        if asked.support is not None:
            self.support = parts.support_of(model, asked.support)

    def parts(self) -> Cells:
        """Return every part that was asked for."""
        asked = self.asked
        drawn = parts.map_record(self.model, self.decoder, asked.map) if asked.map else None
        shares = self._shares() if asked.shares else None
        rare = unreachable = None
        if asked.rare is not None and not self.stop():
            with suppress(RareStopped):
                rare = self._rare(asked.rare)
        if asked.unreachable and not self.stop():
            unreachable = self._unreachable()
        return Cells(map=drawn, shares=shares, rare=rare, unreachable=unreachable)

    def _shares(self) -> Shares:
        asked = self.asked
        measure = parts.measure_of(
            self.model, asked.of, support=self.support, kinds=asked.prompts, seed=asked.seed
        )
        total = parts.default_samples(self.decoder) if asked.samples is None else asked.samples
        self.progress.stage(f"{total:,} states")
        say = self._paced("states")
        return parts.shares_record(
            self.model,
            self.decoder,
            measure,
            samples=total,
            convention=asked.convention or "argmax",
            say=lambda done: say(done, total),
            stop=self._after_a_block(),
        )

    def _after_a_block(self) -> Stop:
        """Stop at the next block, but not before the first: shares of no states are none."""
        questions = 0

        def stop() -> bool:
            nonlocal questions
            questions += 1
            return questions > 1 and self.stop()

        return stop

    def _rare(self, tokens: int) -> Rare:
        return parts.rare_record(
            self.model,
            self.decoder,
            tokens=tokens,
            text=self.asked.text,
            seed=self.asked.seed,
            progress=self._paced("cells"),
            stop=self.stop,
        )

    def _unreachable(self) -> Unreachable:
        by_stage: dict[str, Callable[[int, int], None]] = {}

        def say(stage: str, done: int, total: int) -> None:
            if stage not in by_stage:
                by_stage[stage] = self._paced(f"tokens ({stage})")
                self.progress.stage(f"{stage}: {total:,} tokens")
            by_stage[stage](done, total)

        return parts.unreachable_record(
            self.model, self.decoder, support=self.support, stop=self.stop, on_progress=say
        )

    def _paced(self, noun: str) -> Callable[[int, int], None]:
        """Return what says, every few seconds, how many of how many are done, and how long the rest takes."""
        begun = spoke = time.monotonic()

        def say(done: int, total: int) -> None:
            nonlocal spoke
            now = time.monotonic()
            if 0 < done < total and now - spoke > _EVERY_S:
                spoke = now
                left = (now - begun) / done * (total - done)
                self.progress.stage(f"{done:,} of {total:,} {noun}, about {left:.0f} s left")

        return say
