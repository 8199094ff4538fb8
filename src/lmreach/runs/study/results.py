"""results.json: every number of a run, put together from the ledger; nothing is measured here."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmreach.config import StudyConfig
from lmreach.engine.provenance import public
from lmreach.experiments.states.stream import HiddenSupport
from lmreach.maths.bounds import Limit, tightest
from lmreach.models.facts import ModelFacts
from lmreach.runs.study.conditions import Condition, Skipped
from lmreach.runs.study.extent import Extent
from lmreach.stats.accessibility import curve, half_length
from lmreach.stats.cliff import cliff
from lmreach.stats.information import Information
from lmreach.stats.points import PointCurve, point_curve
from lmreach.stats.slope import Slope, fit_slope, fit_slope_of_curves

SCHEMA = 1
NOTES = {
    "published": "published protocol, for comparison: the first token is given, so n means n - 1 predicted "
    "tokens, and success is an argmax under teacher forcing; nothing is claimed to come out of the vectors "
    "alone, and there are no certificates"
}
"""What is said wherever numbers of a protocol stand."""

_EXAMPLES_PER_CELL = 2


def limits_section(limits: Sequence[Limit]) -> list[dict[str, Any]]:
    """Return the limits with the tightest proved one of each premise marked."""
    best = {limit.name for limit in tightest(limits).values()}
    return [{**limit.as_dict(), "tightest_of_premise": limit.name in best} for limit in limits]


def support_section(support: HiddenSupport | None) -> dict[str, Any] | None:
    """Return what was seen of the hidden states, without the box's coordinates."""
    if support is None:
        return None
    fraction = support.ellipsoid_fraction
    return {
        "samples": support.samples,
        "prompt_lengths": [1, support.length],
        "kinds": list(support.kinds),
        "l1_max": support.l1_max,
        "l2_max": support.l2_max,
        "linf_max": support.linf_max,
        "mean_cos": support.mean_cos,
        "min_cos": support.min_cos,
        "min_cos_states": support.kept,
        "min_cos_bound": support.min_cos_bound,
        "inside_norm_ellipsoid": None if fraction is None else fraction <= 1 + 1e-4,
        "largest_ellipsoid_fraction": fraction,
    }


def counted(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials of one condition that count: strings 0, 1, 2, ... up to the first one missing.

    Of an interrupted batch the early finishers are the ones that gave up early, so counting whoever
    happened to finish would bias the curve; a run of whole indices does not. Trials at single lengths count
    by whole chunks.
    """
    if trials and "chunk" in trials[0]:
        return _whole_chunks(trials)
    by_index = {trial["index"]: trial for trial in trials}
    kept: list[dict[str, Any]] = []
    while len(kept) in by_index:
        kept.append(by_index[len(kept)])
    return kept


def _whole_chunks(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials of chunks that are all there, by length and string."""
    chunks: dict[tuple[int, int, int], list[dict[str, Any]]] = defaultdict(list)
    for trial in trials:
        first, last = trial["chunk"]
        chunks[(trial["limit"], first, last)].append(trial)
    whole = [own for (_, first, last), own in chunks.items() if len(own) == last - first]
    return sorted((trial for own in whole for trial in own), key=lambda t: (t["limit"], t["index"]))


def accessibility_section(
    conditions: Sequence[Condition],
    trials: dict[Condition, list[dict[str, Any]]],
    facts: ModelFacts,
    limits: Sequence[Limit],
    protocol: dict[str, Any],
    extents: dict[str, Extent],
) -> list[dict[str, Any]]:
    """Return one entry per condition that has strings: curve, n50, information and ratios to every limit."""
    entry = _cell_entry if protocol["protocol"] == "frontier" else _length_entry
    whole = [(condition, counted(trials.get(condition, []))) for condition in conditions]
    return [entry(condition, kept, facts, limits, protocol, extents) for condition, kept in whole if kept]


def _cell_entry(
    condition: Condition,
    kept: list[dict[str, Any]],
    facts: ModelFacts,
    limits: Sequence[Limit],
    protocol: dict[str, Any],
    extents: dict[str, Extent],
) -> dict[str, Any]:
    reach, censored = reach_arrays(kept)
    limit = int(kept[0]["limit"])
    n50 = half_length(reach, censored, limit=limit)
    shape = curve(reach, censored)
    return {
        **_about(condition, kept, protocol, extents),
        "strings": len(kept),
        "finished": len(kept),
        "limit": limit,
        "reaches": reach.tolist(),
        "censored": censored.tolist(),
        "still_growing": sum(bool(trial.get("growing")) for trial in kept),
        "n50": n50.as_dict(),
        "relative_width": n50.relative_width,
        "curve": shape.as_dict(),
        "cliff": cliff(
            reach, censored, vocab=facts.usable, rng=np.random.default_rng([protocol["seed"], 4])
        ).as_dict(),
        "information": _information(kept, condition.m, facts.width),
        **_content(n50.value, condition, facts, limits),
    }


def _length_entry(
    condition: Condition,
    kept: list[dict[str, Any]],
    facts: ModelFacts,
    limits: Sequence[Limit],
    protocol: dict[str, Any],
    extents: dict[str, Extent],
) -> dict[str, Any]:
    """Return the entry of a condition whose trials are at single lengths."""
    found = points_of(kept)
    # Under the published protocol the first of n tokens is given, so only the others come from the vectors.
    given = 1 if protocol["protocol"] == "published" else 0
    tokens = None if found.n50[0] is None else max(found.n50[0] - given, 0.0)
    return {
        **_about(condition, kept, protocol, extents),
        "protocol_note": NOTES.get(protocol["protocol"], ""),
        "strings": found.strings,
        "finished": found.strings,
        "trials": len(kept),
        "solved": sum(trial["solved"] for trial in kept),
        "decoded": sum(trial.get("decoded", trial["solved"]) for trial in kept),
        "limit": int(found.n[-1]),
        **found.as_dict(),
        "relative_width": found.relative_width,
        "tokens_given": given,
        "information": None,
        **_content(tokens or None, condition, facts, limits),
    }


def points_of(kept: Sequence[dict[str, Any]]) -> PointCurve:
    """Return what the trials of one condition say, string by string."""
    outcomes: dict[int, dict[int, bool]] = defaultdict(dict)
    for trial in kept:
        outcomes[trial["index"]][trial["limit"]] = trial["solved"]
    return point_curve([outcomes[index] for index in sorted(outcomes)])


def _about(
    condition: Condition, kept: list[dict[str, Any]], protocol: dict[str, Any], extents: dict[str, Extent]
) -> dict[str, Any]:
    """Return what every entry says of its condition, whatever the protocol."""
    gaps = [t["smallest_gap"] for t in kept if t["smallest_gap"] is not None]
    return {
        "target": condition.target,
        "m": condition.m,
        "protocol": protocol["protocol"],
        "bos": protocol["bos"],
        "prefix": protocol["prefix"],
        "suffix": protocol["suffix"],
        "outcomes": dict(sorted(Counter(t["outcome"] for t in kept).items())),
        "smallest_gap": min(gaps, default=None),
        "extent": _extent([extents[t["key"]] for t in kept if t["key"] in extents]),
        "steps": sum(t["steps"] for t in kept),
        "seconds": sum(t["seconds"] for t in kept),
    }


def _content(
    tokens: float | None, condition: Condition, facts: ModelFacts, limits: Sequence[Limit]
) -> dict[str, Any]:
    """Return what so many tokens hold, and every limit over it; None where n50 has no value."""
    bits = None if tokens is None else Information(tokens, condition.m, facts.width, facts.usable, 32)
    per_vector = None if bits is None else bits.tokens_per_vector
    return {
        "tokens_per_vector": per_vector,
        "bits_per_coordinate": None if bits is None else bits.bits_per_coordinate,
        "bits_ids": None if bits is None else bits.bits_ids,
        "bits_vectors": 32 * condition.m * facts.width,
        "ratio_to_limits": {
            one.name: None if per_vector is None else one.tokens_per_vector / per_vector for one in limits
        },
    }


def _information(kept: Sequence[dict[str, Any]], m: int, width: int) -> dict[str, Any] | None:
    """Return what the vectors tell of the prefixes that came out, on average; None without a record of it.

    A string of reach 0 gained nothing. Bits gained: cross-entropy without the vectors minus with them.
    """
    told = [trial for trial in kept if "ce_without_bits" in trial]
    if any(trial["reach"] > 0 for trial in kept if trial not in told) or not told:
        return None
    without, given, tokens = (
        sum(trial[name] for trial in told) / len(kept)
        for name in ("ce_without_bits", "ce_with_bits", "tokens_gained")
    )
    gained = without - given
    return {
        "strings": len(kept),
        "ce_without_bits": without,
        "ce_with_bits": given,
        "bits_gained": gained,
        "bits_per_vector": gained / m,
        "bits_per_coordinate": gained / (m * width),
        "bits_per_stored_bit": gained / (32 * m * width),
        "tokens_gained": tokens,
        "most_bits_per_coordinate": max(t["ce_without_bits"] - t["ce_with_bits"] for t in told) / (m * width),
    }


def _extent(found: Sequence[Extent]) -> dict[str, Any] | None:
    """Return where the vectors of a condition lie beside real inputs; None if no string was reached."""
    if not found:
        return None
    return {
        "median_rms_over_inputs": float(np.median([one.rms_over_inputs for one in found])),
        "inside_input_box": sum(one.inside_input_box for one in found),
        "strings": len(found),
    }


def slopes_section(
    targets: Sequence[str],
    entries: Sequence[dict[str, Any]],
    limits: Sequence[Limit],
    *,
    seed: int,
    points: dict[Condition, PointCurve] | None = None,
) -> list[dict[str, Any]]:
    """Return n50 against m for each target kind.

    Least squares with a bootstrap over strings; where ``points`` holds the conditions' curves from single
    lengths, with draws from their posteriors.
    """
    found = []
    for target in targets:
        own = [entry for entry in entries if entry["target"] == target]
        if own:
            slope = _slope_of_reaches(own, seed) if points is None else _slope_of_points(own, points, seed)
            found.append(_slope_entry(target, slope, limits))
    return found


def _slope_of_reaches(own: Sequence[dict[str, Any]], seed: int) -> Slope:
    return fit_slope(
        np.asarray([entry["m"] for entry in own]),
        [np.asarray(entry["reaches"]) for entry in own],
        [np.asarray(entry["censored"], dtype=bool) for entry in own],
        [entry["limit"] for entry in own],
        rng=np.random.default_rng([seed, 3]),
        # String i is the same text at every m, so whole strings are resampled.
        paired=True,
    )


def _slope_of_points(own: Sequence[dict[str, Any]], points: dict[Condition, PointCurve], seed: int) -> Slope:
    """Return the slope through curves that fit; one that does not has no n50 to enter with."""
    curves = {entry["m"]: points[Condition(entry["target"], entry["m"])] for entry in own}
    fits = {m: one.fit for m, one in curves.items() if one.verdict != "curve_does_not_fit"}
    return fit_slope_of_curves(
        np.asarray(list(fits), dtype=np.int64), list(fits.values()), rng=np.random.default_rng([seed, 3])
    )


def _slope_entry(target: str, slope: Slope, limits: Sequence[Limit]) -> dict[str, Any]:
    ratios = []
    for limit in limits:
        ratio, low, high = slope.ratio(limit.tokens_per_vector)
        if ratio is not None:
            ratios.append({"limit": limit.name, "ratio": ratio, "low": low, "high": high})
    return {
        "target": target,
        **slope.as_dict(),
        "ratios": ratios,
        "extrapolated": _extrapolated(slope),
    }


def _extrapolated(slope: Slope) -> list[dict[str, float | None]]:
    """Return the line's n50 at one and at twice the largest m, and at ten times: far ends have wide bands."""
    found = []
    for m in (max(slope.m, default=0) * factor for factor in (1, 2, 10)):
        told = slope.at(m)
        if told is not None:
            found.append({"m": m, "n50": told[0], "low": told[1], "high": told[2]})
    return found


def examples_section(
    conditions: Sequence[Condition], trials: dict[Condition, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return the furthest-reaching strings of each condition, with their texts."""
    shown = []
    for condition in conditions:
        own = counted(trials.get(condition, []))
        # Nothing that the published protocol calls a success is shown to come out of the vectors alone.
        if any("decoded" in trial for trial in own):
            continue
        kept = sorted(own, key=lambda t: -t["reach"])
        shown += [
            {
                "target": condition.target,
                "m": condition.m,
                "key": trial["key"],
                "reach": trial["reach"],
                "text": trial["text"],
                "emitted": trial["emitted"],
            }
            for trial in kept[:_EXAMPLES_PER_CELL]
        ]
    return shown


def precision_section(
    wanted: float | None,
    entries: Sequence[dict[str, Any]],
    slopes: Sequence[dict[str, Any]],
    settled: Sequence[Skipped],
) -> dict[str, Any]:
    """Return which of the asked numbers are known to the wanted relative width, and which are not.

    A number whose interval has an open end has no width and is not known; see its own words.
    """
    numbers = [
        {"what": "n50", "target": e["target"], "m": e["m"], "relative_width": e["relative_width"]}
        for e in entries
    ]
    numbers += [
        {"what": "slope", "target": s["target"], "m": None, "relative_width": s["relative_width"]}
        for s in slopes
        if s["verdict"] != "too_few_points"
    ]
    for one in numbers:
        width = one["relative_width"]
        one["known"] = None if wanted is None else width is not None and width <= wanted
    spared = [
        {"target": one.condition.target, "m": one.condition.m, "strings": one.strings, "why": one.why}
        for one in settled
    ]
    return {"wanted": wanted, "numbers": numbers, "ended_early": spared}


def not_done_section(
    skipped: Sequence[Skipped],
    trials: dict[Condition, list[dict[str, Any]]],
    notes: Sequence[tuple[str, str]],
    noun: str = "strings",
) -> list[dict[str, str]]:
    """Return what was left out and why; ``noun``: what the conditions are made of."""
    rows = [{"what": what, "why": why} for what, why in notes]
    rows += [{"what": f"{one.strings} {noun} of {one.condition.name}", "why": one.why} for one in skipped]
    for condition, own in trials.items():
        loose = len(own) - len(counted(own))
        if loose:
            rows.append(
                {
                    "what": f"{loose} finished {noun} of {condition.name} are not counted",
                    "why": "their batch was interrupted, and early finishers alone would bias the curve; "
                    "'lmreach resume' completes it",
                }
            )
    return rows


def assemble(
    config: StudyConfig,
    facts: ModelFacts,
    *,
    limits: Sequence[Limit],
    support: HiddenSupport | None,
    conditions: Sequence[Condition],
    trials: dict[Condition, list[dict[str, Any]]],
    extents: dict[str, Extent],
    skipped: Sequence[Skipped],
    settled: Sequence[Skipped] = (),
    decoder_cells: dict[str, Any] | None = None,
    census: dict[str, Any] | None = None,
    copying: dict[str, Any] | None = None,
    search: dict[str, Any] | None = None,
    notes: Sequence[tuple[str, str]],
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Return the whole of results.json (schema 1)."""
    protocol = config.cram.model_dump(mode="json")
    entries = accessibility_section(conditions, trials, facts, limits, protocol, extents)
    whole = config.cram.protocol == "frontier"
    points = None if whole else {condition: points_of(counted(own)) for condition, own in trials.items()}
    kinds = list(dict.fromkeys(c.target for c in conditions))
    slopes = slopes_section(kinds, entries, limits, seed=config.cram.seed, points=points)
    strings = Counter[str]()
    for entry in entries:
        strings[entry["target"]] += entry["strings"]
    return {
        "schema": SCHEMA,
        "kind": "study",
        "model_name": facts.name,
        "model": facts.as_dict(),
        "config": public(config, facts.name),
        "results": {
            "limits": limits_section(limits),
            "support": support_section(support),
            "accessibility": entries,
            "slopes": slopes,
            "cells": decoder_cells,
            "census": census,
            **({} if copying is None else {"copying": copying}),
            "search": search or None,
            "precision": precision_section(config.relative_width, entries, slopes, settled),
        },
        "examples": examples_section(conditions, trials),
        "not_done": not_done_section(skipped, trials, notes, "strings" if whole else "trials"),
        "n-samples": dict(strings),
        "provenance": provenance,
    }


def reach_arrays(trials: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return reaches and censoring flags of some trials, in their order."""
    reach = np.asarray([t["reach"] for t in trials], dtype=np.int64)
    return reach, np.asarray([t["outcome"] == "hit_limit" for t in trials], dtype=bool)
