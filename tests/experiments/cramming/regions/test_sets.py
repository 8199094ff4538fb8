"""Sets of prompt vectors: one contract for all, nearest members against brute force, counts, storage."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.config.within import FORMATS, Within, parse_within
from lmreach.errors import InputError
from lmreach.experiments.cramming.regions.areas import Ball, SignBasis, Subspace
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import build, describe, restore
from lmreach.experiments.cramming.regions.grid import Grid, positive_scales
from lmreach.maths.levels import levels
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel

NAMES = [
    "box",
    "ball:1",
    "ball:1000",
    "subspace:5",
    "subspace:64:3",
    *FORMATS,
    "e4m3:vector",
    "int8:vector",
    "int2:vector",
    "sign:vector",
    "subspace:5+int4",
    "subspace:7+float16",
    "subspace:9+sign",
    "subspace:3+int3:vector",
]


@pytest.fixture(params=NAMES)
def held(request: pytest.FixtureRequest, random_model: LoadedModel) -> VectorSet:
    return build(parse_within(request.param), random_model, start_scale=10.0)


def free_vectors(held: VectorSet, seed: int = 0, spread: float = 2.0) -> torch.Tensor:
    """Free coordinates of a few orders of magnitude about the set's own size."""
    rng = np.random.default_rng(seed)
    size = (held.scale or 1.0) * np.exp(spread * rng.normal(size=(3, 1)))
    return torch.from_numpy((size * rng.normal(size=(3, held.free))).astype(np.float32))


class TestEverySet:
    """What the optimiser, the certificates and the limits rely on."""

    def test_the_nearest_member_is_a_member_and_its_own_nearest(self, held: VectorSet) -> None:
        for seed in range(5):
            settled = held.settle(free_vectors(held, seed))
            assert torch.equal(held.settle(settled), settled)
            assert held.outside(held.point(settled)) is None
            held.check(held.point(settled))

    def test_storage_gives_back_the_very_vectors(self, held: VectorSet) -> None:
        settled = held.settle(free_vectors(held))
        tensors = held.encode(settled)
        free, vectors = restore(tensors, describe(held), 3)
        assert torch.equal(free, settled)
        assert torch.equal(vectors, held.point(settled))
        stored = 8 * sum(tensor.nbytes for tensor in tensors.values())
        assert 3 * held.bits <= stored < 3 * held.bits + 8 * len(tensors)

    def test_it_holds_no_more_vectors_than_its_bits_can_tell_apart(self, held: VectorSet) -> None:
        assert 0 < held.log_count <= held.bits * math.log(2.0) * (1 + 1e-12)

    def test_vectors_elsewhere_are_refused_by_place(self, held: VectorSet) -> None:
        member = held.point(held.settle(free_vectors(held, spread=0.5)))
        beyond = member.clone()
        beyond[1, 2] = float("inf")
        with pytest.raises(InputError, match="vector 1"):
            held.check(beyond)
        beyond[1, 2] = float("nan")
        with pytest.raises(InputError, match="vector 1"):
            held.check(beyond)

    def test_a_finite_coordinate_outside_is_named(self, held: VectorSet) -> None:
        beyond = held.point(held.settle(free_vectors(held, spread=0.5)))
        beyond[1, 2] = 3.0e38
        if isinstance(held, Subspace) and held.free == held.width:
            assert held.outside(beyond) is None, "as many signs as coordinates span the whole space"
            return
        place = "vector 1" if isinstance(held, Ball) else "vector 1, coordinate"
        with pytest.raises(InputError, match=f"within .* at {place}"):
            held.check(beyond)

    def test_a_start_can_be_gone_on_from(self, held: VectorSet, random_model: LoadedModel) -> None:
        real = random_model.input_vectors(torch.tensor([3, 4]))
        begun = held.start(real, 10.0, np.random.default_rng(0))
        assert begun.shape == (2, held.free)
        assert torch.equal(held.keep(begun), begun)
        assert held.outside(held.point(held.settle(begun))) is None

    def test_a_vector_goes_into_one_prompt_as_into_another(self, held: VectorSet) -> None:
        free = free_vectors(held)
        assert torch.equal(held.settle(free)[1:2], held.settle(free[1:2]))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(FORMATS),
    st.lists(st.floats(-(2.0**126), 2.0**126, width=32), min_size=1, max_size=5),
    st.integers(-6, 6),
)
def test_rounding_finds_the_nearest_value(name: str, given_values: list[float], power: int) -> None:
    table = levels(name)
    grid = Grid(Within(format=name), len(given_values), table, 2.0**power)
    own = torch.tensor([given_values])
    settled = grid.settle(own).double().numpy() / 2.0**power
    exact = own.double().numpy() / 2.0**power
    nearest = np.abs(table.values[None, :] - exact.T).min(axis=1)
    assert np.array_equal(np.abs(settled - exact)[0], nearest)


@settings(deadline=None)
@given(st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3), st.floats(0.5, 50))
def test_no_point_of_a_ball_is_nearer(vector: list[float], radius: float) -> None:
    ball = Ball(parse_within("ball:1"), 3, radius)
    own = torch.tensor([vector])
    settled = ball.settle(own).double()
    distance = float((settled - own.double()).norm())
    assert distance <= max(0.0, float(own.double().norm()) - radius) + 1e-5 * radius


def test_no_corner_of_the_box_is_nearer(random_model: LoadedModel, rng: np.random.Generator) -> None:
    box = build(parse_within("box"), random_model)
    outside = torch.from_numpy(rng.normal(size=(1, 64)).astype(np.float32) * 10)
    best = (box.settle(outside) - outside).norm()
    for _ in range(200):
        other = box.settle(torch.from_numpy(rng.normal(size=(1, 64)).astype(np.float32) * 3))
        assert (other - outside).norm() >= best - 1e-4


def test_the_nearest_vector_of_a_subspace_leaves_a_perpendicular_rest() -> None:
    basis = SignBasis.draw(5, 40, seed=1)
    vectors = torch.from_numpy(np.random.default_rng(2).normal(size=(4, 40)).astype(np.float32))
    rest = vectors - basis.point(basis.free_of(vectors))
    assert float((rest.double() @ basis.signs.T).abs().max()) < 1e-5


@pytest.mark.parametrize(
    ("text", "width"), [("sign", 3), ("int2", 2), ("subspace:3+sign", 6), ("e4m3", 1), ("subspace:2+int2", 5)]
)
def test_counts_are_those_of_enumeration(text: str, width: int) -> None:
    within = parse_within(text)
    basis = None if within.free is None else SignBasis.draw(within.free, width, within.seed)
    table = levels(within.format or "")
    grid = Grid(within, width, table, 0.5, basis)
    free = np.asarray(list(itertools.product(table.values * 0.5, repeat=grid.free)), dtype=np.float32)
    distinct = {tuple(row) for row in grid.point(torch.from_numpy(free)).tolist()}
    assert len(distinct) == len(free) == round(math.exp(grid.log_count))


def test_a_scale_for_each_vector_is_counted_with_its_vectors() -> None:
    grid = Grid(parse_within("int2:vector"), 2, levels("int2"), None)
    assert math.exp(grid.log_count) == pytest.approx(16 * positive_scales().count)
    assert positive_scales().count == (65279 - 1) // 2
    assert grid.bits == 2 * 2 + 16


def test_float16_overflow_is_never_silent(random_model: LoadedModel) -> None:
    grid = build(parse_within("float16"), random_model)
    long = torch.full((1, 64), 1.0)
    long[0, 7] = 70000.0
    with pytest.raises(InputError, match="70000 at vector 0, coordinate 7"):
        grid.check(long)
    with pytest.raises(InputError, match="70000"):
        grid.encode(long)
    assert float(grid.settle(long)[0, 7]) == 65504.0  # the nearest there is, as a choice of the optimiser


def test_a_grid_that_the_models_dtype_cannot_hold_is_refused() -> None:
    from lmreach.config import LoadConfig

    half = load("builtin:random", LoadConfig(dtype="bfloat16"))
    for text in ("sign", "int8", "e4m3", "bfloat16", "sign:vector"):
        build(parse_within(text), half, start_scale=100.0)
    with pytest.raises(InputError, match="bfloat16 cannot hold"):
        build(parse_within("float16"), half)
    with pytest.raises(InputError, match="bfloat16 cannot hold"):
        build(parse_within("int2:vector"), half)
    short = load("builtin:random", LoadConfig(dtype="float16"))
    with pytest.raises(InputError, match="float16 cannot hold"):
        build(parse_within("int8"), short, start_scale=1e6)
    with pytest.raises(InputError, match="float16 cannot hold"):
        build(parse_within("bfloat16"), short)
    with pytest.raises(InputError, match="at most 64 dimensions"):
        build(parse_within("subspace:65"), short)


def test_what_was_stored_wrongly_is_refused(random_model: LoadedModel) -> None:
    held = build(parse_within("int4"), random_model)
    tensors = held.encode(held.settle(free_vectors(held)))
    for claim, given_tensors in (
        ({}, tensors),
        (describe(held), {}),
        (describe(held), {"codes": tensors["codes"][:-1]}),
        ({**describe(held), "within": "sign"}, tensors),
        ({**describe(held), "scale": "wide"}, tensors),
    ):
        with pytest.raises(InputError):
            restore(given_tensors, claim, 3)


@pytest.mark.parametrize("text", NAMES)
def test_a_premise_reads_back_from_its_own_text(text: str) -> None:
    assert parse_within(text).text == text
    assert parse_within(f" {text.upper()} ") == parse_within(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "box"),
        ("ball", "ball:10|ball:R"),
        ("ball:0", "radius above 0"),
        ("ball:nan", "radius above 0"),
        ("subspace:0", "whole number"),
        ("subspace:ten", "whole number"),
        ("int5", "did you mean"),
        ("int4:row", "box"),
        ("float16:vector", "as it is"),
        ("int4+sign", "a subspace and a format"),
        ("box+int4", "a subspace and a format"),
        ("subspace:4+box", "a subspace and a format"),
        ("subspace:4+int4+sign", "a subspace and a format"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_within(text)
