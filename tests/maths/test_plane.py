"""Cells on a plane: polygons against the winner at many points, areas, and degenerate heads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths import plane

SQUARE = (-1.0, 2.0, -2.0, 1.0)


def random_scores(rng: np.random.Generator, count: int, kind: int) -> np.ndarray:
    """Generic planes, whole-number ones full of ties, planes tangent to a paraboloid (all win), flat ones."""
    if kind == 0:
        return rng.normal(size=(count, 3)) * [1, 2, 2]
    if kind == 1:
        return rng.integers(-2, 3, size=(count, 3)).astype(float)
    if kind == 2:
        p = rng.uniform(-2, 2, size=(count, 2))
        return np.column_stack([-(p**2).sum(1), 2 * p])
    return np.column_stack([rng.normal(size=count), np.zeros((count, 2))])


def holds(corners: np.ndarray, points: np.ndarray, slack: float) -> np.ndarray:
    edges = np.roll(corners, -1, axis=0) - corners
    away = points[:, None, :] - corners
    cross = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]
    return (cross >= -slack).all(axis=1)


@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([2, 3, 17, 400]))
@settings(max_examples=60, deadline=None)
def test_polygons_against_the_winner_at_points(seed: int, kind: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    scores = random_scores(rng, count, kind)
    level = 0.3
    found = plane.plane_map(scores, SQUARE, (level,))
    points = rng.uniform((-1, -2), (2, 1), size=(300, 2))
    values = np.column_stack([np.ones(300), points]) @ scores.T  # brute force
    ordered = np.sort(values, axis=1)
    winner, lead = values.argmax(1), ordered[:, -1] - ordered[:, -2]
    told, gap = plane.margins(scores, points)
    np.testing.assert_allclose(gap, lead, atol=1e-9)
    assert sum(cell.area for cell in found.cells) == pytest.approx(1, abs=1e-9)
    tokens = [cell.token for cell in found.cells]
    assert len(set(tokens)) == len(tokens)
    assert {int(t) for t, gap in zip(winner, lead, strict=True) if gap > 1e-9} <= set(tokens)
    covered = np.zeros(300, dtype=int)
    for cell in found.cells:
        assert plane.area(cell.corners) == pytest.approx(9 * cell.area)
        inside = holds(cell.corners, points, 1e-9)
        covered += inside
        # whoever is inside is a winner there, ties included
        np.testing.assert_allclose(values[inside, cell.token], ordered[inside, -1], atol=1e-6)
    assert (covered >= 1).all()
    assert (told == winner)[lead > 1e-9].all()
    for band in found.bands[0]:
        inside = holds(band.corners, points, -1e-7)
        assert (lead[inside] >= level - 1e-6).all()
        assert (winner[inside] == band.token).all()
    clear = lead > level + 1e-6
    within = np.zeros(300, dtype=bool)
    for band in found.bands[0]:
        within |= holds(band.corners, points, 1e-7)
    assert within[clear].all()


def test_a_known_partition() -> None:
    # Four half-planes through the middle: x, -x, y, -y win in four triangles of the square.
    scores = np.array([[0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0], [-5, 0, 0]])
    found = plane.plane_map(scores, (-1, 1, -1, 1), (1.0,))
    assert sorted(cell.token for cell in found.cells) == [0, 1, 2, 3]
    assert [cell.area for cell in found.cells] == pytest.approx([0.25] * 4)
    # x leads y and -y by 1 where |y| <= x - 1: only the point (1, 0), which is no area.
    assert found.bands == ((),)
    half = plane.plane_map(scores, (-1, 1, -1, 1), (0.5,)).bands[0]
    assert [band.area for band in half] == pytest.approx([0.25 / 4] * 4)


def test_the_first_of_equal_tokens_has_the_cell_and_no_band() -> None:
    scores = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0.0]])
    found = plane.plane_map(scores, SQUARE, (0.1,))
    assert [(cell.token, cell.area) for cell in found.cells] == [(1, pytest.approx(1))]
    assert found.bands == ((),)


def test_a_sliver_is_a_cell_too() -> None:
    # Token 2 leads by less than 1e-6 in a strip of width 2e-6.
    scores = np.array([[0, 1, 0], [0, -1, 0], [1e-6, 0, 0.0]])
    found = plane.plane_map(scores, (-1, 1, -1, 1))
    assert found.cells[-1].token == 2
    assert found.cells[-1].area == pytest.approx(1e-6, rel=1e-6)


def test_many_tokens_that_all_win() -> None:
    p = np.random.default_rng(0).uniform(-1, 1, size=(900, 2))
    scores = np.column_stack([-(p**2).sum(1), 2 * p])
    found = plane.plane_map(scores, (-1, 1, -1, 1))
    assert len(found.cells) == 900
    assert sum(cell.area for cell in found.cells) == pytest.approx(1, abs=1e-10)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_units_and_places_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = random_scores(rng, 40, 0)
    once = plane.plane_map(scores, SQUARE)
    again = plane.plane_map(scores * [1e6, 1e3, 1e3], tuple(1e3 * side for side in SQUARE))
    assert [cell.token for cell in again.cells] == [cell.token for cell in once.cells]
    np.testing.assert_allclose([c.area for c in again.cells], [c.area for c in once.cells], atol=1e-9)


def test_the_plane_goes_through_the_states(rng: np.random.Generator) -> None:
    states = rng.normal(size=(3, 50)) * 30
    found = plane.plane_through(states)
    np.testing.assert_allclose(found.origin + found.points @ found.axes, states, atol=1e-10)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(2), atol=1e-12)
    rows, bias = rng.normal(size=(20_000, 50)).astype(np.float32), rng.normal(size=20_000)
    scores = plane.plane_scores(rows, bias, found)
    values = np.column_stack([np.ones(3), found.points]) @ scores.T
    np.testing.assert_allclose(values, states @ rows.T.astype(float) + bias, atol=1e-9)


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (np.ones((3, 4)), "one line"),
        (np.outer([0, 1, 2.0], np.arange(5)), "one line"),
        (np.array([[0, 1.0], [2, 3], [0, 1]]), "one line"),
        (np.zeros((2, 4)), "shape"),
        (np.full((3, 4), np.nan), "finite: False"),
    ],
)
def test_states_that_span_no_plane(states: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        plane.plane_through(states)


@pytest.mark.parametrize(
    ("scores", "rectangle", "levels", "said"),
    [
        (np.zeros((3, 2)), SQUARE, (), "shape"),
        (np.zeros((1, 3)), SQUARE, (), "at least 2"),
        (np.full((3, 3), np.inf), SQUARE, (), "finite"),
        (np.zeros((3, 3)), (1.0, 1.0, 0.0, 1.0), (), "rectangle"),
        (np.zeros((3, 3)), SQUARE, (0.0,), "margins above 0"),
    ],
)
def test_bad_maps(scores: np.ndarray, rectangle: plane.Rectangle, levels: tuple, said: str) -> None:
    with pytest.raises(InputError, match=said):
        plane.plane_map(scores, rectangle, levels)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=3, max_size=3), st.floats(0.5, 2))
def test_the_rectangle_holds_the_points(points: list[tuple[float, float]], aspect: float) -> None:
    array = np.array(points)
    if np.ptp(array, axis=0).max() < 1e-3:
        return
    x0, x1, y0, y1 = plane.rectangle_around(array, aspect=aspect)
    assert (x1 - x0) / (y1 - y0) == pytest.approx(aspect)
    assert (array >= [x0, y0]).all()
    assert (array <= [x1, y1]).all()
