"""A study, or a published slope, as entries of a comparison."""

import math
from collections.abc import Sequence

from lmreach.errors import InputError, problem
from lmreach.paper import PaperRow, comparison, published
from lmreach.results.base import Interval
from lmreach.results.compare import PUBLISHED, ComparisonEntry, LimitBeside
from lmreach.results.limits import Limit, tightest
from lmreach.results.study import Accessibility, Slope, StudyResults

__all__ = ["measured_entries", "published_entries"]

_NO_SLOPE = Interval(value=None, verdict="too_few_points", words="no slope: one number of vectors")


def measured_entries(study: str, results: StudyResults) -> list[ComparisonEntry]:
    """Return one entry per target kind of a study, in its order."""
    kinds = dict.fromkeys([one.target for one in results.accessibility])
    return [_measured(study, results, target) for target in kinds]


def _measured(study: str, results: StudyResults, target: str) -> ComparisonEntry:
    mine = tuple(one for one in results.accessibility if one.target == target)
    line = next((one for one in results.slopes if one.target == target), None)
    slope = _NO_SLOPE if line is None else line.slope
    model = results.model
    ball = next((one for one in results.limits if one.is_paper_ball), None)
    growing = [one.still_growing for one in mine if one.still_growing is not None]
    return ComparisonEntry(
        study=study,
        origin="measured",
        model=model.name,
        width=model.width,
        vocab=model.usable,
        dtype=model.dtype,
        target=target,
        protocol=", ".join(dict.fromkeys(one.protocol for one in mine)),
        m=tuple(one.m for one in mine),
        strings=tuple(one.finished for one in mine),
        steps=_steps(mine),
        still_growing=sum(growing) if growing else None,
        slope=slope,
        intercept=None if line is None else line.intercept,
        bits_per_coordinate=_bits(slope.value, model.usable, model.width),
        hidden=_beside(tightest(results.limits, "hidden"), line),
        input=_beside(tightest(results.limits, "input"), line),
        format=_beside(tightest(results.limits, "format"), line),
        ball=_beside(ball, line),
        conditions=mine,
    )


def _steps(mine: Sequence[Accessibility]) -> float | None:
    counted = sum(one.trials or one.finished for one in mine)
    return sum(one.steps for one in mine) / counted if counted else None


def _bits(slope: float | None, vocab: int | None, width: int | None) -> float | None:
    """Return slope log2(V) / d: what a further vector carries per coordinate if its tokens are uniform."""
    return None if slope is None or vocab is None or width is None else slope * math.log2(vocab) / width


def _beside(limit: Limit | None, line: Slope | None) -> LimitBeside | None:
    if limit is None:
        return None
    ratios = () if line is None else line.ratios
    ratio = next((one.ratio for one in ratios if one.limit == limit.name), None)
    return LimitBeside(name=limit.name, tokens_per_vector=limit.tokens_per_vector, ratio=ratio)


def published_entries(names: Sequence[str]) -> list[ComparisonEntry]:
    """Return the published slopes of some models; ``all`` stands for every model.

    Raises
    ------
    InputError
        A name that no published model has.
    """
    rows = comparison()
    wanted: list[PaperRow] = []
    for name in names:
        chosen = [row for row in rows if name.lower() in ("all", row.id.lower(), _short(row.id).lower())]
        if not chosen:
            known = ", ".join(_short(row.id) for row in rows)
            raise InputError(problem(f"'all' or one of the published models {known}", repr(name), "name one"))
        wanted += [row for row in chosen if row not in wanted]
    return [entry for row in wanted for entry in _published(row)]


def _published(row: PaperRow) -> list[ComparisonEntry]:
    slopes = {"random words": row.slope_random, "natural text": row.slope_text}
    if not any(slopes.values()):
        slopes = {"listed by the paper": row.slope_listed}
    return [_published_slope(row, target, slope) for target, slope in slopes.items() if slope is not None]


def _published_slope(row: PaperRow, target: str, slope: float) -> ComparisonEntry:
    protocol = published()["protocol_M26"]
    ball = None
    if row.ball is not None:
        ratio = Interval(value=row.ball / slope, words="no interval is published")
        ball = LimitBeside(name="ball (paper)", tokens_per_vector=row.ball, ratio=ratio)
    return ComparisonEntry(
        study=f"{_short(row.id)}{PUBLISHED}",
        origin="published",
        model=row.id,
        width=row.width,
        vocab=row.vocab,
        dtype=None,
        target=target,
        protocol="published",
        m=tuple(protocol["m"]),
        strings=(protocol["strings_per_length"],) * len(protocol["m"]),
        steps=protocol["max_steps"],
        slope=Interval(value=slope, words="no interval is published"),
        bits_per_coordinate=_bits(slope, row.vocab, row.width),
        ball=ball,
    )


def _short(name: str) -> str:
    return name.rpartition("/")[2]
