"""What several sections read of results: limits in order, and what belongs to a target kind."""

from collections.abc import Iterable, Sequence

from lmreach.results import AnyResults, CopyResults, Interval
from lmreach.results.limits import Limit
from lmreach.results.study import Accessibility, Extent, Slope, StudyResults

PREMISES = ("hidden", "input", "format")


def limits(results: AnyResults) -> list[Limit]:
    """Return the limits, ordered by premise and then from tight to loose; none is dropped."""
    held = results.limits if isinstance(results, StudyResults | CopyResults) else ()
    return sorted(held, key=lambda limit: (_rank(limit), limit.tokens_per_vector))


def _rank(limit: Limit) -> int:
    return PREMISES.index(limit.premise) if limit.premise in PREMISES else len(PREMISES)


def tightest(results: AnyResults) -> list[Limit]:
    """Return the limits marked as the tightest of their premise."""
    return [limit for limit in limits(results) if limit.tightest_of_premise]


def entries(results: AnyResults) -> Sequence[Accessibility]:
    """Return what was reached, condition by condition; none where nothing was crammed."""
    return results.accessibility if isinstance(results, StudyResults) else ()


def slopes(results: AnyResults) -> Sequence[Slope]:
    """Return the slopes; none where nothing was crammed."""
    return results.slopes if isinstance(results, StudyResults) else ()


def extents(results: AnyResults) -> list[Extent]:
    """Return where the vectors of each condition lie beside real inputs, where some were found."""
    return [entry.extent for entry in entries(results) if entry.extent is not None]


def targets(results: AnyResults) -> list[str]:
    """Return the target kinds measured, in the order of the entries."""
    every = [entry.target for entry in entries(results)] + [slope.target for slope in slopes(results)]
    return list(dict.fromkeys(every))


def of_target(found: Iterable[Accessibility], target: str) -> list[Accessibility]:
    """Return the entries of one target kind."""
    return [entry for entry in found if entry.target == target]


def slope_of(results: AnyResults, target: str) -> Slope | None:
    """Return the slope of a target kind, if it has a value."""
    return next(
        (one for one in slopes(results) if one.target == target and one.slope.value is not None), None
    )


def ratio_of(slope: Slope | None, limit: Limit) -> Interval | None:
    """Return a limit over a slope, if the results hold it."""
    ratios = () if slope is None else slope.ratios
    return next((one.ratio for one in ratios if one.limit == limit.name), None)
