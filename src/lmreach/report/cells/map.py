"""The map of decoder cells on a plane through three texts, drawn as SVG from exact polygons.

Everything here is in pixels unless a name says otherwise; the map's corners are in the units of hidden
states and y points up there.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import vl_convert
from jaxtyping import Bool, Float
from markupsafe import Markup, escape

from lmreach.files import write_whole
from lmreach.report.kit.drawing import COLOURS, FONT, GRID, INK, MUTED, PAPER
from lmreach.report.kit.format import number, plain
from lmreach.results.cells import CellMap, MapCell, MapText

__all__ = ["cell_map_png", "cell_map_svg", "describe_map", "save_cell_map"]

Points = Float[np.ndarray, "k 2"]

_MAP, _SIDE, _GAP, _TOP, _PAD = 480, 222, 26, 34, 8
_NARROW_MAP = 340
_ROW = 20
_INSET = 196
_SIZES = (14, 12, 10)  # font sizes of labels inside cells, the largest that fits is taken
_FILL = 0.5  # colours are thinned so that labels stay readable on them
_SHADE = 0.28
_MARK = 9.0


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the parts stand: the upper left corners of key and inset, the height of the first text's line."""

    map: float
    width: float
    height: float
    key: tuple[float, float]
    inset: tuple[float, float]
    below: float

    @classmethod
    def wide(cls, texts: int) -> Self:
        """Key and inset beside the map."""
        right, below = _PAD + _MAP + _GAP, _TOP + _MAP + 24
        height = below + _ROW * texts + 8
        inset = right, _TOP + _MAP - _INSET - 24
        return cls(_MAP, right + _SIDE + _PAD, height, (right, _TOP), inset, below)

    @classmethod
    def narrow(cls, texts: int, key_rows: int) -> Self:
        """Everything under the map, for small screens."""
        below = _TOP + _NARROW_MAP + 24
        key = below + _ROW * texts + 8
        inset = key + 22 + _ROW * key_rows + 24
        height, width = inset + _INSET + 36, _NARROW_MAP + 2 * _PAD
        return cls(_NARROW_MAP, width, height, (_PAD, key), (_PAD, inset), below)


def cell_map_svg(record: CellMap, *, narrow: bool = False) -> str:
    """Draw the map: cells by winning token, the three texts, a key, and an inset with the margin.

    Parameters
    ----------
    narrow
        For small screens: key and inset below the map instead of beside it.
    """
    looks = _looks(record)
    texts = record.texts
    # Each colour, what has none, the scale bar, the outline.
    layout = _Layout.narrow(len(texts), len(looks) + 3) if narrow else _Layout.wide(len(texts))
    frame = _Frame(record.rectangle, _PAD, _TOP, layout.map)
    title = "the next token on the plane through three texts"
    parts = [
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" width="{0:g}" height="{1:g}" '
            'font-family="{2}" font-size="12" fill="{3}">'
        ).format(layout.width, layout.height, FONT, INK),
        _label(_PAD, 18, title if narrow else f"{plain(record.model)}: {title}", 14),
        _map(record, frame, looks),
        _key(record, looks, frame.scale, *layout.key),
        _inset(record, *layout.inset),
        *(
            _text_line(i, text, record, layout.below + _ROW * i, layout.width - 2 * _PAD - 28)
            for i, text in enumerate(texts)
        ),
        Markup("</svg>"),
    ]
    return str(Markup("\n").join(parts))


def cell_map_png(record: CellMap) -> bytes:
    """Draw the map as PNG on white, at twice the size."""
    drawn = cell_map_svg(record)
    start = drawn.index(">") + 1
    ground = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    png: bytes = vl_convert.svg_to_png(drawn[:start] + ground + drawn[start:], scale=2.0)
    return png


def describe_map(record: CellMap) -> str:
    """Say what the map shows, for readers who do not see it."""
    cells = record.cells
    largest = ", ".join(f"{_token(cell.text)} {_percent(cell.area)}" for cell in cells[:3])
    points = "; ".join(
        f"{_cut(plain(text.text), 40)} lies in the cell of {_token(_text_of(record, text.id))}"
        for text in record.texts
    )
    return f"{len(cells)} tokens win somewhere on the plane; the largest cells: {largest}. {points}."


def save_cell_map(record: CellMap, folder: Path, name: str = "map") -> list[Path]:
    """Write the map as ``name``.svg and ``name``.png into ``folder`` (made if missing); return the paths.

    Raises
    ------
    OutputError
        If the folder cannot be made or written.
    """
    drawn, picture = folder / f"{name}.svg", folder / f"{name}.png"
    remedy = "choose another with --out"
    write_whole(drawn, cell_map_svg(record), remedy=remedy)
    write_whole(picture, cell_map_png(record), remedy=remedy)
    return [drawn, picture]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A rectangle of the plane, drawn at some place; keeps the aspect of the rectangle."""

    rectangle: tuple[float, float, float, float]
    left: float
    top: float
    size: float

    @property
    def scale(self) -> float:
        """Pixels per unit of the hidden states."""
        x0, x1, y0, y1 = self.rectangle
        return self.size / max(x1 - x0, y1 - y0)

    def pixels(self, points: Any) -> Points:
        """Return points of the plane in pixels inside the frame (0, 0 is its upper left corner)."""
        x0, x1, y0, y1 = self.rectangle
        away = np.asarray(points, dtype=np.float64).reshape(-1, 2) - [(x0 + x1) / 2, (y0 + y1) / 2]
        return self.size / 2 + self.scale * away * [1, -1]

    def opened(self) -> Markup:
        """Open a nested drawing that cuts off what leaves the frame."""
        return Markup('<svg x="{:g}" y="{:g}" width="{:g}" height="{:g}" overflow="hidden">').format(
            self.left, self.top, self.size, self.size
        )


def _looks(record: CellMap) -> dict[int, str]:
    """Return the colour of each token that has one: first those at the texts, then the largest cells."""
    order = [cell.id for cell in record.cells]
    at_texts = [text.id for text in record.texts]
    chosen = list(dict.fromkeys([*at_texts, *order]))[: len(COLOURS)]
    # By size again, so that the key reads from the largest down.
    ranked = sorted((token for token in chosen if token in order), key=order.index)
    return dict(zip(ranked, COLOURS, strict=False))


def _map(record: CellMap, frame: _Frame, looks: Mapping[int, str]) -> Markup:
    marks = frame.pixels([(text.x, text.y) for text in record.texts])
    boxes = [_Box(x, y, 2 * _MARK + 4, 2 * _MARK + 4) for x, y in marks]
    line = frame.pixels(record.outline or [])
    labels = []
    for cell in record.cells:
        corners = frame.pixels(cell.corners)
        label, box = _inside(corners, _token(cell.text), boxes, line, frame.size)
        if box is not None:
            labels.append(label)
            boxes.append(box)
    return Markup("\n").join(
        [
            frame.opened(),
            *(_polygon(cell, frame, looks.get(cell.id)) for cell in record.cells),
            _outline(record.outline, frame),
            *labels,
            *(_numeral(i + 1, x, y) for i, (x, y) in enumerate(marks)),
            Markup("</svg>"),
        ]
    )


def _polygon(cell: MapCell, frame: _Frame, colour: str | None) -> Markup:
    return Markup('<path d="{}" fill="{}" fill-opacity="{}" stroke="{}" stroke-width="0.8"/>').format(
        _path(frame.pixels(cell.corners)), colour or GRID, _FILL if colour else 1, PAPER
    )


def _path(points: Points) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points) + "Z"


def _outline(outline: Any, frame: _Frame) -> Markup:
    if outline is None:
        return Markup("")
    return Markup('<path d="{}" fill="none" stroke="{}" stroke-width="1" stroke-dasharray="4 3"/>').format(
        _path(frame.pixels(outline)), MUTED
    )


def _numeral(value: int, x: float, y: float) -> Markup:
    return Markup(
        '<circle cx="{0:.2f}" cy="{1:.2f}" r="{2}" fill="{3}" stroke="{4}" stroke-width="1.5"/>'
        '<text x="{0:.2f}" y="{5:.2f}" text-anchor="middle" font-size="11" font-weight="bold" fill="{4}">'
        "{6}</text>"
    ).format(x, y, _MARK, INK, PAPER, y + 4, value)


def _scale_bar(scale: float, left: float, top: float) -> Markup:
    """Draw a bar of a round length, at most a third of the key's width, with what it stands for.

    Parameters
    ----------
    scale
        Pixels of the map per unit of the hidden states.
    """
    wanted = _SIDE / 3 / scale
    power = 10.0 ** np.floor(np.log10(wanted))
    length = next(step * power for step in (5, 2, 1) if step * power <= wanted * 1.0001)
    width = float(length * scale)
    line = Markup('<path d="M{:g} {:g}v6h{:.2f}v-6" fill="none" stroke="{}"/>').format(
        left, top + 4, width, MUTED
    )
    words = f"L2 distance {number(float(length), 1)}"
    return line + _label(left + width + 8, top + 11, words, 12, MUTED)


@dataclass(frozen=True, slots=True)
class _Box:
    """A label's box: center and sides."""

    x: float
    y: float
    width: float
    height: float

    def meets(
        self, x: Float[np.ndarray, " k"], y: Float[np.ndarray, " k"], other: "_Box"
    ) -> Bool[np.ndarray, " k"]:
        """Return where this box, moved to (x, y), would overlap another."""
        return np.asarray(
            (np.abs(x - other.x) < (self.width + other.width) / 2)
            & (np.abs(y - other.y) < (self.height + other.height) / 2)
        )


def _inside(
    corners: Points, text: str, taken: Sequence[_Box], line: Points, size: float
) -> tuple[Markup, _Box | None]:
    """Place a label inside a convex cell, clear of what is taken; none if no size of it fits."""
    for font in _SIZES:
        place = _place(corners, _Box(0, 0, _width(text, font) + 6, font + 5), taken, line, size)
        if place is not None:
            label = _label(place.x, place.y + font * 0.35, text, font, anchor="middle")
            return label, place
    return Markup(""), None


def _place(corners: Points, box: _Box, taken: Sequence[_Box], line: Points, size: float) -> _Box | None:
    """Return the box where it lies deepest inside the cell, among places of a grid, off a line if possible.

    None if it fits nowhere.
    """
    low, high = np.clip(corners.min(axis=0), 0, size), np.clip(corners.max(axis=0), 0, size)
    places = np.stack(np.meshgrid(*np.linspace(low, high, 41).T), axis=-1).reshape(-1, 2)
    x, y = places.T
    room = (_depth(places, corners) - _reach(box, corners)).min(axis=1)
    for other in taken:
        room = np.where(box.meets(x, y, other), -1.0, room)
    fits = room >= 0
    if not fits.any():
        return None
    away = np.abs(places[:, None, :] - line) < [box.width / 2, box.height / 2]
    wanted = np.where(away.all(axis=2).any(axis=1), room - size, room)
    best = int(np.where(fits, wanted, -np.inf).argmax())
    return _Box(float(x[best]), float(y[best]), box.width, box.height)


def _normals(corners: Points) -> tuple[Points, Points]:
    """Return inward unit normals of the edges that have a length, and a corner on each."""
    edges = np.roll(corners, -1, axis=0) - corners
    lengths = np.linalg.norm(edges, axis=1)
    solid = lengths > 1e-9
    # Corners run anticlockwise on the plane, so clockwise in pixels, where y points down.
    return np.column_stack([edges[:, 1], -edges[:, 0]])[solid] / lengths[solid, None], corners[solid]


def _depth(places: Points, corners: Points) -> Float[np.ndarray, "p k"]:
    """Return how far inside each edge places lie."""
    normals, starts = _normals(corners)
    return np.asarray(places @ normals.T - (normals * starts).sum(axis=1))


def _reach(box: _Box, corners: Points) -> Float[np.ndarray, " k"]:
    """Return how far a box reaches from its center towards each edge."""
    normals, _ = _normals(corners)
    return np.asarray(np.abs(normals) @ [box.width / 2, box.height / 2])


def _key(record: CellMap, looks: Mapping[int, str], scale: float, left: float, top: float) -> Markup:
    cells = {cell.id: cell for cell in record.cells}
    rows = [(looks[i], _token(cells[i].text), cells[i].area) for i in looks]
    rest = [cell for i, cell in cells.items() if i not in looks]
    if rest:
        words = "1 other token" if len(rest) == 1 else f"{len(rest)} other tokens"
        rows.append((GRID, words, sum(cell.area for cell in rest)))
    parts = [_label(left, top + 11, "next token (\u00b7 a space), share of area", 12, MUTED)]
    for i, (colour, text, area) in enumerate(rows):
        y = top + 22 + _ROW * i
        parts += [
            _swatch(left, y, colour, 1 if colour == GRID else _FILL),
            _label(left + 24, y + 11, _cut(text, 20), 12),
            _label(left + _SIDE, y + 11, _percent(area), 12, anchor="end"),
        ]
    y = top + 22 + _ROW * len(rows) + 4
    parts.append(_scale_bar(scale, left, y))
    if record.outline is not None:
        y += _ROW
        parts += [
            Markup('<path d="M{:g} {:g}h16" stroke="{}" stroke-dasharray="4 3"/>').format(left, y + 7, MUTED),
            _label(left + 24, y + 11, "where the final norm puts states", 12, MUTED),
        ]
    return Markup("\n").join(parts)


def _swatch(left: float, top: float, colour: str, opacity: float) -> Markup:
    return Markup('<rect x="{:g}" y="{:g}" width="16" height="14" fill="{}" fill-opacity="{:g}"/>').format(
        left, top, colour, opacity
    )


def _inset(record: CellMap, left: float, top: float) -> Markup:
    """Draw the margin: bands inside each cell, darker where the winner leads by more."""
    frame = _Frame(record.rectangle, left, top + 8, _INSET)
    bands = [
        Markup('<path d="{}" fill="{}" fill-opacity="{}"/>').format(
            " ".join(_path(frame.pixels(piece.corners)) for piece in band), COLOURS[0], _SHADE
        )
        for band in record.bands
        if band
    ]
    edges = Markup('<path d="{}" fill="none" stroke="{}" stroke-width="0.6"/>').format(
        " ".join(_path(frame.pixels(cell.corners)) for cell in record.cells), MUTED
    )
    marks = frame.pixels([(text.x, text.y) for text in record.texts])
    dots = [
        Markup('<circle cx="{:.2f}" cy="{:.2f}" r="3" fill="{}" stroke="{}"/>').format(x, y, INK, PAPER)
        for x, y in marks
    ]
    return Markup("\n").join(
        [
            _label(left, top, "lead over the runner-up (scores)", 12, MUTED),
            frame.opened(),
            Markup('<rect width="100%" height="100%" fill="{}"/>').format(PAPER),
            *bands,
            edges,
            *dots,
            Markup("</svg>"),
            _levels(record.levels, left, top + _INSET + 16),
        ]
    )


def _levels(levels: Sequence[float], left: float, top: float) -> Markup:
    parts = []
    step = _SIDE / (len(levels) + 1)
    for i in range(len(levels) + 1):
        x = left + step * i
        opacity = 1 - (1 - _SHADE) ** i
        parts += [
            Markup('<rect x="{:g}" y="{:g}" width="14" height="12" fill="{}"/>').format(x, top, PAPER),
            Markup(
                '<rect x="{:g}" y="{:g}" width="14" height="12" fill="{}" fill-opacity="{:.3f}" stroke="{}" '
                'stroke-width="0.6"/>'
            ).format(x, top, COLOURS[0], opacity, MUTED),
            _label(x + 18, top + 10, f"{number(float(levels[i - 1]), 1)}+" if i else "less", 11),
        ]
    return Markup("\n").join(parts)


def _text_line(index: int, text: MapText, record: CellMap, y: float, room: float) -> Markup:
    told, token = plain(text.text), _token(_text_of(record, text.id))
    characters = next((n for n in range(68, 4, -2) if _width(_told(told, token, n), 12) <= room), 4)
    words = _told(told, token, characters)
    return _numeral(index + 1, _PAD + _MARK + 1, y) + _label(_PAD + 28, y + 4, words, 12)


def _told(text: str, token: str, characters: int) -> str:
    return f"\u201c{_cut(text, characters)}\u201d, next {_cut(token, max(characters, 12))}"


def _text_of(record: CellMap, token: int) -> str:
    for cell in record.cells:
        if cell.id == token:
            return str(cell.text)
    return str(next(text.token for text in record.texts if text.id == token))


def _label(x: float, y: float, text: str, size: float, colour: str = INK, *, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.2f}" y="{:.2f}" font-size="{:g}" fill="{}" text-anchor="{}">{}</text>').format(
        x, y, size, colour, anchor, escape(text)
    )


def _token(text: str) -> str:
    """Show a token on one line, spaces visible."""
    if text and not text.strip(" "):
        return "(space)" if len(text) == 1 else f"({len(text)} spaces)"
    return _cut(plain(text).replace(" ", "\u00b7"), 24) or "(no text)"


def _percent(share: float) -> str:
    return f"{number(100 * share, 2)} %" if share >= 1e-4 else "under 0.01 %"


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _width(text: str, size: float) -> float:
    """Return about how wide a text will be; rather too wide than too narrow."""
    return size * sum(_em(char) for char in text)


def _em(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in "iljtfrI.,:;'|!()[]/\\ ":
        return 0.38
    return 0.9 if char in "mwMW@%" or ord(char) > 0x2E80 else 0.64
