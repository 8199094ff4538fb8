"""Log probabilities of polyhedra: closed forms down to exp(-200), coverage, angles by brute force, laws."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from lmreach.errors import InputError
from lmreach.maths.splitting import (
    LogProbability,
    Splitting,
    copies,
    log_polyhedron,
    lognormal_mean,
    next_level,
    uniform_angles,
)

QUICK = Splitting(particles=64, replicates=8, start=128)
# Errors beyond this many standard errors: for one fixed seed and Student's t of 7 degrees, chance 1 in 500.
WIDE = 4.5


def log_tail(x: float) -> float:
    return float(special.log_ndtr(-x))


def wedge(k: int) -> np.ndarray:
    """Two rows whose common positive side is one of k equal angles."""
    half = math.pi / k
    return np.array([[math.sin(half), math.cos(half)], [math.sin(half), -math.cos(half)]])


def box_cell(d: int) -> np.ndarray:
    """Differences of row e_1 to the other rows of +-e_i."""
    rows = np.vstack([np.eye(d), -np.eye(d)])
    return rows[0] - rows[1:]


def equicorrelated(d: int, rho: float) -> tuple[np.ndarray, float]:
    """Rows whose values have correlation rho, and ln P[all > 1] by quadrature over the shared part."""
    chol = np.linalg.cholesky(rho * np.ones((d, d)) + (1 - rho) * np.eye(d))

    def density(y: float) -> float:
        inner = special.ndtr(-(1 - math.sqrt(rho) * y) / math.sqrt(1 - rho))
        return float(stats.norm.pdf(y) * inner**d)

    return chol, math.log(integrate.quad(density, -10, 10)[0])


CLOSED = {
    "half": (np.eye(1), np.zeros(1), math.log(0.5)),
    "one of 2d": (box_cell(4), np.zeros(7), -math.log(8)),
    "one of d": (np.eye(5)[0] - np.eye(5)[1:], np.zeros(4), -math.log(5)),
    "angle": (wedge(7), np.zeros(2), -math.log(7)),
    "thin angle": (wedge(100_000), np.zeros(2), -math.log(100_000)),
    "slab": (np.array([[1.0], [-1.0]]), np.array([-1.0, 1.5]), math.log(special.ndtr(1.5) - special.ndtr(1))),
    "correlated": (equicorrelated(6, 0.5)[0], -np.ones(6), equicorrelated(6, 0.5)[1]),
    "exp(-198), one row": (np.eye(1), np.array([-19.7]), log_tail(19.7)),
    "exp(-203), six rows": (np.eye(6), np.full(6, -7.8), 6 * log_tail(7.8)),
}


@pytest.mark.parametrize("case", CLOSED)
def test_closed_forms(case, rng):
    rows, offset, truth = CLOSED[case]
    found = log_polyhedron(rows, offset, rng=rng, options=QUICK)
    assert found.verdict == "estimated"
    assert found.se > 0
    assert abs(found.value - truth) < WIDE * found.se
    assert found.low <= found.value <= found.high <= 0
    assert found.se < 0.1 + 0.015 * abs(truth)


def test_correlated_value_by_another_routine():
    rows, truth = equicorrelated(3, 0.5)
    normal = stats.multivariate_normal(mean=np.ones(3), cov=rows @ rows.T)
    below = normal.cdf(np.zeros(3), rng=np.random.default_rng(0))
    assert math.log(below) == pytest.approx(truth, abs=1e-4)


@pytest.mark.parametrize("case", ["angle", "one of d", "correlated"])
def test_coverage_of_the_interval(case):
    rows, offset, truth = CLOSED[case]
    options = Splitting(particles=24, replicates=8, start=32)
    hits = 0
    for seed in range(200):
        found = log_polyhedron(rows, offset, rng=np.random.default_rng(seed), options=options)
        hits += found.low <= truth <= found.high
    assert 180 <= hits <= 198


@pytest.mark.parametrize("spread", [0.2, 1.0, 2.0])
def test_coverage_of_the_lognormal_mean(spread, rng):
    logs = rng.normal(-(spread**2) / 2, spread, size=(2000, 8))
    ends = np.array([lognormal_mean(row) for row in logs])
    assert 0.90 <= ((ends[:, 2] <= 0) & (ends[:, 3] >= 0)).mean() <= 0.99
    assert abs(ends[:, 0].mean()) < 4 * ends[:, 0].std() / math.sqrt(len(ends))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(-1, 2))
def test_angles_are_uniform_over_those_allowed(seed, constraints, shift):
    rng = np.random.default_rng(seed)
    at, towards = rng.standard_normal((2, 1, constraints))
    offset = np.full(constraints, shift) + np.maximum(0, 0.2 - shift - at[0])  # angle 0 is allowed
    uniforms = (np.arange(400) + 0.5) / 400
    many = (np.repeat(part, 400, axis=0) for part in (at, towards))
    angles = uniform_angles(*many, offset, uniforms)

    def worst(t: np.ndarray) -> np.ndarray:
        return (at.T * np.cos(t) + towards.T * np.sin(t) + offset[:, None]).min(axis=0)

    assert (worst(angles) > -1e-9).all()
    grid = (np.arange(40_000) + 0.5) / 40_000 * 2 * np.pi
    allowed = grid[worst(grid) > 0]
    assume(len(allowed) > 4000)  # fewer are too coarse a reference
    expected = np.quantile(allowed, uniforms)
    # A quantile that falls between two arcs is at either of their ends.
    off = np.abs(angles - expected) > 0.02
    assert off.sum() <= constraints + 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_scaled_rows_change_nothing(seed, factor):
    rng = np.random.default_rng(seed)
    rows, offset = rng.standard_normal((3, 2)), np.abs(rng.standard_normal(3))
    options = Splitting(particles=16, replicates=2, start=16)
    scale = np.array([factor, 1.0, 1.0])
    one = log_polyhedron(rows, offset, rng=np.random.default_rng(seed), options=options)
    other = log_polyhedron(
        rows * scale[:, None], offset * scale, rng=np.random.default_rng(seed), options=options
    )
    assert other.value == pytest.approx(one.value, abs=1e-6)


def test_survivors_get_equal_copies(rng):
    alive = rng.random((5, 40)) < 0.4
    chosen = copies(alive, 64, rng)
    for run in range(5):
        times = np.bincount(chosen[run], minlength=40)
        assert (times[~alive[run]] == 0).all()
        assert np.ptp(times[alive[run]]) <= 1
        assert times.sum() == 64


def test_next_level_keeps_what_was_asked_and_stops_at_zero():
    margins = np.array([-5.0, -1.0, -3.0, -2.0, -4.0])
    assert next_level(margins, 2) == -3.0
    assert next_level(margins + 10, 2) == 0.0
    assert next_level(margins, 99) == -5.0


def test_the_certain_and_the_impossible(rng):
    sure = log_polyhedron(np.zeros((2, 3)), np.ones(2), rng=rng, options=QUICK)
    assert (sure.value, sure.low, sure.high) == (0, 0, 0)
    never = log_polyhedron(np.zeros((1, 3)), np.zeros(1), rng=rng, options=QUICK)
    assert (never.verdict, never.value, never.at_most) == ("below", None, QUICK.floor)
    assert never.words() == "below -300 nats"


def test_an_empty_region_ends_below_the_floor(rng):
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    options = Splitting(particles=32, replicates=2, start=32, floor=-20.0)
    found = log_polyhedron(rows, np.array([-0.1, -0.1]), rng=rng, options=options)
    assert (found.verdict, found.at_most) == ("below", -20.0)
    assert found.logs == ()


def test_deeper_than_the_floor_is_below(rng):
    options = Splitting(particles=32, replicates=2, start=32, floor=-30.0)
    assert log_polyhedron(np.eye(1), np.array([-20.0]), rng=rng, options=options).verdict == "below"


def test_same_seed_same_answer():
    rows, offset, _ = CLOSED["angle"]
    found = [log_polyhedron(rows, offset, rng=np.random.default_rng(3), options=QUICK) for _ in range(2)]
    assert found[0] == found[1]
    assert LogProbability(**asdict(found[0])) == found[0]


@pytest.mark.parametrize(
    ("rows", "offset", "words"),
    [
        (np.eye(2), np.zeros(3), "one offset per row"),
        (np.zeros((1, 0)), np.zeros(1), r"\(c, d\) with d >= 1"),
        (np.array([[math.nan]]), np.zeros(1), "finite rows"),
    ],
)
def test_bad_constraints(rows, offset, words, rng):
    with pytest.raises(InputError, match=words):
        log_polyhedron(rows, offset, rng=rng)


@pytest.mark.parametrize(
    "wrong",
    [
        {"particles": 4},
        {"replicates": 1},
        {"start": 10},
        {"floor": 0.0},
        {"floor": -math.inf},
        {"confidence": 1.0},
    ],
)
def test_bad_options(wrong):
    with pytest.raises(InputError):
        Splitting(**wrong)
