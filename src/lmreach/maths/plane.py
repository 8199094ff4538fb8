"""Cells of the decoder on a plane through three hidden states: exact convex polygons, nothing rasterised.

On the plane h(x, y) = o + x e1 + y e2 every score is affine, z_t = a_t + b_t x + c_t y. The largest score is
the upper envelope of V affine functions, so the cell of a token, cut to a rectangle, is a convex polygon. The
set of points where a token leads by at least a margin is the same with that margin added to all others.

Symbols: V tokens, h hidden width, P tokens that may matter inside the rectangle, k corners of a polygon.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from lmreach.errors import InputError, problem

__all__ = [
    "Plane",
    "PlaneCell",
    "PlaneMap",
    "area",
    "margins",
    "plane_map",
    "plane_scores",
    "plane_through",
    "rectangle_around",
]

Rectangle = tuple[float, float, float, float]
"""x0, x1, y0, y1."""

_ROWS = 1 << 14
_GRID = 24
_FLAT = 1e-7  # angle (radians) under which three states count as lying on one line
_POINT = 1e-13  # share of the rectangle under which a polygon is a rounding error
_CUTS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The plane through three hidden states.

    Attributes
    ----------
    origin
        Mean of the three, shape (h,).
    axes
        e1 and e2, orthonormal, shape (2, h); e1 points from the first state to the second.
    points
        Where the three states lie, shape (3, 2), in the units of the states.
    """

    origin: Float[np.ndarray, " h"]
    axes: Float[np.ndarray, "2 h"]
    points: Float[np.ndarray, "3 2"]


@dataclass(frozen=True, slots=True, eq=False)
class PlaneCell:
    """The cell of one token inside the rectangle.

    Attributes
    ----------
    token
        Index of the token (a row of the scores).
    corners
        Shape (k, 2), anticlockwise.
    area
        Share of the rectangle.
    """

    token: int
    corners: Float[np.ndarray, "k 2"]
    area: float


@dataclass(frozen=True, slots=True, eq=False)
class PlaneMap:
    """All cells inside a rectangle, the largest first, and the bands of the margin.

    Attributes
    ----------
    rectangle
        x0, x1, y0, y1.
    cells
        Every cell with an area.
    levels, bands
        For each level m, the polygons inside which the winner leads the runner-up by at least m.
    """

    rectangle: Rectangle
    cells: tuple[PlaneCell, ...]
    levels: tuple[float, ...]
    bands: tuple[tuple[PlaneCell, ...], ...]


def plane_through(states: Float[np.ndarray, "3 h"]) -> Plane:
    """Return the plane through three hidden states.

    Raises
    ------
    InputError
        If they are not three finite states, or lie on one line.
    """
    given = np.asarray(states, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != 3 or not np.isfinite(given).all():
        got = f"shape {given.shape}, finite: {bool(np.isfinite(given).all())}"
        raise InputError(problem("three finite hidden states", got, "give three texts"))
    along, across = given[1] - given[0], given[2] - given[0]
    length = np.linalg.norm(along)
    if length > 0:
        first = along / length
        across = across - (across @ first) * first
        across = across - (across @ first) * first  # once more: the first pass leaves its rounding
    height = np.linalg.norm(across)
    if length == 0 or height <= _FLAT * np.linalg.norm(given[2] - given[0]) or height == 0:
        raise InputError(
            problem("three hidden states that span a plane", "states on one line", "choose other texts")
        )
    axes = np.stack([first, across / height])
    origin = given.mean(axis=0)
    return Plane(origin, axes, (given - origin) @ axes.T)


def plane_scores(
    rows: Float[np.ndarray, "V h"], bias: Float[np.ndarray, " V"], plane: Plane
) -> Float[np.ndarray, "V 3"]:
    """Return (a_t, b_t, c_t) of z_t = a_t + b_t x + c_t y in float64, a chunk of rows at a time."""
    basis = np.vstack([plane.origin, plane.axes]).T
    scores = np.empty((len(rows), 3))
    for start in range(0, len(rows), _ROWS):
        scores[start : start + _ROWS] = np.asarray(rows[start : start + _ROWS], dtype=np.float64) @ basis
    scores[:, 0] += bias
    return scores


def rectangle_around(
    points: Float[np.ndarray, "k 2"], *, aspect: float = 1.0, margin: float = 0.25
) -> Rectangle:
    """Return the rectangle of shape ``aspect`` (width / height) that holds points with a margin on each side.

    The margin is a share of the larger side of the points' own box.
    """
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    size = high - low + 2 * margin * max(high - low)
    height = max(size[1], size[0] / aspect)
    half = np.array([height * aspect, height]) / 2
    middle = (low + high) / 2
    x0, y0 = middle - half
    x1, y1 = middle + half
    return float(x0), float(x1), float(y0), float(y1)


def plane_map(
    scores: Float[np.ndarray, "V 3"], rectangle: Rectangle, levels: tuple[float, ...] = ()
) -> PlaneMap:
    """Return every cell inside a rectangle as a polygon, and the bands of the margin.

    Exact up to float64: first all tokens are taken out that provably come nowhere within the largest level of
    the winner, by comparing them with affine lower bounds of the envelope on a grid of tiles; then the
    rectangle is cut, for each token left, by the competitor that leads most at a corner, until none leads.
    (An affine function that leads anywhere in a polygon leads at a corner, so the end is a proof.)

    Parameters
    ----------
    scores
        (a_t, b_t, c_t), shape (V, 3). Of tokens with equal scores the first one has the cell.
    rectangle
        x0 < x1, y0 < y1.
    levels
        Margins m > 0, in units of the scores.

    Raises
    ------
    InputError
        For scores that are not finite or of another shape, an empty rectangle, or levels not above 0.
    """
    given = _checked(scores, rectangle, levels)
    tolerance = 64 * np.finfo(np.float64).eps * float(np.abs(_at_corners(given, rectangle)).max())
    kept = _contenders(given, rectangle, max(levels, default=0.0) + tolerance)
    few = given[kept]
    frame = _frame(rectangle)
    # Without a level only those that win somewhere matter, which are far fewer.
    winners = _contenders(few, rectangle, tolerance)
    cells = _cells(few, winners, few[winners], frame, 0.0, tolerance)
    bands = tuple(_bands(few, cells, level, frame, tolerance) for level in levels)
    named = tuple(PlaneCell(int(kept[cell.token]), cell.corners, cell.area) for cell in cells)
    renamed = tuple(tuple(PlaneCell(int(kept[c.token]), c.corners, c.area) for c in band) for band in bands)
    return PlaneMap(rectangle, named, tuple(levels), renamed)


def margins(
    scores: Float[np.ndarray, "V 3"], points: Float[np.ndarray, "k 2"]
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the winner at some points and its lead over the runner-up (0 for a tie)."""
    homogeneous = np.column_stack([np.ones(len(points)), points])
    winners = np.empty(len(points), dtype=np.int64)
    lead = np.empty(len(points))
    step = max(1, (1 << 24) // len(scores))
    for start in range(0, len(points), step):
        values = homogeneous[start : start + step] @ scores.T
        best = values.argmax(axis=1)
        index = np.arange(len(best))
        top = values[index, best]
        values[index, best] = -np.inf
        winners[start : start + step], lead[start : start + step] = best, top - values.max(axis=1)
    return winners, lead


def area(corners: Float[np.ndarray, "k 2"]) -> float:
    """Return the area of a polygon, above 0 if its corners go anticlockwise."""
    if len(corners) < 3:
        return 0.0
    x, y = (corners - corners[0]).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def _checked(
    scores: Float[np.ndarray, "V 3"], rectangle: Rectangle, levels: tuple[float, ...]
) -> Float[np.ndarray, "V 3"]:
    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != 3 or len(given) < 2 or not np.isfinite(given).all():
        got = f"shape {given.shape}, finite: {bool(np.isfinite(given).all())}"
        raise InputError(problem("finite scores of shape (V, 3), V of at least 2", got, "check the head"))
    x0, x1, y0, y1 = rectangle
    if not (np.isfinite(rectangle).all() and x0 < x1 and y0 < y1):
        raise InputError(problem("a rectangle x0 < x1, y0 < y1", str(rectangle), "choose another"))
    if any(not (np.isfinite(level) and level > 0) for level in levels):
        raise InputError(problem("margins above 0", str(levels), "leave the others out"))
    return given


def _frame(rectangle: Rectangle) -> Float[np.ndarray, "4 2"]:
    x0, x1, y0, y1 = rectangle
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def _values(scores: Float[np.ndarray, "P 3"], points: Float[np.ndarray, "k 2"]) -> Float[np.ndarray, "P k"]:
    return np.asarray(scores[:, :1] + scores[:, 1:] @ points.T)


def _at_corners(scores: Float[np.ndarray, "V 3"], rectangle: Rectangle) -> Float[np.ndarray, "V 4"]:
    return _values(scores, _frame(rectangle))


def _contenders(
    scores: Float[np.ndarray, "V 3"], rectangle: Rectangle, slack: float
) -> Int[np.ndarray, " P"]:
    """Return the tokens that may come within ``slack`` of the winner somewhere in the rectangle.

    In each tile the token that wins at its middle bounds the envelope from below; a token that stays more
    than ``slack`` under that bound at all four corners of the tile does so in the whole tile.
    """
    x0, x1, y0, y1 = rectangle
    x, y = np.linspace(x0, x1, _GRID + 1), np.linspace(y0, y1, _GRID + 1)
    middles = _grid((x[1:] + x[:-1]) / 2, (y[1:] + y[:-1]) / 2)
    nodes = _grid(x, y)
    bounding = scores[margins(scores, middles)[0]].reshape(_GRID, _GRID, 3)
    # The threshold at a node is the lowest one among the tiles that meet there.
    least = np.full((_GRID + 1, _GRID + 1), np.inf)
    for i in (0, 1):
        for j in (0, 1):
            own = nodes.reshape(_GRID + 1, _GRID + 1, 2)[i : _GRID + i, j : _GRID + j]
            values = bounding[..., 0] + (bounding[..., 1:] * own).sum(axis=-1)
            target = least[i : _GRID + i, j : _GRID + j]
            np.minimum(target, values, out=target)
    found = [
        start + np.flatnonzero(_reaches(scores[start : start + _ROWS], nodes, least.ravel() - slack))
        for start in range(0, len(scores), _ROWS)
    ]
    return np.concatenate(found)


def _grid(x: Float[np.ndarray, " a"], y: Float[np.ndarray, " b"]) -> Float[np.ndarray, "ab 2"]:
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)


def _reaches(
    scores: Float[np.ndarray, "c 3"], nodes: Float[np.ndarray, "k 2"], least: Float[np.ndarray, " k"]
) -> Bool[np.ndarray, " c"]:
    return np.asarray((_values(scores, nodes) >= least).any(axis=1))


def _cells(
    few: Float[np.ndarray, "P 3"],
    tokens: Int[np.ndarray, " w"],
    rivals: Float[np.ndarray, "r 3"],
    frame: Float[np.ndarray, "k 2"],
    level: float,
    tolerance: float,
) -> tuple[PlaneCell, ...]:
    """Return the cells of some tokens against some rivals, the largest first."""
    whole = area(frame)
    found = []
    for token in tokens:
        corners = _cut_by_all(frame, few[token], rivals, level, tolerance)
        size = area(corners) / whole
        if size > _POINT:
            found.append(PlaneCell(int(token), corners, size))
    return tuple(sorted(_without_twins(found, few), key=lambda cell: (-cell.area, cell.token)))


def _without_twins(cells: list[PlaneCell], few: Float[np.ndarray, "P 3"]) -> list[PlaneCell]:
    """Of tokens with the same scores keep the first; their polygons are the same one."""
    seen: set[bytes] = set()
    kept = []
    for cell in cells:
        key = (few[cell.token] + 0.0).tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(cell)
    return kept


def _bands(
    few: Float[np.ndarray, "P 3"],
    cells: tuple[PlaneCell, ...],
    level: float,
    frame: Float[np.ndarray, "4 2"],
    tolerance: float,
) -> tuple[PlaneCell, ...]:
    """Return where each winner leads all others by ``level``."""
    whole, found = area(frame), []
    for cell in cells:
        rivals = np.delete(few, cell.token, axis=0)
        corners = _cut_by_all(cell.corners, few[cell.token], rivals, level, tolerance)
        size = area(corners) / whole
        if size > _POINT:
            found.append(PlaneCell(cell.token, corners, size))
    return tuple(found)


def _cut_by_all(
    corners: Float[np.ndarray, "k 2"],
    own: Float[np.ndarray, " 3"],
    rivals: Float[np.ndarray, "r 3"],
    level: float,
    tolerance: float,
) -> Float[np.ndarray, "j 2"]:
    """Cut a polygon by the rival that leads most at a corner, until none leads by more than rounding."""
    if len(rivals) == 0:  # all others were ruled out
        return corners
    ahead = rivals - own
    ahead[:, 0] += level
    for _ in range(_CUTS):
        if len(corners) < 3:
            return corners[:0]
        lead = _values(ahead, corners)
        worst, corner = np.unravel_index(int(lead.argmax()), lead.shape)
        if lead[worst, corner] <= tolerance:
            return corners
        corners = _clip(corners, lead[worst])
    raise AssertionError("a polygon is cut at most once by each rival")


def _clip(corners: Float[np.ndarray, "k 2"], lead: Float[np.ndarray, " k"]) -> Float[np.ndarray, "j 2"]:
    """Return the part of a convex polygon where an affine function, given at its corners, is at most 0."""
    keep: list[Float[np.ndarray, " 2"]] = []
    for i in range(len(corners)):
        j = (i + 1) % len(corners)
        if lead[i] <= 0:
            keep.append(corners[i])
        if lead[i] * lead[j] < 0:
            part = lead[i] / (lead[i] - lead[j])
            keep.append(corners[i] + part * (corners[j] - corners[i]))
    return np.array(keep).reshape(-1, 2)
