"""Published values beside what this package computes for the limits that need no weights.

Sources: [M26] arXiv 2605.22223 with its replication repository, [K25] arXiv 2502.13063. The numbers live in
``data/paper_values.json``; nothing here is measured.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from lmreach.maths.bounds import Limit, limit_from, limits
from lmreach.maths.precision import precision_of
from lmreach.maths.supports import Cone

# A published number that differs from ours, or from another published one, by more than this is flagged.
_WORTH_A_WORD = 1e-3

NOTES = (
    "The published ball bound sets eps to u(float16) times the measured radius, so the radius cancels: "
    "the value depends on d and V alone, and its plot against prompt length is flat by construction.",
    "The published cone column subtracts the log share of a cone of half the largest pairwise angle. It is "
    "reproduced here as a convention; it is no upper bound (see docs/theory.md).",
    "The published cone code takes the log of a share that underflows to 0 on real widths and stops there; "
    "here the share is computed in logs.",
    "The published n counts a first token that is given and not scored.",
)


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One published model.

    Attributes
    ----------
    id, width, vocab
        Name on the hub, d and V; None where the publication does not list them.
    slope_text, slope_random, slope_listed
        Published slopes in tokens per vector: natural text and random words (figure legends), and the column
        of the model list that the published ratios use. None where not published.
    ball, cone
        Our C in tokens per vector: the ball at eps = u r, and the cone by the paper's convention at the
        published angle. None where d, V or the angle is not published.
    ratio_text, ratio_random, ratio_listed, ratio_cone
        ``ball`` over each slope, and ``cone`` over the listed slope.
    published_ratio_ball, published_ratio_cone, published_ratio_box
        As printed by the published notebook; the box needs hidden states and is not computed here.
    flags
        What differs, in words.
    """

    id: str
    width: int | None
    vocab: int | None
    slope_text: float | None
    slope_random: float | None
    slope_listed: float | None
    ball: float | None
    cone: float | None
    ratio_text: float | None
    ratio_random: float | None
    ratio_listed: float | None
    ratio_cone: float | None
    published_ratio_ball: float | None
    published_ratio_cone: float | None
    published_ratio_box: float | None
    flags: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the row, JSON-ready."""
        return asdict(self)


@cache
def _read() -> str:
    return (resources.files("lmreach") / "data" / "paper_values.json").read_text(encoding="utf-8")


def published() -> dict[str, Any]:
    """Return all published values, a fresh copy of ``data/paper_values.json``."""
    values: dict[str, Any] = json.loads(_read())
    return values


def comparison(dtype: str = "float16") -> tuple[PaperRow, ...]:
    """Return one row per published model, in the published order.

    Parameters
    ----------
    dtype
        Format behind eps; the published values use float16.

    Raises
    ------
    InputError
        For an unknown dtype.
    """
    values = published()
    bounds = {entry["id"]: entry for entry in values["bound_ratios_M26"]}
    return tuple(_row(model, bounds.get(model["id"], {}), dtype) for model in values["models_M26"])


def _row(model: dict[str, Any], bound: dict[str, Any], dtype: str) -> PaperRow:
    width, vocab, angle = model.get("d"), model.get("V"), bound.get("theta")
    ball = cone = None
    if width is not None and vocab is not None:
        ball = limits(width=width, vocab=vocab, dtype=dtype)[0].tokens_per_vector
        cone = None if angle is None else _cone(width, vocab, angle, dtype).tokens_per_vector
    listed = model.get("slope_listed")
    row = PaperRow(
        id=model["id"],
        width=width,
        vocab=vocab,
        slope_text=model.get("slope_text"),
        slope_random=model.get("slope_random"),
        slope_listed=listed,
        ball=ball,
        cone=cone,
        ratio_text=_over(ball, model.get("slope_text")),
        ratio_random=_over(ball, model.get("slope_random")),
        ratio_listed=_over(ball, listed),
        ratio_cone=_over(cone, listed),
        published_ratio_ball=bound.get("ratio_ball"),
        published_ratio_cone=bound.get("ratio_cone"),
        published_ratio_box=bound.get("ratio_box"),
        flags=(),
    )
    return PaperRow(**{**asdict(row), "flags": _flags(row)})


def _cone(width: int, vocab: int, angle: float, dtype: str) -> Limit:
    """Return the published cone value at half the largest pairwise angle (radians)."""
    cone = Cone(width, 1.0, angle / 2, convention=True, source="published angle")
    return limit_from(cone, name="cone (paper)", eps=precision_of(dtype, 1.0), vocab=vocab, note="")


def _over(limit: float | None, slope: float | None) -> float | None:
    return None if limit is None or slope is None else limit / slope


def _flags(row: PaperRow) -> tuple[str, ...]:
    """Say what is missing and what differs."""
    flags = []
    if row.ball is None:
        flags.append("d and V are not published, so nothing is computed")
    pairs = (
        ("listed slope", row.slope_listed, "slope in the figure", row.slope_text),
        ("our ball ratio", row.ratio_listed, "published ball ratio", row.published_ratio_ball),
        ("our cone ratio", row.ratio_cone, "published cone ratio", row.published_ratio_cone),
    )
    for name, value, other, reference in pairs:
        if value is None or reference is None:
            continue
        off = value / reference - 1
        if abs(off) > _WORTH_A_WORD:
            flags.append(f"{name} {value:.6g} differs from {other} {reference:.6g} ({off:+.1%})")
    return tuple(flags)
