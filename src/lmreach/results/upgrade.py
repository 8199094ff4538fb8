"""Older results.json, brought up to the present schema.

Schema 1 (before there was a ``schema_version``) nested what was measured under ``results``, wrote n50 in
three shapes and held some keys that nobody read. Numbers are taken as they are; nothing is computed again.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lmreach.errors import InputError, problem
from lmreach.results import cells as of_cells
from lmreach.results import census as of_census
from lmreach.results import copying as of_copying
from lmreach.results import study as of_study
from lmreach.results.answers import Answer
from lmreach.results.base import FittedCurve, Interval, Result
from lmreach.results.limits import Limit
from lmreach.results.run import SCHEMA_VERSION, Model, NotDone, Provenance

__all__ = ["grid_parts", "read_cells", "read_census", "read_copying", "read_search", "upgrade"]

Raw = dict[str, Any]
"""Parsed JSON whose shape is only known once it has been validated: the one place that holds such."""


def upgrade(raw: object) -> Raw:
    """Return a parsed results.json of any version in the shape of the present one, still to be validated.

    Raises
    ------
    InputError
        For what is no results.json, or one of a later version.
    """
    got = f"{type(raw).__name__}"
    if isinstance(raw, dict):
        got = f"keys {', '.join(map(str, list(raw)[:4]))}" if raw else "nothing"
        version = raw.get("schema_version", raw.get("schema"))
        if version == SCHEMA_VERSION:
            return raw
        if version == 1 and isinstance(raw.get("results"), dict):
            return _whole(raw)
        if version is not None:
            got = f"schema {version!r}"
    wanted = f"results of schema 1 to {SCHEMA_VERSION}"
    raise InputError(problem(wanted, got, "give the results.json of a run, or read it with a later lmreach"))


def read_cells(kept: Raw | None) -> of_cells.Cells | None:
    """Return the parts about decoder cells that a run of any version has kept; None for none."""
    return None if kept is None else of_cells.Cells.model_validate(_cells_parts(kept))


def read_census(kept: Raw | None) -> of_census.Census | None:
    """Return the counts that a run of any version has kept; None for none."""
    return None if kept is None else of_census.Census.model_validate(_census_parts(kept))


def grid_parts(kept: object) -> object:
    """Return the counts of one grid, as a run of any version has kept them, in their present shape."""
    return _grid(kept) if isinstance(kept, dict) else kept


def read_copying(kept: Raw | None) -> of_copying.Copying | None:
    """Return how far a model copies, as a run of any version has kept it; None for none."""
    return None if kept is None else of_copying.Copying.model_validate(_copying_parts(kept))


def read_search(kept: Raw | None) -> of_study.SearchRecord | None:
    """Return what the optimiser worked on, as a run of any version has kept it; None for none."""
    return of_study.SearchRecord.model_validate(_search_parts(kept)) if kept else None


def _whole(raw: Raw) -> Raw:
    """Return results of schema 1 in the present shape, or say in one line what they lack."""
    try:
        return _from_1(raw)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        got = f"a part that does not hold {error}" if isinstance(error, KeyError) else f"a part of {error}"
        raise InputError(
            problem("whole results of schema 1", got, "give the file as it was written")
        ) from error


def _from_1(raw: Raw) -> Raw:
    kinds = {"study": _study, "census": _census, "copy": _copy, "reachable": _reachable}
    kind = raw.get("kind", "study")
    if kind not in kinds:
        raise InputError(problem(f"results of kind {', '.join(kinds)}", repr(kind), "give another file"))
    common = {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "model": _kept(raw["model"], Model),
        "config": raw["config"],
        "provenance": _kept(raw["provenance"], Provenance),
        "not_done": [_kept(one, NotDone) for one in raw.get("not_done") or ()],
    }
    return {**common, **kinds[kind](raw, raw["results"])}


def _study(raw: Raw, found: Raw) -> Raw:
    return {
        "limits": _limits(found),
        "support": found.get("support") and _kept(found["support"], of_study.Support),
        "accessibility": [_accessibility(one) for one in found.get("accessibility") or ()],
        "slopes": [_slope(one) for one in found.get("slopes") or ()],
        "cells": found.get("cells") and _cells_parts(found["cells"]),
        "census": found.get("census") and _census_parts(found["census"]),
        "copying": found.get("copying") and _copying_parts(found["copying"]),
        "search": found.get("search") and _search_parts(found["search"]),
        "precision": found.get("precision"),
        "examples": raw.get("examples") or (),
        "n_samples": raw.get("n-samples") or {},
    }


def _census(_: Raw, found: Raw) -> Raw:
    return {"census": _census_parts(found["census"])}


def _copy(_: Raw, found: Raw) -> Raw:
    return {"copying": _copying_parts(found["copying"]), "limits": _limits(found)}


def _reachable(_: Raw, found: Raw) -> Raw:
    return _kept(found["answer"], Answer)


def _limits(found: Raw) -> list[Raw]:
    return [_kept(one, Limit) for one in found.get("limits") or ()]


def _search_parts(kept: Raw) -> Raw:
    """Return what the optimiser worked on; as it is where it has the present shape."""
    return _kept(kept, of_study.SearchRecord)


def _accessibility(one: Raw) -> Raw:
    new = _kept(one, of_study.Accessibility)
    new["n50"] = _kept(one["n50"], Interval)
    if one.get("information"):
        new["information"] = _kept(one["information"], of_study.Information)
    if one.get("cliff"):
        new["cliff"] = _kept(one["cliff"], of_study.Cliff)
    if one.get("fit"):
        new["fit"] = _fit(one["fit"], of_study.Fit)
    told = one.get("intervals")
    if told:
        ends = {"value": None, "low": told.get("n50_low"), "high": told.get("n50_high")}
        new["turnbull"] = {**_kept(told, of_study.Turnbull), "n50": {**ends, "verdict": "separated"}}
    return new


def _fit(fit: Raw, shape: type[Result]) -> Raw:
    """Return a fitted curve, whose numbers were lists of value, low and high."""
    new = _kept(fit, shape)
    for name in ("n90", "n10", "width", "lapse"):
        new[name] = _interval(fit.get(name), fit.get("confidence"))
    return new


def _interval(ends: list[float | None] | None, confidence: float | None = None) -> Raw | None:
    return None if ends is None else {**_ends(ends), "confidence": confidence}


def _ends(ends: list[float | None]) -> Raw:
    return dict(zip(("value", "low", "high"), ends, strict=True))


def _slope(one: Raw) -> Raw:
    new = _kept(one, of_study.Slope)
    told = {name: one[name] for name in ("low", "high", "verdict", "words")}
    ratios, further = one.get("ratios") or (), one.get("extrapolated") or ()
    return {
        **new,
        "slope": {"value": one["slope"], **told},
        "through_origin": _interval(one.get("through_origin")),
        "exponent": _interval(one.get("exponent")),
        "ratios": [{"limit": r["limit"], "ratio": _ends([r["ratio"], r["low"], r["high"]])} for r in ratios],
        "extrapolated": [{"m": e["m"], "n50": _ends([e["n50"], e["low"], e["high"]])} for e in further],
    }


def _cells_parts(kept: Raw) -> Raw:
    """Return the parts about decoder cells; as they are where they have the present shape."""
    parts: dict[str, Callable[[Raw], Raw]] = {
        "shares": _shares,
        "map": dict,
        "unreachable": _unreachable,
        "rare": _rare,
    }
    return {name: part(kept[name]) for name, part in parts.items() if kept.get(name)}


def _shares(kept: Raw) -> Raw:
    return _kept(kept, of_cells.Shares)


def _unreachable(kept: Raw) -> Raw:
    ties = kept.get("tie-only", kept.get("tie_only"))
    return {**_kept(kept, of_cells.Unreachable), "tie_only": ties}


def _rare(kept: Raw) -> Raw:
    means = [
        {
            **_kept(mean, of_cells.MeanLogShare),
            "limits": {
                name: _kept(limit, of_cells.CellLimit) for name, limit in (mean.get("limits") or {}).items()
            },
        }
        for mean in kept["means"]
    ]
    return {
        **_kept(kept, of_cells.Rare),
        "tokens": _all(kept["tokens"], of_cells.RareToken),
        "means": means,
        "ratios": _all(kept["ratios"], of_cells.SlopeRatio),
    }


def _census_parts(kept: Raw) -> Raw:
    """Return the counts of a census; as they are where they have the present shape."""
    return {
        "grids": [_grid(one) for one in kept.get("grids") or ()],
        "tokens": [_tokens(one) for one in kept.get("tokens") or ()],
    }


def _grid(kept: Raw) -> Raw:
    lengths = kept.get("lengths") or kept.get("estimates") or ()
    return {**_kept(kept, of_census.GridCount), "lengths": _all(lengths, of_census.GridLength)}


def _tokens(kept: Raw) -> Raw:
    return {
        **_kept(kept, of_census.TokenCount),
        "lengths": _all(kept["lengths"], of_census.TokenLength),
    }


def _copying_parts(kept: Raw) -> Raw:
    """Return how far a model copies; as it is where it has the present shape."""
    if "fit" in kept:
        return kept
    return {
        **_kept(kept, of_copying.Copying),
        "n50": _n50_of_fit(kept["n50"]),
        "fit": _fit(kept["n50"], FittedCurve),
        "lengths": _all(kept["lengths"], of_copying.CopyLength),
        "layouts": [
            {**_kept(one, of_copying.Layout), "n50": _n50_of_fit(one["n50"])}
            for one in kept.get("layouts") or ()
        ],
    }


def _n50_of_fit(fit: Raw) -> Raw:
    told = {name: fit[name] for name in ("verdict", "confidence", "words")}
    return {**_ends(fit["n50"] or [None, None, None]), **told}


def _all(kept: Iterable[Raw], shape: type[Result]) -> list[Raw]:
    return [_kept(one, shape) for one in kept]


def _kept(raw: Raw, shape: type[Result]) -> Raw:
    """Return what a part still holds; keys that nobody read are left behind."""
    return {name: value for name, value in raw.items() if name in shape.model_fields}
