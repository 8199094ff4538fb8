"""A figure's SVG without what nobody sees: digits below a hundredth of a pixel, defaults, empty groups.

Vega writes for any reader; on a page with a dozen figures that is half of its size. Text stays as it is.
"""

import math
import re

__all__ = ["slim"]

_TAG = re.compile(r"<[a-z][^<>]*>")  # vega escapes < and > in attributes, so this is a whole tag
_PLACES = re.compile(r' (d|transform|x1?|y1?|x2|y2|cx|cy|r)="([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
# What an element is without saying so, and the roles of parts of what is one image to a screen reader.
_UNSAID = re.compile(
    r' (?:opacity="1"|stroke-width="1"|font-weight="normal"|version="1\.1"|pointer-events="none"'
    r'|xmlns(?::xlink)?="[^"]*"|aria-hidden="true"'
    r'|aria-roledescription="[^"]* container"|class="mark-[^"]*")'
)
_UNSEEN = re.compile(
    r'<path class="(?:background|foreground)" aria-hidden="true" d="(?:|M0,0h0v0h0Z)"[^<>]*/>|<g[^<>]*/>'
    r'|<text[^<>]* opacity="0"[^<>]*>[^<]*</text>'
)
_ROLE = re.compile(r' role="graphics-(?:object|symbol)"')
_FONT = re.compile(r' font-family="([^"]*)"')


def slim(drawn: str) -> str:
    """Return an SVG document that looks the same and is about half as long.

    The ``viewBox`` and size stay; the font, which every text names, moves to the root.
    """
    fonts = set(_FONT.findall(drawn))
    shorter = _TAG.sub(lambda tag: _shorter(tag[0], one_font=len(fonts) == 1), _UNSEEN.sub("", drawn))
    if len(fonts) == 1:
        shorter = shorter.replace("<svg", f'<svg font-family="{fonts.pop()}"', 1)
    return shorter


def _shorter(tag: str, *, one_font: bool) -> str:
    tag = _UNSAID.sub("", tag)
    if " aria-label=" not in tag:
        tag = _ROLE.sub("", tag)
    if one_font:
        tag = _FONT.sub("", tag)
    return _PLACES.sub(_place, tag)


def _place(attribute: re.Match[str]) -> str:
    name, value = attribute[1], _LONG.sub(_rounded, attribute[2])
    if name == "d" and len(value) > 60 and _STRAIGHT.fullmatch(value):
        value = _without_middles(value)
    return f' {name}="{value}"'


_STRAIGHT = re.compile(r"M(-?[\d.]+,-?[\d.]+L?)+Z?")
_SEEN = 0.02  # pixels; less than what rounding moves


def _without_middles(path: str) -> str:
    """Drop the points of a polyline that lie on the straight line between those that are kept."""
    closed = "Z" if path.endswith("Z") else ""
    points = [_point(word) for word in path[1:].removesuffix("Z").split("L")]
    kept, between = [points[0]], list[tuple[float, float]]()
    for here, after in zip(points[1:], [*points[2:], None], strict=True):
        between.append(here)
        if after is None or not all(_is_on(one, kept[-1], after) for one in between):
            kept.append(here)
            between.clear()
    return f"M{'L'.join(f'{x:g},{y:g}' for x, y in kept)}{closed}"


def _point(word: str) -> tuple[float, float]:
    x, y = word.split(",")
    return float(x), float(y)


def _is_on(point: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Say whether a point lies on a stretch, between its ends."""
    along, across = end[0] - start[0], end[1] - start[1]
    length = math.hypot(along, across)
    x, y = point[0] - start[0], point[1] - start[1]
    if length == 0:
        return math.hypot(x, y) <= _SEEN
    return (
        abs(x * across - y * along) <= _SEEN * length
        and -_SEEN <= (x * along + y * across) / length <= length + _SEEN
    )


def _rounded(number: re.Match[str]) -> str:
    short = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short
