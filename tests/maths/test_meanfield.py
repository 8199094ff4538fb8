"""Attention without positions cannot tell apart two lists that are the same measure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths.meanfield import Attention, center_of_mass

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 12)


def cloud(seed: int, n: int, d: int = 4) -> tuple[list[Attention], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    layers = [Attention(*rng.normal(size=(3, d, d))) for _ in range(2)]
    return layers, rng.normal(size=(n, d)), rng.uniform(0.1, 1, size=n)


def through(layers: list[Attention], points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    for layer in layers:
        points = layer(points, masses)
    return points


@settings(deadline=None)
@given(seed=seeds, n=sizes, copies=st.integers(2, 5))
def test_listing_every_point_again_changes_nothing(seed: int, n: int, copies: int) -> None:
    layers, points, masses = cloud(seed, n)
    once = through(layers, points, masses)
    often = through(layers, np.tile(points, (copies, 1)), np.tile(masses, copies))
    np.testing.assert_allclose(often, np.tile(once, (copies, 1)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        center_of_mass(often, np.tile(masses, copies)), center_of_mass(once, masses), rtol=1e-9, atol=1e-9
    )


@settings(deadline=None)
@given(seed=seeds, n=sizes)
def test_the_order_does_not_matter(seed: int, n: int) -> None:
    layers, points, masses = cloud(seed, n)
    order = np.random.default_rng(seed).permutation(n)
    once = through(layers, points, masses)
    np.testing.assert_allclose(
        through(layers, points[order], masses[order]), once[order], rtol=1e-9, atol=1e-9
    )


@settings(deadline=None)
@given(seed=seeds, n=sizes, unit=st.floats(1e-6, 1e6))
def test_two_points_in_one_place_are_one_of_both_masses(seed: int, n: int, unit: float) -> None:
    layers, points, masses = cloud(seed, n)
    split = np.concatenate([masses[:-1], [0.3 * masses[-1], 0.7 * masses[-1]]]) * unit
    twice = np.concatenate([points, points[-1:]])
    np.testing.assert_allclose(
        through(layers, twice, split)[:n], through(layers, points, masses), rtol=1e-8, atol=1e-8
    )


def test_against_sums_written_out() -> None:
    (layer, _), points, masses = cloud(3, 5)
    found = layer(points, masses)
    for i, x in enumerate(points):
        weights = [
            w * np.exp((layer.query @ x) @ (layer.key @ y)) for w, y in zip(masses, points, strict=True)
        ]
        mean = sum(p * (layer.value @ y) for p, y in zip(weights, points, strict=True)) / sum(weights)
        np.testing.assert_allclose(found[i], x + mean, rtol=1e-9)


def test_other_masses_do_matter() -> None:
    layers, points, masses = cloud(4, 5)
    assert not np.allclose(through(layers, points, masses), through(layers, points, masses[::-1]))


def test_a_point_without_mass_moves_nobody() -> None:
    layers, points, masses = cloud(5, 5)
    masses[-1] = 0
    np.testing.assert_allclose(
        through(layers, points, masses)[:4], through(layers, points[:4], masses[:4]), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("masses", [[-1.0, 2.0], [0.0, 0.0], [1.0], [np.nan, 1.0]])
def test_masses_are_checked(masses: list[float]) -> None:
    layers, points, _ = cloud(6, 2)
    with pytest.raises(InputError):
        layers[0](points, np.array(masses))
