"""What the trials of one condition say: reaches or points, n50, what so many tokens hold."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmreach.config import CramPlan
from lmreach.maths.bounds import Limit
from lmreach.models.facts import ModelFacts
from lmreach.results import Interval
from lmreach.results import study as of_study
from lmreach.results.base import Columns
from lmreach.results.records import Trial
from lmreach.results.study import Accessibility
from lmreach.runs.intervals import fitted_curve
from lmreach.runs.study import extent
from lmreach.runs.study.conditions import Condition
from lmreach.runs.study.ledger import counted, reach_arrays
from lmreach.runs.study.levels import steps_fields
from lmreach.stats.accessibility import curve, half_length
from lmreach.stats.cliff import cliff
from lmreach.stats.information import Information
from lmreach.stats.points import PointCurve, point_curve
from lmreach.stats.turnbull import OPEN

__all__ = ["NOTES", "Entries", "point_parts", "points_of"]

NOTES = {
    "published": "published protocol, for comparison: the first token is given, so n means n - 1 predicted "
    "tokens, and success is an argmax under teacher forcing; nothing is claimed to come out of the vectors "
    "alone, and there are no certificates"
}
"""What is said wherever numbers of a protocol stand."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Makes the entries of ``accessibility``.

    Attributes
    ----------
    extents
        Where vectors lie, by the key of their trial.
    bits_per_vector
        That a vector is stored in: 32 a coordinate, or those of the format it is held to.
    """

    config: CramPlan
    facts: ModelFacts
    limits: Sequence[Limit]
    extents: Mapping[str, extent.Extent]
    bits_per_vector: int

    def of(
        self,
        conditions: Sequence[Condition],
        trials: Mapping[Condition, Sequence[Trial]],
        lines: Mapping[str, int],
    ) -> tuple[Accessibility, ...]:
        """Return one entry per condition that has strings, smallest m first.

        Parameters
        ----------
        lines
            Steps at which the line of each kind stands. Runs of other steps are told within the entries: they
            never enter one line.
        """
        every = {condition: counted(trials.get(condition, [])) for condition in conditions}
        shown = [c for c, kept in every.items() if kept and c.steps == lines[c.target]]
        found = []
        for condition in sorted(shown, key=lambda c: c.m):
            alike = [kept for c, kept in every.items() if (c.target, c.m) == (condition.target, condition.m)]
            if self.config.protocol == "frontier":
                found.append(self._reaches(condition, every[condition], alike))
            else:
                found.append(self._lengths(condition, every[condition]))
        return tuple(found)

    def _reaches(
        self, condition: Condition, kept: Sequence[Trial], alike: Sequence[Sequence[Trial]]
    ) -> Accessibility:
        """Return the entry of strings that went as far as they could; ``alike``: theirs at any steps."""
        reach, censored = reach_arrays(kept)
        n50 = half_length(reach, censored, limit=kept[0].limit)
        fall = cliff(
            reach, censored, vocab=self.facts.usable, rng=np.random.default_rng([self.config.seed, 4])
        )
        return Accessibility(
            **self._about(condition, kept),
            **self._content(n50.value, condition),
            **steps_fields(kept, alike),
            strings=len(kept),
            finished=len(kept),
            limit=kept[0].limit,
            reaches=tuple(reach.tolist()),
            censored=tuple(censored.tolist()),
            still_growing=sum(trial.growing for trial in kept),
            n50=Interval.from_object(n50),
            curve=Columns.from_object(curve(reach, censored)),
            cliff=of_study.Cliff.from_object(fall),
            information=_information(kept, condition.m, self.facts.width, self.bits_per_vector),
        )

    def _lengths(self, condition: Condition, kept: Sequence[Trial]) -> Accessibility:
        """Return the entry of a condition whose trials are at single lengths."""
        found = points_of(kept)
        # Under the published protocol the first of n tokens is given, so only the others come from the
        # vectors.
        given = 1 if self.config.protocol == "published" else 0
        tokens = None if found.n50[0] is None else max(found.n50[0] - given, 0.0)
        return Accessibility(
            **self._about(condition, kept),
            **self._content(tokens or None, condition),
            **point_parts(found),
            protocol_note=NOTES.get(self.config.protocol, ""),
            strings=found.strings,
            finished=found.strings,
            trials=len(kept),
            solved=sum(bool(trial.solved) for trial in kept),
            decoded=sum(bool(trial.solved if trial.decoded is None else trial.decoded) for trial in kept),
            limit=int(found.n[-1]),
        )

    def _about(self, condition: Condition, kept: Sequence[Trial]) -> dict[str, Any]:
        """Return what every entry says of its condition, whatever the protocol."""
        gaps = [t.smallest_gap for t in kept if t.smallest_gap is not None]
        return {
            "target": condition.target,
            "m": condition.m,
            "protocol": self.config.protocol,
            "bos": self.config.bos,
            "prefix": self.config.prefix,
            "suffix": self.config.suffix,
            "within": self.config.within,
            "outcomes": dict(sorted(Counter(t.outcome for t in kept).items())),
            "smallest_gap": min(gaps, default=None),
            "extent": _extent([self.extents[t.key] for t in kept if t.key in self.extents]),
            "steps": sum(t.steps for t in kept),
            "seconds": sum(t.seconds for t in kept),
        }

    def _content(self, tokens: float | None, condition: Condition) -> dict[str, Any]:
        """Return what so many tokens hold, and every limit over it; None where n50 has no value."""
        facts = self.facts
        held = None if tokens is None else Information(tokens, condition.m, facts.width, facts.usable, 32)
        per_vector = None if held is None else held.tokens_per_vector
        return {
            "tokens_per_vector": per_vector,
            "bits_per_coordinate": None if held is None else held.bits_per_coordinate,
            "bits_ids": None if held is None else held.bits_ids,
            "bits_vectors": condition.m * self.bits_per_vector,
            "ratio_to_limits": {
                limit.name: None if per_vector is None else limit.tokens_per_vector / per_vector
                for limit in self.limits
            },
        }


def points_of(kept: Sequence[Trial]) -> PointCurve:
    """Return what the trials of one condition say, string by string."""
    outcomes: dict[int, dict[int, bool]] = defaultdict(dict)
    for trial in kept:
        outcomes[trial.index][trial.limit] = bool(trial.solved)
    return point_curve([outcomes[index] for index in sorted(outcomes)])


def point_parts(found: PointCurve) -> dict[str, Any]:
    """Return n50, points, fitted curve and Turnbull's estimate as an entry holds them."""
    value, low, high = found.n50
    drawn = found.drawn()
    return {
        "n50": Interval(
            value=value,
            low=low,
            high=high,
            verdict=found.verdict,
            confidence=found.confidence,
            words=found.words(),
        ),
        "points": of_study.Points.from_object(found),
        "without_curve": found.free,
        "fit": of_study.Fit.from_object(
            fitted_curve(found.fit),
            fits=found.fits,
            steepness=found.steepness(),
            curve=None if drawn is None else Columns.model_validate(drawn),
        ),
        "turnbull": _turnbull(found),
    }


def _turnbull(found: PointCurve) -> of_study.Turnbull | None:
    if found.intervals is None:
        why, unknown = found.intervals_because, Interval(value=None, verdict="no_data")
        return of_study.Turnbull(n50=unknown, words=why) if why else None
    low, high = found.intervals.half_length()
    return of_study.Turnbull.from_object(
        found.intervals,
        high=tuple(None if end == OPEN else int(end) for end in found.intervals.high),
        n50=Interval(value=None, low=low, high=high, verdict="separated"),
    )


def _information(kept: Sequence[Trial], m: int, width: int, bits: int) -> of_study.Information | None:
    """Return what the vectors tell of the prefixes that came out, on average; None without a record of it.

    A string of reach 0 gained nothing. Bits gained: cross-entropy without the vectors minus with them.
    ``bits``: that a vector is stored in.
    """
    if any(trial.reach > 0 for trial in kept if trial.ce_without_bits is None):
        return None
    if all(trial.ce_without_bits is None for trial in kept):
        return None
    count = len(kept)
    without = sum(trial.ce_without_bits or 0.0 for trial in kept) / count
    given = sum(trial.ce_with_bits or 0.0 for trial in kept) / count
    gained = without - given
    return of_study.Information(
        ce_without_bits=without,
        ce_with_bits=given,
        bits_per_vector=gained / m,
        bits_per_coordinate=gained / (m * width),
        bits_per_stored_bit=gained / (m * bits),
        tokens_gained=sum(trial.tokens_gained or 0 for trial in kept) / count,
    )


def _extent(found: Sequence[extent.Extent]) -> of_study.Extent | None:
    """Return where the vectors of a condition lie beside real inputs; None if no string was reached."""
    if not found:
        return None
    return of_study.Extent(
        median_rms_over_inputs=float(np.median([one.rms_over_inputs for one in found])),
        inside_input_box=sum(one.inside_input_box for one in found),
        strings=len(found),
    )
