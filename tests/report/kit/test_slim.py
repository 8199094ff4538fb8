"""A shorter SVG draws the same."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmreach.report.kit.slim import slim

POINTS = st.lists(
    st.tuples(st.integers(0, 4000).map(lambda v: v / 10), st.integers(0, 30).map(lambda v: v / 10)),
    min_size=8,
    max_size=20,
)


def path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.5f},{y:.5f}" for x, y in points)


def read(svg: str) -> list[tuple[float, float]]:
    found = re.search(r' d="M([^"]*)"', svg)
    assert found is not None
    return [tuple(map(float, word.split(","))) for word in found[1].split("L")]


def apart(point: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return the distance of a point from a stretch."""
    (x, y), (dx, dy) = (point[0] - start[0], point[1] - start[1]), (end[0] - start[0], end[1] - start[1])
    length = dx * dx + dy * dy
    share = 0.0 if length == 0 else min(max((x * dx + y * dy) / length, 0.0), 1.0)
    return math.hypot(x - share * dx, y - share * dy)


@given(POINTS)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_line_keeps_its_corners_and_its_course(points: list[tuple[float, float]]) -> None:
    kept = read(slim(f'<svg><path d="{path(points)}"/></svg>'))
    assert (kept[0], kept[-1]) == (pytest.approx(points[0]), pytest.approx(points[-1]))
    left = iter(points)
    assert all(any(point == pytest.approx(one) for one in left) for point in kept), "in order, nothing new"
    for point in points:
        assert min(apart(point, *ends) for ends in pairwise(kept)) <= 0.021


def test_a_staircase_and_a_straight_line_become_short() -> None:
    line = path([(float(x), 2.0 * x) for x in range(60)])
    assert read(slim(f'<svg><path d="{line}"/></svg>')) == [(0, 0), (59, 118)]
    stairs = path([(x / 10, float(x // 20)) for x in range(60)])
    assert len(read(slim(f'<svg><path d="{stairs}"/></svg>'))) == 6


def test_what_is_drawn_and_said_stays() -> None:
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
        '<g class="mark-text role-mark" role="graphics-object" aria-roledescription="text mark container">'
        '<text font-family="Arial" transform="translate(1.23456,-0.0001)" opacity="1">x="1.23456"</text>'
        '<text font-family="Arial" fill="#1b1f24" opacity="0">640</text>'
        '<path aria-label="n50 1.23456" role="graphics-symbol" aria-roledescription="point" '
        'd="M0.123456,1C2,3,4,5,6,7.654321" opacity="0.5"/></g>'
        '<path class="foreground" aria-hidden="true" d="" display="none"/></svg>'
    )
    assert slim(drawn) == (
        '<svg font-family="Arial" viewBox="0 0 9 9"><g>'
        '<text transform="translate(1.23,0)">x="1.23456"</text>'
        '<path aria-label="n50 1.23456" role="graphics-symbol" aria-roledescription="point" '
        'd="M0.12,1C2,3,4,5,6,7.65" opacity="0.5"/></g></svg>'
    )
