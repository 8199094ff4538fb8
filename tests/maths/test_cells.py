"""Cells: membership by hand; reachability by linear program against Qhull, brute force, planted rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from lmreach.errors import InputError
from lmreach.maths import cells
from lmreach.maths.cells import WholeSpace, bounded_head, certified_bound, reach_by_lp
from lmreach.maths.supports import Box, Ellipsoid


def regions(d: int) -> list[cells.Region]:
    """Sets that hold 0: without a bias all of them must give the verdicts of the convex hull."""
    grow = np.arange(1.0, d + 1)
    return [WholeSpace(d), Box(-grow, 2 * grow), Ellipsoid(grow, np.full(d, 0.2))]


def verdicts(rows: np.ndarray, bias: np.ndarray, region: cells.Region) -> list[str]:
    return [reach_by_lp(t, rows, bias, region).verdict for t in range(len(rows))]


def test_argmax_and_nearest_row_are_different_partitions() -> None:
    rows, point = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 1.2]])
    assert cells.argmax_cell(point, rows).tolist() == [0]
    assert cells.nearest_row(point, rows).tolist() == [1]
    np.testing.assert_allclose(cells.top_margin(point, 0, rows), [0.3])
    np.testing.assert_allclose(cells.top_margin(point, 0, rows, np.array([0.0, 1.0])), [-0.7])


def test_nearest_row_is_the_nearest(rng) -> None:
    rows, points = rng.normal(size=(30, 4)), rng.normal(size=(200, 4))
    distances = np.linalg.norm(points[:, None] - rows, axis=2)
    assert (cells.nearest_row(points, rows) == distances.argmin(1)).all()


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_reachable_are_the_vertices_of_the_hull(d: int, which: int, rng) -> None:
    rows = rng.normal(size=(36, d))
    corners = set(ConvexHull(rows).vertices.tolist())
    for t in range(len(rows)):
        found = reach_by_lp(t, rows, np.zeros(len(rows)), regions(d)[which])
        assert found.verdict == ("reachable" if t in corners else "unreachable")
        if found.witness is not None:
            assert cells.argmax_cell(found.witness[None], rows).tolist() == [t]
            assert cells.top_margin(found.witness[None], t, rows)[0] > 0
        else:
            assert found.weights is not None
            rest = found.weights / found.weights.sum()
            np.testing.assert_allclose(rest @ rows, rows[t], atol=1e-8)
            assert rest.min() >= 0
            assert rest[t] == 0


@pytest.mark.parametrize("which", [0, 1, 2])
def test_planted_rows(which: int) -> None:
    """A square: corners win, the middle of an edge ties, the center ties with all or none."""
    corners = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])
    rows = np.vstack([corners, [1, 0], [0, 0], [0.3, -0.2], corners[2]])
    expected = ["reachable"] * 4 + ["tie-only", "unreachable", "unreachable", "tie-only"]
    expected[2] = "tie-only"  # it has a twin
    found = [reach_by_lp(t, rows, np.zeros(8), regions(2)[which]) for t in range(8)]
    assert [one.verdict for one in found] == expected
    for one in found:
        if one.verdict == "tie-only":
            assert one.witness is not None
            scores = rows @ one.witness
            assert scores[one.token] >= scores.max() - 1e-5
            assert np.ptp(scores) > 0.1


def test_brute_force_in_the_plane(rng) -> None:
    """With a bias on a disc and a box: every token that some of many points shows is reachable."""
    rows, bias = rng.normal(size=(25, 2)), rng.normal(size=25)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 901)] * 2), axis=-1).reshape(-1, 2)
    disc = grid[(grid**2).sum(1) <= 1]
    for region, points in ((Box(-np.ones(2), np.ones(2)), grid), (Ellipsoid(np.ones(2), np.zeros(2)), disc)):
        shown = set(cells.argmax_cell(points, rows, bias).tolist())
        for t in range(len(rows)):
            found = reach_by_lp(t, rows, bias, region)
            if found.margin > 0.01:  # its cell is larger than the mesh
                assert t in shown
            assert (found.verdict == "reachable") >= (t in shown)
            if found.witness is not None and found.verdict == "reachable":
                assert cells.argmax_cell(found.witness[None], rows, bias).tolist() == [t]


def test_bias_on_all_of_space() -> None:
    """Scores 0, x, -x and a constant c win at x = 0 only for the largest c; far out only slopes matter."""
    rows, bias = np.array([[0.0], [1.0], [-1.0], [0.0]]), np.array([0.5, 0.0, 0.0, 0.2])
    found = [reach_by_lp(t, rows, bias, WholeSpace(1)) for t in range(4)]
    assert [one.verdict for one in found] == ["reachable", "reachable", "reachable", "unreachable"]
    for one in found[:3]:
        assert cells.argmax_cell(one.witness[None], rows, bias).tolist() == [one.token]
    level = np.array([0.0, 0.0, 0.0, -1.0])
    assert verdicts(rows, level, WholeSpace(1)) == ["tie-only", "reachable", "reachable", "unreachable"]


def test_a_bias_can_be_out_of_reach_of_a_small_support() -> None:
    rows, bias = np.array([[1.0, 0], [0, 1], [-1, -1]]), np.array([0.0, 0.0, 5.0])
    small, large = Box(-np.ones(2), np.ones(2)), Box(-np.full(2, 9.0), np.full(2, 9.0))
    assert verdicts(rows, bias, small) == ["unreachable", "unreachable", "reachable"]
    assert verdicts(rows, bias, large) == ["reachable"] * 3


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(-12, 12),
    st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    st.booleans(),
    st.integers(0, 2),
)
def test_units_change_no_verdict(seed: int, power: int, units: list[int], biased: bool, which: int) -> None:
    """Rows and bias times 10^k; coordinates in other units together with the support."""
    rng = np.random.default_rng(seed)
    rows, bias = rng.normal(size=(12, 3)), rng.normal(size=12) * biased
    rows[11] = rows[:3].mean(axis=0)
    unit = 10.0 ** np.array(units)
    there = [
        WholeSpace(3),
        Box(-unit, 2 * unit),
        Ellipsoid(unit, 0.2 * unit),
    ][which]
    here = [WholeSpace(3), Box(-np.ones(3), np.full(3, 2.0)), Ellipsoid(np.ones(3), np.full(3, 0.2))][which]
    scaled = 10.0**power
    assert verdicts(rows, bias, here) == verdicts(rows * scaled / unit, bias * scaled, there)


def test_least_distance_is_the_nearest_point_of_a_polyhedron(rng) -> None:
    normals = np.array([[1.0, 0.0], [0.0, 1.0]])
    x, weights = cells.least_distance(normals, np.array([3.0, 4.0]))
    np.testing.assert_allclose(x, [3.0, 4.0])
    assert (weights > 0).all()
    x, weights = cells.least_distance(np.array([[1.0, 0], [-1, 0]]), np.ones(2))
    assert x is None
    np.testing.assert_allclose(weights @ np.array([[1.0, 0], [-1, 0]]), 0, atol=1e-12)


def test_any_weights_bound_the_lead(rng) -> None:
    rows, bias = rng.normal(size=(10, 3)), rng.normal(size=10)
    for region in regions(3)[1:]:
        head = bounded_head(rows, bias, region)
        for t in range(10):
            weights = rng.random(10)
            weights[t] = 0
            best = reach_by_lp(t, rows, bias, region)
            assert best.bound <= best.margin + 1e-6
            points = rng.uniform(-1, 1, (500, 3)) * 0.5
            if best.witness is not None:
                points = np.vstack([points, best.witness])
            lead = certified_bound(t, weights, head) * cells.compared_size(t, weights, head)
            assert cells.top_margin(points, t, rows, bias).max() <= lead + 1e-12


def test_share_without() -> None:
    np.testing.assert_allclose(
        np.exp(cells.log_share_without(5, float(np.log1p(-0.25)))), 0.75**5, rtol=1e-14
    )
    assert cells.log_share_without(0, -np.inf) == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": np.full((3, 2), np.nan)}, "finite"),
        ({"bias": np.array([0.0, np.inf, 0.0])}, "finite"),
        ({"rows": np.zeros((3, 2))}, "zeros only"),
        ({"bias": np.zeros(2)}, "bias"),
        ({"token": 3}, "token from 0 to 2"),
        ({"region": WholeSpace(5)}, "dimension 2"),
    ],
)
def test_refuses(change: dict, words: str) -> None:
    given = {"token": 0, "rows": np.eye(3, 2), "bias": np.zeros(3), "region": WholeSpace(2), **change}
    with pytest.raises(InputError, match=words):
        reach_by_lp(**given)


@pytest.mark.parametrize("outlier", [-1e7, -1e12])
def test_a_bias_far_below_the_others_changes_no_verdict(outlier: float, rng) -> None:
    """The tolerance followed the largest bias: leads below it were called ties."""
    rows, bias = rng.normal(size=(30, 3)), 1e-3 * rng.normal(size=30)
    there = np.vstack([rows, rng.normal(size=3)]), np.append(bias, outlier)
    for region in regions(3)[1:]:
        assert verdicts(*there, region)[:30] == verdicts(rows, bias, region)


@pytest.mark.parametrize("which", [1, 2])
def test_a_solver_that_gives_up_is_no_verdict(which: int, monkeypatch: pytest.MonkeyPatch, rng) -> None:
    """Its numbers were taken for a proof of "unreachable"."""
    rows = rng.normal(size=(12, 3))
    rows[11] = rows[:4].mean(axis=0)
    real, calls = cells.optimize.linprog, []

    def linprog(*words, **more):
        calls.append(1)
        found = real(*words, **more)
        found.status = 4 if len(calls) >= which else found.status
        return found

    monkeypatch.setattr(cells.optimize, "linprog", linprog)
    found = reach_by_lp(11, rows, np.zeros(12), Box(-np.ones(3), np.ones(3)))
    assert found.verdict == "undetermined"
    assert found.witness is None
    assert not np.isnan([found.margin, found.bound]).any()
