"""Reference measures of hidden states: blocks, moments, supports, and what is refused."""

import numpy as np
import pytest
import torch

from lmreach.errors import InputError
from lmreach.experiments.states import measures
from lmreach.experiments.states.stream import hidden_support
from lmreach.models.facts import FinalNorm

H = 6
GAIN = np.array([0.5, 1.0, 2.0, -1.0, 3.0, 0.1])
BIAS = np.array([0.0, 1.0, 0.0, -2.0, 0.5, 0.0])
RMS = FinalNorm("rms", GAIN, np.zeros(H))
LAYER = FinalNorm("layer", GAIN, BIAS)
NONE = FinalNorm("none", np.empty(0), np.empty(0))


def all_of_them(random_model) -> dict[str, measures.Measure]:
    return {
        "gaussian": measures.gaussian(LAYER, seed=3),
        "ellipsoid": measures.ellipsoid(LAYER, seed=3),
        "ball": measures.ball(2.0, np.ones(H), width=H, seed=3),
        "box": measures.box(-np.ones(H), np.arange(H), seed=3),
        "empirical": measures.empirical(random_model, kinds=("random",), length=8, seed=3),
    }


def test_blocks_are_fixed_distinct_and_of_the_promised_size(random_model) -> None:
    found = all_of_them(random_model)
    assert tuple(found) == measures.MEASURES
    for name, measure in found.items():
        late, early = measure.draw(5), measure.draw(0)
        assert measure.name == name
        assert late.dtype == torch.float32
        assert late.shape[0] == early.shape[0] == measure.block
        assert torch.equal(late, measure.draw(5))
        assert not torch.equal(late, early)
    other = measures.gaussian(LAYER, seed=4)
    assert not torch.equal(found["gaussian"].draw(0), other.draw(0))
    assert [name for name, measure in found.items() if not measure.independent] == ["empirical"]


def test_the_caller_s_random_state_is_left_alone(random_model) -> None:
    torch.manual_seed(1)
    before = torch.rand(3)
    torch.manual_seed(1)
    for measure in all_of_them(random_model).values():
        measure.draw(0)
    assert torch.equal(before, torch.rand(3))


def test_gaussian_has_the_moments_of_the_norm() -> None:
    h = torch.cat([measures.gaussian(RMS, seed=0).draw(i) for i in range(8)]).double().numpy()
    n = len(h)
    # 5 standard errors of a mean and of a variance
    assert (np.abs(h.mean(0)) < 5 * np.abs(GAIN) / np.sqrt(n)).all()
    np.testing.assert_allclose(h.var(0), GAIN**2, rtol=5 * np.sqrt(2 / n))


def inner(h: torch.Tensor, norm: FinalNorm) -> np.ndarray:
    return (h.double().numpy() - norm.bias) / norm.gain


def test_layer_norm_takes_the_mean_out() -> None:
    for measure in (measures.gaussian(LAYER, seed=0), measures.ellipsoid(LAYER, seed=0)):
        assert np.abs(inner(measure.draw(0), LAYER).sum(1)).max() < 1e-4


@pytest.mark.parametrize(("norm", "dimensions"), [(RMS, H), (LAYER, H - 1)])
def test_ellipsoid_is_uniform_in_radius(norm: FinalNorm, dimensions: int) -> None:
    u = inner(measures.ellipsoid(norm, seed=0).draw(0), norm)
    radius = np.linalg.norm(u, axis=1) / np.sqrt(H)
    assert radius.max() <= 1 + 1e-5
    uniform = np.sort(radius**dimensions)
    # Kolmogorov-Smirnov at about 1e-6
    assert np.abs(uniform - (np.arange(len(u)) + 0.5) / len(u)).max() < 2.7 / np.sqrt(len(u))


def test_ball_and_box_keep_to_their_supports() -> None:
    h = measures.ball(2.0, np.ones(H), width=H, seed=0).draw(1).double()
    radius = (h - 1).norm(dim=1)
    assert float(radius.max()) <= 2 + 1e-5
    assert float(radius.min()) < 1
    low, high = np.array([-1.0, 0, 5]), np.array([1.0, 0, 6])
    b = measures.box(low, high, seed=0).draw(0).numpy()
    assert (b >= low).all()
    assert (b <= high).all()
    np.testing.assert_allclose(b.mean(0), (low + high) / 2, atol=5 * 0.58 / 64)


def test_round_measures_share_their_directions() -> None:
    norm = FinalNorm("rms", np.ones(H), np.zeros(H))
    rays = [
        torch.nn.functional.normalize(measure.draw(2), dim=1)
        for measure in (
            measures.gaussian(norm, seed=0),
            measures.ellipsoid(norm, seed=0),
            measures.ball(1.0, width=H, seed=0),
        )
    ]
    for other in rays[1:]:
        torch.testing.assert_close(rays[0], other)


def test_empirical_states_are_those_of_the_model(random_model, tmp_path) -> None:
    file = tmp_path / "some.txt"
    ids = np.random.default_rng(0).choice(random_model.plain_ids, size=(130, 8))
    file.write_text("\n".join(" ".join(map(str, row)) for row in ids))
    measure = measures.empirical(random_model, kinds=(f"ids:{file}",), length=8, seed=0)
    assert str(tmp_path) not in measure.words
    assert "ids:some.txt" in measure.words
    with torch.no_grad():
        vectors = random_model.input_vectors(torch.from_numpy(ids[64:128]))
        wanted = random_model.hidden(vectors).flatten(0, 1)
    torch.testing.assert_close(measure.draw(1), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="130"):
        measure.draw(2)
    seen = hidden_support(random_model, positions=64, length=8, kinds=("random",))
    assert seen is not None
    assert measures.box(seen.low, seen.high, seed=0).draw(0).shape[1] == random_model.facts.hidden_width


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: measures.box(None, None, seed=0), "support missing"),
        (lambda: measures.ball(None, width=3, seed=0), "support missing"),
        (lambda: measures.gaussian(NONE, seed=0), "norm of kind none"),
        (lambda: measures.ellipsoid(NONE, seed=0), "ellipsoid measure"),
        (lambda: measures.ball(0.0, width=3, seed=0), "above 0"),
        (lambda: measures.ball(1.0, np.zeros(2), width=3, seed=0), "center of 3"),
        (lambda: measures.box(np.ones(2), np.zeros(2), seed=0), "coordinate 0"),
        (lambda: measures.box(np.zeros(2), np.array([1, np.inf]), seed=0), "not finite"),
        (lambda: measures.check_measure("sphere"), "gaussian, ellipsoid, ball, box, empirical"),
    ],
)
def test_refusals_name_what_is_missing(make, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)
