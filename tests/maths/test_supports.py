"""Supports: published values, laws, and packings found by brute force that no bound may fall below."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths.logspace import log_ball_volume
from lmreach.maths.supports import (
    AbstractSupport,
    Ball,
    Box,
    BoxEllipsoid,
    Cone,
    Ellipsoid,
    FloatGrid,
    norm_ellipsoid,
)


def flat(d: int) -> np.ndarray:
    return np.zeros(d)


def both(axes: np.ndarray, half_sides: np.ndarray) -> BoxEllipsoid:
    return BoxEllipsoid(Box(-half_sides, half_sides), Ellipsoid(axes, flat(axes.size)))


# Published values ----------------------------------------------------------------------------------


def test_ball_values() -> None:
    assert Ball(768, 3.7).log_packing(3.7 * 2**-11) == pytest.approx(6388.23189316, rel=1e-11)
    assert Ball(896, 1.0).log_packing(0.1) == pytest.approx(2727.892, abs=5e-4)
    assert 64 * Ball(896, 1.0).log_packing(0.1) == pytest.approx(174585.095, abs=5e-4)


def test_box_value() -> None:
    assert Box(flat(4), np.array([1.0, 2.0, 3.0, 4.0])).log_packing(0.1) == pytest.approx(
        12.5899769817, rel=1e-11
    )


@pytest.mark.parametrize(
    ("d", "value"), [(64, 443.173890094), (640, 3720.34432659), (768, 4395.5210937), (2048, 10731.7145322)]
)
def test_norm_ellipsoid_values(d: int, value: float) -> None:
    support = norm_ellipsoid("rms", np.ones(d))
    assert support.log_packing(math.sqrt(d) * 2**-11) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize(
    ("d", "theta", "vocab", "slope", "ratio"),
    [
        (2048, 2.219370, 50304, 261.4, 5.938543),
        (2560, 2.159577, 50304, 197.9, 9.787080),
        (4096, 2.213061, 50304, 283.55, 10.948394),
    ],
)
def test_cone_convention_gives_the_published_ratios(
    d: int, theta: float, vocab: int, slope: float, ratio: float
) -> None:
    cone = Cone(d, 1.0, theta / 2, convention=True)
    assert cone.log_packing(2**-11) / math.log(vocab) / slope == pytest.approx(ratio, rel=2e-4)


# One contract for every support --------------------------------------------------------------------

SHAPES: dict[str, Callable[[float], AbstractSupport]] = {
    "ball": lambda s: Ball(5, s),
    "ball in l2": lambda s: Ball(5, s, p=2.0),
    "ball in l1": lambda s: Ball(5, s, p=1.0),
    "box": lambda s: Box(-s * np.arange(5.0), s * np.ones(5)),
    "cone": lambda s: Cone(5, s, 0.7),
    "wide cone": lambda s: Cone(5, s, 2.0),
    "cone by convention": lambda s: Cone(5, s, 0.7, convention=True),
    "ellipsoid": lambda s: Ellipsoid(s * np.array([3.0, 2.0, 1.0, 1e-3, 0.0]), flat(5)),
    "round ellipsoid": lambda s: Ellipsoid(s * np.ones(5), s * np.ones(5)),
    "box and ellipsoid": lambda s: both(
        s * np.array([3.0, 2.0, 1.0, 1e-3, 0.0]), s * np.array([1.0, 5.0, 0.5, 1.0, 1.0])
    ),
    "one coordinate": lambda s: both(s * np.ones(1), s * np.ones(1)),
}


@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
class TestEverySupport:
    def test_says_what_it_is(self, make: Callable[[float], AbstractSupport]) -> None:
        support = make(1.0)
        assert support.dimension in (1, 5)
        assert support.norm in ("linf", "l2", "l1")
        assert support.packing in ("proved", "convention")
        assert support.premise in ("format", "input", "hidden")
        assert support.source
        assert support.kind

    def test_never_leaves_the_finite_numbers(self, make: Callable[[float], AbstractSupport]) -> None:
        for scale in (1e-150, 1.0, 1e150):
            for eps in (1e-300, 1e-20, 1.0, 1e20, 1e300):
                value = make(scale).log_packing(eps)
                assert math.isfinite(value)
                assert value >= 0

    @settings(deadline=None)
    @given(scale=st.floats(1e-3, 1e3), eps=st.floats(1e-4, 10), factor=st.floats(1e-3, 1e3))
    def test_units_do_not_matter(
        self, make: Callable[[float], AbstractSupport], scale: float, eps: float, factor: float
    ) -> None:
        value = make(scale).log_packing(eps)
        assert make(scale * factor).log_packing(eps * factor) == pytest.approx(value, rel=1e-6, abs=1e-6)

    @settings(deadline=None)
    @given(scale=st.floats(1e-3, 1e3), eps=st.floats(1e-4, 10), factor=st.floats(1, 50))
    def test_finer_precision_and_larger_sets_hold_more(
        self, make: Callable[[float], AbstractSupport], scale: float, eps: float, factor: float
    ) -> None:
        value = make(scale).log_packing(eps)
        slack = 1e-6 + 1e-6 * value
        assert make(scale).log_packing(eps / factor) >= value - slack
        assert make(scale * factor).log_packing(eps) >= value - slack

    @pytest.mark.parametrize("eps", [0.0, -1.0, math.nan, math.inf])
    def test_refuses_a_precision_of_nothing(
        self, make: Callable[[float], AbstractSupport], eps: float
    ) -> None:
        with pytest.raises(InputError, match="eps"):
            make(1.0).log_packing(eps)


@settings(deadline=None)
@given(d=st.integers(1, 3000), more=st.integers(1, 3000), ratio=st.floats(1e-6, 1e3))
def test_more_coordinates_hold_more(d: int, more: int, ratio: float) -> None:
    assert Ball(d + more, 1.0).log_packing(ratio) >= Ball(d, 1.0).log_packing(ratio)
    longer, shorter = Ellipsoid(np.ones(d + more), flat(d + more)), Ellipsoid(np.ones(d), flat(d))
    assert longer.log_packing(ratio) >= shorter.log_packing(ratio) - 1e-9


@settings(deadline=None)
@given(
    d=st.integers(2, 300),
    more=st.integers(1, 300),
    eps=st.floats(1e-6, 1),
    phi=st.floats(0.7, 1.5),
    side=st.floats(0.01, 2),
)
def test_more_coordinates_hold_more_in_other_shapes(
    d: int, more: int, eps: float, phi: float, side: float
) -> None:
    def shapes(k: int) -> list[AbstractSupport]:
        ones = np.ones(k)
        return [
            Ball(k, 1.0, p=2.0),
            Box(-side * ones, side * ones),
            Cone(k, 1.0, phi),
            both(ones, side * ones),
            FloatGrid(k, "float16", -side * ones, side * ones),
        ]

    for few, many in zip(shapes(d), shapes(d + more), strict=True):
        assert many.log_packing(eps) >= few.log_packing(eps) * (1 - 1e-6), few.kind


# Brute force: no packing that exists may exceed a bound --------------------------------------------


def greedy_packing(points: np.ndarray, eps: float, order: float) -> int:
    """Number of points kept when each must be at least eps away from all kept before it."""
    kept = np.empty((0, points.shape[1]))
    for point in points:
        if not kept.size or np.linalg.norm(kept - point, ord=order, axis=1).min() >= eps:
            kept = np.vstack([kept, point])
    return len(kept)


def candidates(d: int, reach: float, eps: float, seed: int) -> np.ndarray:
    """A lattice of spacing eps through 0, the densest packing of a box, and random points."""
    steps = np.arange(-math.ceil(reach / eps), math.ceil(reach / eps) + 1) * eps * (1 + 1e-9)
    lattice = np.stack(np.meshgrid(*[steps] * d), axis=-1).reshape(-1, d)
    return np.vstack([lattice, np.random.default_rng(seed).uniform(-reach, reach, (1500, d))])


@pytest.mark.parametrize("eps", [0.21, 0.5, 1.3])
@pytest.mark.parametrize("d", [1, 2, 3])
class TestPackings:
    def test_balls(self, d: int, eps: float) -> None:
        for p in (1.0, 2.0, math.inf):
            points = candidates(d, 1.0, eps, seed=1)
            points = points[np.linalg.norm(points, ord=p, axis=1) <= 1.0]
            assert math.log(greedy_packing(points, eps, p)) <= Ball(d, 1.0, p=p).log_packing(eps)

    def test_boxes(self, d: int, eps: float) -> None:
        half = np.array([1.0, 0.3, 0.05])[:d]
        points = candidates(d, 1.0, eps, seed=2)
        points = points[(np.abs(points) <= half).all(axis=1)]
        assert math.log(greedy_packing(points, eps, math.inf)) <= Box(-half, half).log_packing(eps)

    @pytest.mark.parametrize("axes", [(1.0, 1.0, 1.0), (1.0, 0.4, 0.02), (1.0, 0.0, 0.0)])
    def test_ellipsoids(self, d: int, eps: float, axes: tuple[float, ...]) -> None:
        support = Ellipsoid(np.array(axes[:d]), flat(d))
        points = self.inside(axes[:d], candidates(d, 1.0, eps, seed=3))
        assert math.log(greedy_packing(points, eps, math.inf)) <= support.log_packing(eps)

    @pytest.mark.parametrize("axes", [(1.0, 1.0, 1.0), (1.0, 0.4, 0.02)])
    def test_boxes_with_ellipsoids(self, d: int, eps: float, axes: tuple[float, ...]) -> None:
        half = np.array([0.6, 1.0, 0.5])[:d]
        points = self.inside(axes[:d], candidates(d, 1.0, eps, seed=4))
        points = points[(np.abs(points) <= half).all(axis=1)]
        found = math.log(greedy_packing(points, eps, math.inf))
        assert found <= both(np.array(axes[:d]), half).log_packing(eps)

    @pytest.mark.parametrize("phi", [0.1, 0.6, 1.5, 2.0])
    def test_cones(self, d: int, eps: float, phi: float) -> None:
        if d == 1:
            return
        rays = np.linspace(0, 1, 60)[:, None] * np.eye(d)[0]
        points = np.vstack([rays, candidates(d, 1.0, eps, seed=5)])
        size = np.linalg.norm(points, axis=1)
        points = points[(size <= 1.0) & (points[:, 0] >= size * math.cos(phi) - 1e-12)]
        assert math.log(greedy_packing(points, eps, 2)) <= Cone(d, 1.0, phi).log_packing(eps)

    def test_ellipsoids_of_a_layer_norm(self, d: int, eps: float) -> None:
        # States of a LayerNorm add up to 0 before the gain, which no bound uses: pack the whole ellipsoid.
        gain, bias = np.array([1.0, -0.4, 0.1])[:d], np.array([3.0, 0.0, -2.0])[:d]
        support = norm_ellipsoid("layer", gain, bias)
        points = self.inside(tuple(support.axes), candidates(d, 2.0, eps, seed=6)) + bias
        assert math.log(greedy_packing(points, eps, math.inf)) <= support.log_packing(eps)

    def test_float_grids(self, d: int, eps: float) -> None:
        values = np.arange(-8, 8)  # every int4
        every = np.stack(np.meshgrid(*[values] * d), axis=-1).reshape(-1, d)
        low, high = np.array([-3.5, 0.0, -9.0])[:d], np.array([2.0, 0.9, 9.0])[:d]
        inside = every[((every >= low) & (every <= high)).all(axis=1)]
        assert FloatGrid(d, "int4", low, high).log_packing() == pytest.approx(math.log(len(inside)))
        assert greedy_packing(inside, min(eps, 1.0), math.inf) == len(inside)

    @staticmethod
    def inside(axes: tuple[float, ...], points: np.ndarray) -> np.ndarray:
        """Keep points of the ellipsoid, after pressing all onto its flat directions."""
        lengths = np.array(axes)
        points = points * (lengths > 0)
        scaled = points / np.where(lengths > 0, lengths, 1.0)
        return points[(scaled**2).sum(axis=1) <= 1.0]


def test_the_papers_cone_is_no_bound() -> None:
    # Three points of one ray are half a radius apart; the convention allows a single one.
    assert math.exp(Cone(3, 1.0, 1e-3, convention=True).log_packing(0.5)) < 3
    assert math.exp(Cone(3, 1.0, 1e-3).log_packing(0.5)) >= 3


def test_a_cone_never_exceeds_its_ball() -> None:
    for phi in (1e-6, 0.3, 1.5, math.pi / 2, 2.0, math.pi):
        assert Cone(64, 1.0, phi).log_packing(0.01) <= Ball(64, 1.0, p=2.0).log_packing(0.01)


# The norm ellipsoid --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_every_normalised_state_lies_in_the_norm_ellipsoid(kind: str) -> None:
    rng = np.random.default_rng(0)
    gain, bias = rng.normal(size=16), rng.normal(size=16)
    x = rng.normal(size=(500, 16)) * np.exp(rng.normal(size=(500, 1)) * 3)
    x = x - x.mean(axis=1, keepdims=True) if kind == "layer" else x
    hidden = gain * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6) + bias
    support = norm_ellipsoid(kind, gain, bias)
    assert ((((hidden - support.center) / support.axes) ** 2).sum(axis=1) <= 1 + 1e-12).all()
    assert np.abs(hidden).max() <= support.radius


def test_short_axes_leave_the_ellipsoid() -> None:
    axes = np.append(np.ones(63), 1e-9)
    support = Ellipsoid(axes, flat(64))
    alone = Ellipsoid(np.ones(63), flat(63)).log_packing(0.01)
    # The flat direction adds the side of a box, ln(1 + 2e-9 / 0.01), and nothing else.
    assert support.log_packing(0.01) == pytest.approx(alone + 2e-7, rel=1e-9)


def test_a_gain_of_zero_is_one_value() -> None:
    some = norm_ellipsoid("rms", np.array([1.0, 0.0, 1.0]))
    assert math.isfinite(some.log_packing(0.1))
    assert Ellipsoid(flat(3), flat(3)).log_packing(0.1) == 0.0


@settings(deadline=None)
@given(
    axes=st.lists(st.floats(0, 10), min_size=1, max_size=12),
    half=st.floats(1e-3, 10),
    shift=st.floats(-5, 5),
    eps=st.floats(1e-4, 5),
)
def test_the_intersection_never_exceeds_either(
    axes: list[float], half: float, shift: float, eps: float
) -> None:
    d = len(axes)
    box = Box(np.full(d, shift - half), np.full(d, shift + half))
    ellipsoid = Ellipsoid(np.array(axes), flat(d))
    value = BoxEllipsoid(box, ellipsoid).log_packing(eps)
    assert value <= box.log_packing(eps) + 1e-12
    assert value <= ellipsoid.log_packing(eps) + 1e-12
    assert value >= 0


@settings(deadline=None)
@given(
    axes=st.lists(st.floats(0.01, 4), min_size=1, max_size=6),
    half=st.floats(0.5, 3),
    shift=st.floats(-1, 1),
)
def test_whole_numbers_inside_never_exceed_the_intersection(
    axes: list[float], half: float, shift: float
) -> None:
    """Whole-number points are 1 apart in the maximum norm: counting those inside gives a packing."""
    d = len(axes)
    reach = math.floor(max(axes))
    grid = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * d), axis=-1).reshape(-1, d)
    inside = ((grid / np.array(axes)) ** 2).sum(axis=1) <= 1
    inside &= (np.abs(grid - shift) <= half).all(axis=1)
    box = Box(np.full(d, shift - half), np.full(d, shift + half))
    support = BoxEllipsoid(box, Ellipsoid(np.array(axes), flat(d)))
    assert math.log(max(1, inside.sum())) <= support.log_packing(1.0) + 1e-9


@pytest.mark.parametrize("d", [2, 4, 6])
def test_the_joint_volume_is_not_below_the_true_one(d: int) -> None:
    rng = np.random.default_rng(d)
    axes, half = np.linspace(1.0, 2.0, d), np.full(d, 0.7)
    points = 200_000
    inside = ((rng.uniform(-half, half, (points, d)) / axes) ** 2).sum(axis=1) <= 1
    volume = inside.mean() * (2 * half).prod()
    # The bound tends to the volume of the Gaussian argument times eps^-d as eps falls.
    eps = 1e-7
    bound = both(axes, half).log_packing(eps) + d * math.log(eps)
    error = 4 * math.sqrt(inside.mean() * (1 - inside.mean()) / points) / inside.mean()
    assert math.log(volume) - error <= bound
    # Chernoff's loss is a small power of d, not exponential in it.
    assert bound <= math.log(volume) + 2 + math.log(d)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_fine_packings_tend_to_the_volume(d: int) -> None:
    """At small eps a bound is a volume over that of one body of size eps, here against counted points."""
    rng = np.random.default_rng(d)
    points, eps = 200_000, 1e-9
    axes = np.linspace(0.5, 1.5, d)
    cube = rng.uniform(-1, 1, (points, d))
    log_axes = float(np.log(2 * axes).sum())

    def agrees(inside: np.ndarray, value: float) -> bool:
        share = inside.mean()
        return abs(math.exp(value) - share) <= 4 * math.sqrt(share * (1 - share) / points) + 1e-6

    in_ball = (cube**2).sum(axis=1) <= 1
    ellipsoid = Ellipsoid(axes, flat(d)).log_packing(eps) + d * math.log(eps)
    assert agrees(in_ball, ellipsoid - log_axes)
    assert Box(-axes, axes).log_packing(eps) + d * math.log(eps) == pytest.approx(log_axes, abs=1e-6)
    if d > 1:
        size = np.linalg.norm(cube, axis=1)
        in_cone = in_ball & (cube[:, 0] >= size * math.cos(0.8))
        body = math.exp(log_ball_volume(d)) * (eps / 2) ** d
        cone = Cone(d, 1.0, 0.8).log_packing(eps) + math.log(body)
        assert agrees(in_cone, cone - d * math.log(2))


@pytest.mark.parametrize("d", [2, 16, 128, 1024, 8192, 65536])
@pytest.mark.parametrize("spread", [1.0, 10.0])
def test_the_joint_bound_loses_the_log_of_the_width_at_most(d: int, spread: float) -> None:
    axes = np.geomspace(1.0, spread, d) * math.sqrt(d)
    # Axes long compared with eps, and the ellipsoid's own box, which leaves everything to the ellipsoid.
    eps = axes[0] * 2.0**-11 / d
    alone = Ellipsoid(axes, flat(d)).log_packing(eps)
    joint = both(axes, axes)._joint(eps)
    assert alone - 1e-6 * alone <= joint <= alone + 1 + math.log(d)


def test_a_binding_box_improves_on_both_parts() -> None:
    d = 256
    gain = np.exp(np.linspace(-1, 1, d))
    ellipsoid = norm_ellipsoid("rms", gain)
    half = 2.0 * gain
    eps = 1e-3
    joint = both(ellipsoid.axes, half).log_packing(eps)
    parts = [Box(-half, half).log_packing(eps), ellipsoid.log_packing(eps)]
    assert joint < min(parts) - 1


# The float grid ------------------------------------------------------------------------------------


def test_float_grid_counts_vectors() -> None:
    assert FloatGrid(3, "float16").log_packing() == pytest.approx(3 * math.log(63487), rel=1e-15)
    grid = FloatGrid(2, "bfloat16", np.array([-1.0, 0.0]), np.array([1.0, 0.0]))
    assert grid.counts().tolist() == [32513, 1]
    assert grid.log_packing() == pytest.approx(math.log(32513), rel=1e-15)
    assert grid.packing == "exact count"


def test_float_grid_refuses() -> None:
    with pytest.raises(InputError, match="did you mean"):
        FloatGrid(2, "float17")
    with pytest.raises(InputError, match="none at coordinate 1"):
        FloatGrid(2, "bfloat16", np.array([0.0, 1.001]), np.array([0.0, 1.002]))
    with pytest.raises(InputError, match="both corners"):
        FloatGrid(2, "bfloat16", lo=flat(2))


# Bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ball(0, 1.0),
        lambda: Ball(2, 0.0),
        lambda: Ball(2, math.nan),
        lambda: Ball(2, 1.0, p=0.5),
        lambda: Box(np.ones(2), flat(2)),
        lambda: Box(flat(2), np.ones(3)),
        lambda: Box(flat(2), np.array([1.0, math.nan])),
        lambda: Box(np.zeros((2, 2)), np.ones((2, 2))),
        lambda: Cone(1, 1.0, 0.5),
        lambda: Cone(4, 1.0, 0.0),
        lambda: Ellipsoid(np.array([1.0, -1.0]), flat(2)),
        lambda: Ellipsoid(np.ones(2), flat(3)),
        lambda: BoxEllipsoid(Box(flat(2), np.ones(2)), Ellipsoid(np.ones(3), flat(3))),
        lambda: norm_ellipsoid("group", np.ones(3)),
        lambda: norm_ellipsoid("rms", np.array([])),
    ],
)
def test_supports_refuse_what_they_cannot_use(make: Callable[[], AbstractSupport]) -> None:
    with pytest.raises(InputError, match=r"expected .*; got .*; "):
        make()


def test_supports_keep_their_own_copy() -> None:
    corner = np.ones(3)
    box = Box(-corner, corner)
    corner[:] = 5.0
    assert box.hi.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        box.hi[0] = 2.0
