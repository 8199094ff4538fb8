"""The schema against what fills it and what reads it: no field that no sample has, none that nobody reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from lmreach.cli.census_table import write_missing
from lmreach.report.figures import figures
from lmreach.report.html import page
from lmreach.report.shown import text
from lmreach.report.study.words import headline
from lmreach.results import AnyResults
from lmreach.results.answers import CellsResults
from lmreach.results.base import Result
from lmreach.results.cells import Proof
from lmreach.results.study import EndedEarly, SearchRecord, StartProbe
from tests.report import cells_sample
from tests.report.every import runs

ROOTS: tuple[type[Result], ...] = get_args(AnyResults)
Field = tuple[str, str]

# Read by people and programs that open results.json, and by nothing of ours; by what for.
FOR_READERS = {
    "which version wrote it": {"RunResults.schema_version"},
    "to start an optimiser as this one was started": {
        "StudyResults.search",
        *(f"SearchRecord.{name}" for name in SearchRecord.model_fields),
        *(f"StartProbe.{name}" for name in StartProbe.model_fields),
        "Crammed.start_scale",
        "Crammed.steps",
    },
    "what it cost": {
        "Answer.seconds",
        "CopyLength.seconds",
        "Copying.seconds",
        "LearningPoint.seconds",
        "Training.seconds",
        "Rare.seconds",
        "RareToken.seconds",
        "Unreachable.seconds",
    },
    "to check a proof": {
        *(f"Proof.{name}" for name in Proof.model_fields),
        "Unreachable.certificates",
        "Unreachable.methods",
        "Unreachable.padded_leads",
        "Unreachable.reasons",
        "Unreachable.resolution",
        "Unreachable.smallest_margin",
        "Unreachable.undetermined",
    },
    "to draw a curve again, or compare another": {
        "FittedCurve.lapse",
        "FittedCurve.n10",
        "FittedCurve.n90",
        "FittedCurve.shape",
        "Fit.fits",
        "Turnbull.n50",
        "Accessibility.without_curve",
        "Crammed.censored",
        "Slope.better",
        "Slope.bounds",
        "Slope.extrapolated",
        "Extrapolated.m",
        "Extrapolated.n50",
        "Share.effective",
        "Mistakes.within_training_length",
        "Attention.strings",
    },
    "to combine estimates of one run": {
        "MeanLogShare.below",
        "MeanLogShare.replicates",
        "MeanLogShare.se_draws",
        "MeanLogShare.se_estimates",
        "SlopeRatio.se_log",
        "SlopeRatio.uniform",
        "CellLimit.log_packing",
        "Richness.seen",
        "Richness.standard_error",
        "Auc.negatives",
        "Auc.positives",
        "Shares.hit_mean_log_share",
        "Shares.hit_once",
        "Shares.hit_twice",
        "GridLength.entropy_bits",
        "GridLength.seen_once",
        "GridLength.seen_twice",
        "TokenLength.seen_twice",
        "Unreachable.share_removed",
    },
    "the single cells behind a mean, and how each was estimated": {
        "Rare.floor_nats",
        "Rare.start",
        *(
            f"RareToken.{name}"
            for name in ("at_most", "id", "levels", "logs", "rivals", "se", "text", "twin")
        ),
        "Shares.decided_in_float64",
        "Shares.measure",
    },
    "to count the same again": {
        "GridCount.extent",
        "GridCount.n",
        "GridCount.width",
        "TokenCount.close",
        "TokenCount.n",
        "TokenCount.planned",
        "TokenCount.seed",
        "TokenCount.tied",
        "TokenCount.vocab",
        "StudyResults.n_samples",
        "Alphabet.trained",
        "Training.mark",
    },
    "ids behind words and pictures": {
        "Band.id",
        "Popular.ids",
        "Missing.never_first",
        "Reasons.measure",
        "Reasons.missing_with_unreachable_token",
    },
    "what was spared, and what was not through": {
        "Precision.ended_early",
        *(f"EndedEarly.{name}" for name in EndedEarly.model_fields),
        "Copying.finished",
    },
}


def classes(root: type[Result]) -> Iterator[type[Result]]:
    """Give every model that a field of a model can hold, each once."""
    seen: set[type[Result]] = set()
    waiting: list[Any] = [root]
    while waiting:
        found = waiting.pop()
        waiting += get_args(found)
        waiting += [arg for base in getattr(found, "__orig_bases__", ()) for arg in get_args(base)]
        if isinstance(found, type) and issubclass(found, Result) and found not in seen:
            seen.add(found)
            waiting += [info.annotation for info in found.model_fields.values()]
            yield found


EVERY = {cls for root in ROOTS for cls in classes(root)}


def field(cls: type[Result], name: str) -> Field:
    """Return a field by the model that first has it: every interval has the same words."""
    owner = [base for base in cls.__mro__ if issubclass(base, Result) and name in base.model_fields][-1]
    return owner.__name__, name


FIELDS: set[Field] = {field(cls, name) for cls in EVERY for name in cls.model_fields}


def filled(value: Any) -> Iterator[Field]:
    """Give every field below a value that holds something."""
    if isinstance(value, Result):
        for name in type(value).model_fields:
            held = getattr(value, name)
            if held is not None and held not in ((), "", {}):
                yield field(type(value), name)
            yield from filled(held)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from filled(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from filled(item)


def test_names_of_models_differ() -> None:
    assert len({cls.__name__ for cls in EVERY}) == len(EVERY)


def test_the_samples_fill_every_field() -> None:
    held = {one for results in runs() for one in filled(results)}
    assert sorted(FIELDS - held) == []


def test_every_model_says_what_it_is() -> None:
    for cls in EVERY:
        assert (cls.__doc__ or "").strip().split("\n")[0].endswith((".", ";", ",", ":")), cls.__name__


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> set[Field]:
    """The fields that are read from now on; writing a result as JSON reads none."""
    seen: set[Field] = set()
    plain = Result.__getattribute__

    def reading(self: Result, name: str) -> Any:
        if name in type(self).model_fields:
            seen.add(field(type(self), name))
        return plain(self, name)

    monkeypatch.setattr(Result, "__getattribute__", reading)
    return seen


def test_every_field_is_read(reads: set[Field], tmp_path: Path) -> None:
    every = runs()
    alone = CellsResults.from_object(cells_sample.cells(), model="m", vocab=1000, width=8)
    reads.clear()
    for results in every:
        page(results)
        figures(results)
        headline(results)
        text(results)
        write_missing(results, tmp_path / "missing.txt")
    text(alone)
    unread = {f"{cls}.{name}" for cls, name in FIELDS - reads}
    for_readers = {name for names in FOR_READERS.values() for name in names}
    assert sorted(unread - for_readers) == [], "nobody reads it: show it, or leave it out"
    assert sorted(for_readers - unread) == [], "it is read by now"
