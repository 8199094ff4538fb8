"""The streamed support against all states held at once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.experiments.states.stream import cosine_bound, hidden_support
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.models.tiny import FAMILIES, tiny


def test_streamed_numbers_are_those_of_all_states(random_model) -> None:
    found = hidden_support(random_model, positions=64 * 80, length=64, kinds=("random",), seed=0)
    ids = torch.from_numpy(draw(random_model, "random", 80, 64, seed=0).ids)
    with torch.no_grad():
        states = random_model.hidden(random_model.input_vectors(ids)).flatten(0, 1).double().numpy()
    assert found is not None
    assert found.samples == len(states) == 80 * 64
    np.testing.assert_allclose(found.l1_max, np.abs(states).sum(1).max(), rtol=1e-6)
    np.testing.assert_allclose(found.l2_max, np.linalg.norm(states, axis=1).max(), rtol=1e-6)
    np.testing.assert_allclose(found.linf_max, np.abs(states).max(), rtol=1e-6)
    np.testing.assert_allclose(found.low, states.min(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.high, states.max(0), rtol=1e-5, atol=1e-6)
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    cosines = unit @ unit.T
    mean = (cosines.sum() - len(unit)) / (len(unit) * (len(unit) - 1))
    np.testing.assert_allclose(found.mean_cos, mean, rtol=1e-6, atol=1e-9)
    # 2048 of 5120 states are kept for the smallest cosine.
    assert found.kept == 2048
    assert found.min_cos_bound <= cosines.min() <= found.min_cos <= np.quantile(cosines, 1e-4)


def test_the_smallest_cosine_of_few_states_is_exact(random_model) -> None:
    found = hidden_support(random_model, positions=320, length=32, kinds=("random",), seed=0)
    ids = torch.from_numpy(draw(random_model, "random", 10, 32, seed=0).ids)
    with torch.no_grad():
        states = random_model.hidden(random_model.input_vectors(ids)).flatten(0, 1).double().numpy()
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    np.testing.assert_allclose(found.min_cos, (unit @ unit.T).min(), rtol=1e-9)
    assert found.kept == 320


def test_a_single_state_has_no_smallest_cosine(random_model) -> None:
    found = hidden_support(random_model, positions=1, length=1, kinds=("random",), seed=0)
    assert (found.samples, found.min_cos) == (1, None)


@given(
    angles=st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=20),
    centre=st.floats(-3, 3),
)
def test_no_two_vectors_in_a_cone_are_further_apart_than_the_bound(angles, centre) -> None:
    apart = np.subtract.outer(angles, angles)
    half_angle = np.abs(np.array(angles) - centre).max()
    assert cosine_bound(half_angle) <= np.cos(apart).min() + 1e-9


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_no_state_leaves_the_norm_ellipsoid(family: str) -> None:
    model = load(tiny(family))
    found = hidden_support(model, positions=512, length=16, kinds=("random",), seed=0)
    assert found is not None
    if model.facts.norm_kind in ("rms", "layer"):
        assert found.ellipsoid_fraction is not None
        assert 0.5 < found.ellipsoid_fraction <= 1 + 1e-5
    else:
        assert found.ellipsoid_fraction is None


def test_more_samples_never_shrink_the_support(random_model) -> None:
    few = hidden_support(random_model, positions=512, length=32, kinds=("random",), seed=0)
    many = hidden_support(random_model, positions=4096, length=32, kinds=("random",), seed=0)
    assert few is not None
    assert many is not None
    assert many.linf_max >= few.linf_max
    assert (many.low <= few.low).all()
    assert (many.high >= few.high).all()


def test_stopped_before_anything_gives_nothing(random_model) -> None:
    assert hidden_support(random_model, positions=512, stop=lambda: True) is None
