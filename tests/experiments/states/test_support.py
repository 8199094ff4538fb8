"""The full support against all states held at once, and the file it is kept in."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError, OutputError
from lmreach.experiments.states import support
from lmreach.experiments.states.file import read_support, saved_support, write_support
from lmreach.experiments.states.stream import UniformSample
from lmreach.experiments.states.support import SupportReport, measure_support, prompt_counts, prompt_lengths
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.tiny import tiny


@pytest.fixture(scope="module")
def states() -> list[torch.Tensor]:
    return []


@pytest.fixture(scope="module")
def found(random_model, states) -> SupportReport:
    original = support.StateStream.add

    def keep(self, block) -> None:
        states.append(block.clone())
        original(self, block)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support.StateStream, "add", keep)
        return measure_support(random_model, positions=1500, lengths=(4, 32), kinds=("random", "self"))


def units(states: list[torch.Tensor]) -> np.ndarray:
    # Every block goes into two streams: of its length, and of all.
    array = torch.cat(states[::2]).numpy()
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def test_cosines_and_cones_are_those_of_all_states(found, states) -> None:
    unit = units(states)
    assert found.seen.samples == len(unit) < 2048
    cosines = unit @ unit.T
    np.testing.assert_allclose(found.kept_min_cos, cosines.min(), rtol=1e-9)
    np.testing.assert_allclose(found.seen.mean_cos, cosines[~np.eye(len(unit), dtype=bool)].mean(), rtol=1e-9)
    mean = unit.sum(0) / np.linalg.norm(unit.sum(0))
    np.testing.assert_allclose(found.mean_direction, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.mean_angle, np.arccos((unit @ mean).min()), rtol=1e-6)
    np.testing.assert_allclose(found.half_angle, np.arccos((unit @ found.axis).min()), rtol=1e-6)


def test_the_cone_holds_all_and_is_hardly_wider_than_it_must_be(found) -> None:
    assert found.least_half_angle <= found.half_angle <= found.mean_angle
    assert found.min_cos_bound <= found.kept_min_cos


def test_the_axis_is_that_of_the_smallest_cap() -> None:
    rng = np.random.default_rng(0)
    angles = np.append(rng.uniform(-0.2, 0.9, 50), [-0.2, 0.9])
    plane = torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    axis = support._cap_axis(plane)
    assert np.arctan2(*axis.numpy()[::-1]) == pytest.approx(0.35, abs=2e-3)


def test_the_sample_is_bounded_and_uniform() -> None:
    sample = UniformSample(2048, np.random.default_rng(0))
    blocks = torch.eye(40, dtype=torch.float64)
    for k in range(40):
        sample.add(blocks[k : k + 1].repeat(1000, 1))
    assert len(sample.units) == 2048
    counts = sample.units.sum(0)
    assert counts.min() > 20
    assert counts.max() < 90


def test_growth_is_told_by_length_and_by_samples(found) -> None:
    lengths = [step.value for step in found.growth if step.what == "length"]
    samples = [step.seen for step in found.growth if step.what == "samples"]
    assert lengths == [4, 32]
    assert samples[-1].samples == found.seen.samples
    for few, many in itertools.pairwise(samples):
        assert (many.low <= few.low).all()
        assert (many.high >= few.high).all()


def test_no_state_leaves_the_ellipsoid(found) -> None:
    assert 0.5 < found.seen.ellipsoid_fraction <= 1 + 1e-5


def test_what_cannot_be_measured_is_refused(random_model) -> None:
    for lengths, positions in (((0,), 100), ((513,), 100), ((), 100), ((4,), 1)):
        with pytest.raises(InputError, match="expected"):
            measure_support(random_model, positions=positions, lengths=lengths)


def test_lengths_end_at_the_context_or_where_positions_do() -> None:
    assert prompt_lengths(100, 8192) == (4, 16, 64, 100)
    assert prompt_lengths(64, 8192) == (4, 16, 64)
    assert prompt_lengths(None, 8192, 2) == (4, 16, 64, 256, 1024, 2048)
    assert prompt_lengths(32768, 131072, 2)[-1] == 32768
    assert prompt_lengths(32768, 131070, 2)[-1] == 32767
    assert prompt_lengths(2, 8192) == (2,)
    assert prompt_lengths(512, 2, 2) == (1,)


@given(
    positions=st.integers(2, 200_000),
    context=st.none() | st.integers(1, 40_000),
    kinds=st.integers(1, 3),
)
def test_prompts_share_the_positions(positions, context, kinds) -> None:
    lengths = prompt_lengths(context, positions, kinds)
    counts = prompt_counts(positions // kinds, lengths)
    assert list(lengths) == sorted(set(lengths))
    assert set(counts) == set(lengths)
    assert min(counts.values()) >= 1
    used = kinds * sum(length * count for length, count in counts.items())
    # Rounding to whole prompts moves each length by half a prompt at most.
    assert abs(used - positions) <= kinds * (sum(lengths) / 2 + 1)


def test_long_prompts_asked_for_are_measured_though_they_take_more(random_model) -> None:
    found = measure_support(random_model, positions=40, lengths=(2, 128), kinds=("random", "self"))
    assert [(step.value, step.seen.samples) for step in found.growth if step.what == "length"] == [
        (2, 2 * 2),
        (128, 2 * 128),
    ]


@pytest.fixture(scope="module")
def verse() -> LoadedModel:
    return load("builtin:verse")


def test_files_of_text_and_of_ids_are_measured(verse, tmp_path: Path) -> None:
    words, ids = tmp_path / "words.txt", tmp_path / "ids.txt"
    words.write_text("the sea and the sky " * 60)
    text = verse.encode(words.read_text())
    rows = verse.plain_ids[np.arange(64).reshape(4, 16) % len(verse.plain_ids)]
    ids.write_text("\n".join(" ".join(map(str, row)) for row in rows))
    for kind, prompts in ((f"text:{words}", text[: 4 * 16].reshape(4, 16)), (f"ids:{ids}", rows)):
        found = measure_support(verse, positions=64, lengths=(16,), kinds=(kind,))
        with torch.no_grad():
            vectors = verse.input_vectors(torch.from_numpy(prompts))
            states = verse.hidden(vectors).flatten(0, 1).double().numpy()
        assert found.seen.samples == 64
        np.testing.assert_allclose(found.seen.low, states.min(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.seen.high, states.max(0), rtol=1e-5, atol=1e-6)
        facts = saved_support(verse, found, ends_at="asked").facts
        assert facts["kinds"] == [f"{kind.partition(':')[0]}:{Path(kind).name}"]
        assert str(tmp_path) not in str(facts)


def test_a_text_too_short_is_refused(verse, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("the sea")
    with pytest.raises(InputError, match="a text of at least 4 x 16"):
        measure_support(verse, positions=64, lengths=(16,), kinds=(f"text:{tmp_path / 'short.txt'}",))


@pytest.fixture
def saved(random_model, found):
    return saved_support(random_model, found, ends_at="asked")


def test_a_support_file_gives_back_what_was_measured(saved, tmp_path: Path, random_model) -> None:
    write_support(tmp_path / "new" / "s.safetensors", saved)
    back = read_support(tmp_path / "new" / "s.safetensors")
    assert back.facts == saved.facts
    assert back.facts["fingerprint"] == random_model.facts.fingerprint
    np.testing.assert_array_equal(back.low, saved.low)
    gain = random_model.final_norm.gain
    back.check(name="x", width=64, gain=gain, fingerprint=random_model.facts.fingerprint)


def test_a_file_of_another_model_is_refused(saved, random_model) -> None:
    gain = random_model.final_norm.gain
    other = load(tiny("llama"))
    with pytest.raises(InputError, match="width 64"):
        saved.check(name="x", width=32, gain=other.final_norm.gain)
    with pytest.raises(InputError, match="final norm"):
        saved.check(name="x", width=64, gain=gain + 0.1)
    with pytest.raises(InputError, match="other weights"):
        saved.check(name="x", width=64, gain=gain, fingerprint="0" * 16)


def test_files_that_are_none_are_refused(saved, tmp_path: Path) -> None:
    whole = tmp_path / "s.safetensors"
    write_support(whole, saved)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(whole.read_bytes()[:-5])
    text = tmp_path / "text.safetensors"
    text.write_text("words")
    for path in (cut, text, tmp_path / "none"):
        with pytest.raises(InputError, match="support file") as raised:
            read_support(path)
        assert "\n" not in str(raised.value)
    with pytest.raises(OutputError, match="--out"):
        write_support(text / "s.safetensors", saved)
