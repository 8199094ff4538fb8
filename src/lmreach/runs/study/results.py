"""The results of a study, put together from the ledger; nothing is measured here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmreach.config import StudyConfig
from lmreach.engine.provenance import public
from lmreach.experiments.states.stream import HiddenSupport
from lmreach.maths.bounds import Limit
from lmreach.models.facts import ModelFacts
from lmreach.results.cells import Cells
from lmreach.results.census import Census
from lmreach.results.copying import Copying
from lmreach.results.limits import Limits
from lmreach.results.records import Trial
from lmreach.results.run import Model, NotDone, Provenance
from lmreach.results.study import (
    Accessibility,
    EndedEarly,
    Example,
    Known,
    Precision,
    SearchRecord,
    Slope,
    StudyResults,
    Support,
)
from lmreach.runs.model_limits import limit_records
from lmreach.runs.study.accessibility import Entries, points_of
from lmreach.runs.study.conditions import Condition, Skipped
from lmreach.runs.study.extent import Extent
from lmreach.runs.study.ledger import counted, is_failed, not_counted
from lmreach.runs.study.slopes import slope_records

__all__ = ["Measured", "assemble"]

_EXAMPLES_PER_CONDITION = 2
_INSIDE = 1 + 1e-4  # of the norm ellipsoid: states lie on its surface, up to rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What a study has measured.

    Attributes
    ----------
    support, cells, census, copying, search
        None: left out.
    lines
        Steps at which the line of each kind stands; 0: those of the settings.
    trials
        Rows of the ledger by condition.
    extents
        Where vectors lie, by the key of their trial.
    skipped, settled
        Strings that were not run: for want of time, and because enough was known.
    notes
        What else was left out, and why.
    bits_per_vector
        That a vector is stored in.
    """

    limits: Sequence[Limit]
    bits_per_vector: int
    support: HiddenSupport | None
    conditions: Sequence[Condition]
    lines: Mapping[str, int]
    trials: Mapping[Condition, Sequence[Trial]]
    extents: Mapping[str, Extent]
    skipped: Sequence[Skipped]
    settled: Sequence[Skipped] = ()
    cells: Cells | None = None
    census: Census | None = None
    copying: Copying | None = None
    search: SearchRecord | None = None
    notes: Sequence[tuple[str, str]] = ()


def assemble(
    config: StudyConfig, facts: ModelFacts, measured: Measured, provenance: Provenance
) -> StudyResults:
    """Return the whole results of a study."""
    made = Entries(config.cram, facts, measured.limits, measured.extents, measured.bits_per_vector)
    entries = made.of(measured.conditions, measured.trials, measured.lines)
    whole = config.cram.protocol == "frontier"
    points = None if whole else {c: points_of(counted(own)) for c, own in measured.trials.items()}
    kinds = list(dict.fromkeys(c.target for c in measured.conditions))
    slopes = slope_records(kinds, entries, measured.limits, seed=config.cram.seed, points=points)
    strings = Counter[str]()
    for entry in entries:
        strings[entry.target] += entry.strings
    return StudyResults(
        model=Model.from_object(facts),
        config=public(config, facts.name),
        provenance=provenance,
        not_done=_not_done(measured, "strings" if whole else "trials"),
        limits=Limits(limit_records(measured.limits)),
        support=None if measured.support is None else _support(measured.support),
        accessibility=entries,
        slopes=slopes,
        cells=measured.cells,
        census=measured.census,
        copying=measured.copying,
        search=measured.search,
        precision=_precision(config.relative_width, entries, slopes, measured.settled),
        examples=tuple(_examples(measured)),
        n_samples=dict(strings),
    )


def _support(support: HiddenSupport) -> Support:
    """Return what was seen of the hidden states, without the box's coordinates."""
    fraction = support.ellipsoid_fraction
    return Support.from_object(
        support,
        prompt_lengths=(1, support.length),
        min_cos_states=support.kept,
        inside_norm_ellipsoid=None if fraction is None else fraction <= _INSIDE,
        largest_ellipsoid_fraction=fraction,
    )


def _examples(measured: Measured) -> list[Example]:
    """Return the furthest-reaching strings of each condition, with their texts."""
    shown = []
    for condition in measured.conditions:
        if condition.steps != measured.lines[condition.target]:
            continue
        own = counted(measured.trials.get(condition, []))
        # Nothing that the published protocol calls a success is shown to come out of the vectors alone.
        if any(trial.decoded is not None for trial in own):
            continue
        kept = sorted(own, key=lambda t: -t.reach)
        shown += [
            Example(
                target=condition.target,
                m=condition.m,
                key=trial.key,
                reach=trial.reach,
                text=trial.text,
                emitted=trial.emitted,
            )
            for trial in kept[:_EXAMPLES_PER_CONDITION]
        ]
    return shown


def _precision(
    wanted: float | None,
    entries: Sequence[Accessibility],
    slopes: Sequence[Slope],
    settled: Sequence[Skipped],
) -> Precision:
    """Return which of the asked numbers are known to the wanted relative width, and which are not.

    A number whose interval has an open end has no width and is not known; see its own words.
    """
    asked = [("n50", entry.target, entry.m, entry.n50) for entry in entries]
    lines = [one for one in slopes if one.slope.verdict != "too_few_points"]
    numbers = [*asked, *(("slope", one.target, None, one.slope) for one in lines)]
    return Precision(
        wanted=wanted,
        numbers=tuple(
            Known(
                what=what,
                target=target,
                m=m,
                relative_width=known.relative_width,
                known=None
                if wanted is None
                else known.relative_width is not None and known.relative_width <= wanted,
            )
            for what, target, m, known in numbers
        ),
        ended_early=tuple(
            EndedEarly(target=one.condition.target, m=one.condition.m, strings=one.strings, why=one.why)
            for one in settled
        ),
    )


def _not_done(measured: Measured, noun: str) -> tuple[NotDone, ...]:
    """Return what was left out and why; ``noun``: what the conditions are made of."""
    rows = [NotDone(what=what, why=why) for what, why in measured.notes]
    rows += [
        NotDone(what=f"{one.strings} {noun} of {one.condition.name}", why=one.why) for one in measured.skipped
    ]
    for condition, own in measured.trials.items():
        failed = sum(map(is_failed, own))
        if failed:
            why = "their loss stopped being a number, so they say nothing about what can be reached"
            rows.append(NotDone(what=f"{failed} {noun} of {condition.name} failed and do not count", why=why))
        left = not_counted(own)
        cut = [trial.steps for trial in left if trial.outcome == "cut"]
        if cut:
            what = f"{len(cut)} {noun} of {condition.name} are not counted"
            rows.append(
                NotDone(what=what, why=f"time was up after {max(cut)} of their {condition.steps} steps")
            )
        if loose := len(left) - len(cut):
            what = f"{loose} finished {noun} of {condition.name} are not counted"
            why = (
                "their batch was interrupted, and early finishers alone would bias the curve; "
                "'lmreach resume' completes it"
            )
            rows.append(NotDone(what=what, why=why))
    return tuple(rows)
