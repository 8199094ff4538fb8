"""How the report reads a results dict: the one place that knows where things stand in it."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lmreach.errors import InputError, problem
from lmreach.report.kit.format import is_number

Record = Mapping[str, Any]
SCHEMA = 1
PREMISES = ("hidden", "input", "format")


def check(results: Record) -> None:
    """Refuse what is no study result of this schema.

    Raises
    ------
    InputError
        If the schema number is another one or the ``results`` part is missing.
    """
    got = results.get("schema") if isinstance(results, Mapping) else type(results).__name__
    if got != SCHEMA:
        raise InputError(
            problem(f"results of schema {SCHEMA}", f"schema {got!r}", "render with the version that wrote it")
        )
    if not isinstance(results.get("results"), Mapping):
        raise InputError(problem("a 'results' part", "none", "give the whole results.json of a run"))


def records(results: Record, name: str) -> list[Record]:
    """Return the records of one part (``limits``, ``accessibility``, ``slopes``); absent means none."""
    found = results["results"].get(name)
    if found is not None and not isinstance(found, list | tuple):
        raise InputError(problem(f"a list of {name}", repr(found), "give the results.json of a run"))
    return list(found or ())


def limits(results: Record) -> list[Record]:
    """Return the limits, ordered by premise and then from tight to loose; none is dropped."""
    return sorted(records(results, "limits"), key=lambda limit: (_rank(limit), _tightness(limit)))


def _rank(limit: Record) -> int:
    premise = limit.get("premise")
    return PREMISES.index(premise) if premise in PREMISES else len(PREMISES)


def _tightness(limit: Record) -> float:
    tokens = limit.get("tokens_per_vector")
    return float(tokens) if is_number(tokens) else math.inf


def is_paper_ball(limit: Record) -> bool:
    """Say whether a limit is the paper's ball, which depends on nothing but width, vocabulary and dtype."""
    return limit.get("support") == "ball" and "paper" in str(limit.get("name"))


def tightest(results: Record) -> list[Record]:
    """Return the limits marked as the tightest of their premise that carry a number."""
    return [
        limit
        for limit in limits(results)
        if limit.get("tightest_of_premise") and math.isfinite(_tightness(limit))
    ]


def extents(results: Record) -> list[Record]:
    """Return where the vectors of each cell lie beside real inputs, for cells where all of it is known."""
    names = ("median_rms_over_inputs", "inside_input_box", "strings")
    given = [record.get("extent") for record in records(results, "accessibility")]
    return [one for one in given if isinstance(one, dict) and all(is_number(one.get(n)) for n in names)]


def precision(results: Record) -> list[Record]:
    """Return how well each asked number is known; none in results that did not record it."""
    found = results["results"].get("precision")
    return list(found.get("numbers") or ()) if isinstance(found, Mapping) else []


def wanted_width(results: Record) -> float | None:
    """Return the relative width at which a number counts as known, or None if none was asked for."""
    found = results["results"].get("precision")
    wanted = found.get("wanted") if isinstance(found, Mapping) else None
    return float(wanted) if is_number(wanted) else None


def covariance(slope: Record) -> tuple[float, float, float] | None:
    """Return variance of slope, variance of intercept and covariance of a line, if recorded."""
    found = slope.get("covariance")
    if not isinstance(found, list | tuple) or len(found) != 3 or not all(map(is_number, found)):
        return None
    return float(found[0]), float(found[1]), float(found[2])


def rms_over_inputs(record: Record) -> Any:
    """Return the median RMS of a cell's vectors over that of real inputs, or None."""
    extent = record.get("extent")
    return extent.get("median_rms_over_inputs") if isinstance(extent, dict) else None


def targets(results: Record) -> list[str]:
    """Return the target kinds measured, in the order of the records."""
    every = [*records(results, "accessibility"), *records(results, "slopes")]
    return list(dict.fromkeys(str(record.get("target")) for record in every))


def vectors(record: Record) -> float | None:
    """Return m of a record, or None if it is no positive number (such a record is in the tables only)."""
    m = record.get("m")
    return float(m) if is_number(m) and m > 0 else None


def of_target(found: Iterable[Record], target: str) -> list[Record]:
    """Return the records of one target kind."""
    return [record for record in found if str(record.get("target")) == target]


def slope_of(results: Record, target: str) -> Record | None:
    """Return the slope record of a target kind, if it has a value."""
    for slope in of_target(records(results, "slopes"), target):
        if is_number(slope.get("slope")):
            return slope
    return None


def ratio_of(slope: Record | None, limit: Record) -> Record | None:
    """Return the ratio record of a limit to a slope, if the results hold one."""
    for ratio in (slope or {}).get("ratios") or ():
        if ratio.get("limit") == limit.get("name"):
            return dict(ratio)
    return None


def log_vocabulary(limit: Record) -> float | None:
    """Return ln V as it entered a limit (ln P divided by tokens per vector), or None without both numbers."""
    nats, tokens = limit.get("log_packing_nats"), limit.get("tokens_per_vector")
    if is_number(nats) and is_number(tokens) and tokens and nats:
        return float(nats) / float(tokens)
    return None
