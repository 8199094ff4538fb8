"""results.json: every number of a run, put together from the ledger; nothing is measured here."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmreach.config import StudyConfig
from lmreach.experiments.geometry import HiddenSupport
from lmreach.maths.bounds import Limit, tightest
from lmreach.models.facts import ModelFacts
from lmreach.stats.accessibility import curve, half_length
from lmreach.stats.information import Information
from lmreach.stats.slope import fit_slope
from lmreach.study.extent import Extent
from lmreach.study.schedule import Cell, Skipped

SCHEMA = 1
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
        "min_cos": None,
        "inside_norm_ellipsoid": None if fraction is None else fraction <= 1 + 1e-4,
        "largest_ellipsoid_fraction": fraction,
    }


def counted(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials of one cell that count: strings 0, 1, 2, ... up to the first one missing.

    Of an interrupted batch the early finishers are the ones that gave up early, so counting whoever
    happened to finish would bias the curve; a run of whole indices does not.
    """
    by_index = {trial["index"]: trial for trial in trials}
    kept: list[dict[str, Any]] = []
    while len(kept) in by_index:
        kept.append(by_index[len(kept)])
    return kept


def accessibility_section(
    cells: Sequence[Cell],
    trials: dict[Cell, list[dict[str, Any]]],
    facts: ModelFacts,
    limits: Sequence[Limit],
    protocol: dict[str, Any],
    extents: dict[str, Extent],
) -> list[dict[str, Any]]:
    """Return one entry per cell that has strings: curve, n50, information and ratios to every limit."""
    whole = [(cell, counted(trials.get(cell, []))) for cell in cells]
    return [_cell_entry(cell, kept, facts, limits, protocol, extents) for cell, kept in whole if kept]


def _cell_entry(
    cell: Cell,
    kept: list[dict[str, Any]],
    facts: ModelFacts,
    limits: Sequence[Limit],
    protocol: dict[str, Any],
    extents: dict[str, Extent],
) -> dict[str, Any]:
    reach, censored = _arrays(kept)
    limit = int(kept[0]["limit"])
    n50 = half_length(reach, censored, limit=limit)
    shape = curve(reach, censored)
    bits = None if n50.value is None else Information(n50.value, cell.m, facts.width, facts.usable, 32)
    per_vector = None if bits is None else bits.tokens_per_vector
    gaps = [t["smallest_gap"] for t in kept if t["smallest_gap"] is not None]
    return {
        "target": cell.target,
        "m": cell.m,
        "protocol": protocol["protocol"],
        "bos": protocol["bos"],
        "strings": len(kept),
        "finished": len(kept),
        "limit": limit,
        "outcomes": dict(sorted(Counter(t["outcome"] for t in kept).items())),
        "reaches": reach.tolist(),
        "censored": censored.tolist(),
        "smallest_gap": min(gaps, default=None),
        "n50": n50.as_dict(),
        "curve": shape.as_dict(),
        "tokens_per_vector": per_vector,
        "bits_per_coordinate": None if bits is None else bits.bits_per_coordinate,
        "bits_ids": None if bits is None else bits.bits_ids,
        "bits_vectors": 32 * cell.m * facts.width,
        "extent": _extent([extents[t["key"]] for t in kept if t["key"] in extents]),
        "steps": sum(t["steps"] for t in kept),
        "seconds": sum(t["seconds"] for t in kept),
        "ratio_to_limits": {
            one.name: None if per_vector is None else one.tokens_per_vector / per_vector for one in limits
        },
    }


def _extent(found: Sequence[Extent]) -> dict[str, Any] | None:
    """Return where the vectors of a cell lie beside real inputs; None if no string was reached."""
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
) -> list[dict[str, Any]]:
    """Return n50 against m for each target kind: least squares with a bootstrap over strings."""
    found = []
    for target in targets:
        own = [entry for entry in entries if entry["target"] == target]
        if own:
            found.append(_slope_entry(target, own, limits, seed))
    return found


def _slope_entry(
    target: str, own: Sequence[dict[str, Any]], limits: Sequence[Limit], seed: int
) -> dict[str, Any]:
    strings = {entry["strings"] for entry in own}
    slope = fit_slope(
        np.asarray([entry["m"] for entry in own]),
        [np.asarray(entry["reaches"]) for entry in own],
        [np.asarray(entry["censored"], dtype=bool) for entry in own],
        [entry["limit"] for entry in own],
        rng=np.random.default_rng([seed, 3]),
        # String i is the same text at every m, so whole strings are resampled where the counts allow it.
        paired=len(strings) == 1,
    )
    ratios = []
    for limit in limits:
        ratio, low, high = slope.ratio(limit.tokens_per_vector)
        if ratio is not None:
            ratios.append({"limit": limit.name, "ratio": ratio, "low": low, "high": high})
    return {
        "target": target,
        **slope.as_dict(),
        "ratios": ratios,
    }


def examples_section(cells: Sequence[Cell], trials: dict[Cell, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the furthest-reaching strings of each cell, with their texts."""
    shown = []
    for cell in cells:
        kept = sorted(counted(trials.get(cell, [])), key=lambda t: -t["reach"])
        shown += [
            {
                "target": cell.target,
                "m": cell.m,
                "key": trial["key"],
                "reach": trial["reach"],
                "text": trial["text"],
                "emitted": trial["emitted"],
            }
            for trial in kept[:_EXAMPLES_PER_CELL]
        ]
    return shown


def not_done_section(
    skipped: Sequence[Skipped], trials: dict[Cell, list[dict[str, Any]]], notes: Sequence[tuple[str, str]]
) -> list[dict[str, str]]:
    """Return what was left out and why."""
    rows = [{"what": what, "why": why} for what, why in notes]
    rows += [{"what": f"{one.strings} strings of {one.cell.name}", "why": one.why} for one in skipped]
    for cell, own in trials.items():
        loose = len(own) - len(counted(own))
        if loose:
            rows.append(
                {
                    "what": f"{loose} finished strings of {cell.name} are not counted",
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
    cells: Sequence[Cell],
    trials: dict[Cell, list[dict[str, Any]]],
    extents: dict[str, Extent],
    skipped: Sequence[Skipped],
    notes: Sequence[tuple[str, str]],
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Return the whole of results.json (schema 1)."""
    protocol = config.cram.model_dump(mode="json")
    entries = accessibility_section(cells, trials, facts, limits, protocol, extents)
    strings = Counter[str]()
    for entry in entries:
        strings[entry["target"]] += entry["strings"]
    return {
        "schema": SCHEMA,
        "kind": "study",
        "model_name": facts.name,
        "model": facts.as_dict(),
        "config": {
            **config.model_dump(mode="json"),
            "model": facts.name,
            "targets": _display(config.targets),
        },
        "results": {
            "limits": limits_section(limits),
            "support": support_section(support),
            "accessibility": entries,
            "slopes": slopes_section(
                list(dict.fromkeys(c.target for c in cells)), entries, limits, seed=config.cram.seed
            ),
        },
        "examples": examples_section(cells, trials),
        "not_done": not_done_section(skipped, trials, notes),
        "n-samples": dict(strings),
        "provenance": provenance,
    }


def _display(targets: Sequence[str]) -> list[str]:
    """Name files by their own name: results travel, paths do not."""
    shown = []
    for target in targets:
        word, colon, rest = target.partition(":")
        shown.append(f"{word}{colon}{rest.replace(chr(92), '/').rsplit('/', 1)[-1]}")
    return shown


def _arrays(trials: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    reach = np.asarray([t["reach"] for t in trials], dtype=np.int64)
    return reach, np.asarray([t["outcome"] == "hit_limit" for t in trials], dtype=bool)
