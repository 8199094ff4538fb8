"""The copy that steps are taken on: same function, own weights or shared ones, and the choice is recorded."""

import pytest
import torch

from lmreach.errors import InputError
from lmreach.models import search_copy as module
from lmreach.models.fingerprint import fingerprint
from lmreach.models.load import load
from lmreach.models.search_copy import search_copy, twin
from lmreach.models.tiny import FAMILIES, tiny


def some_logits(model) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    vectors = model.input_rms * torch.randn(2, 7, model.facts.width, generator=generator)
    return model.logits(vectors)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_twin_in_bfloat16_is_the_same_function_up_to_its_rounding(family: str) -> None:
    model = load(tiny(family))
    before = fingerprint(model.model)
    kernel = "eager" if family != "mamba" else None
    other = twin(model, torch.bfloat16, kernel)
    exact, rough = some_logits(model), some_logits(other)
    assert other.dtype == torch.bfloat16
    assert model.dtype == torch.float32
    assert fingerprint(model.model) == before
    scale = exact.abs().max()
    assert float((exact - rough).abs().max() / scale) < 0.1
    assert float((exact - rough).abs().max()) > 0


def test_a_twin_in_the_same_format_shares_its_weights_but_not_its_settings() -> None:
    model = load(tiny("llama"))
    kernel = model.model.config._attn_implementation
    other = twin(model, torch.float32, "eager")
    assert other.wiring.embed.weight.data_ptr() == model.wiring.embed.weight.data_ptr()
    assert model.model.config._attn_implementation == kernel
    assert other.model.config._attn_implementation == "eager"
    torch.testing.assert_close(some_logits(other), some_logits(model), rtol=1e-4, atol=1e-5)


def test_rotary_frequencies_keep_their_format() -> None:
    model = load(tiny("llama"))
    other = twin(model, torch.bfloat16)
    own = dict(model.model.named_buffers())
    for name, buffer in other.model.named_buffers():
        assert torch.equal(buffer, own[name])


def test_tied_weights_stay_tied() -> None:
    other = twin(load(tiny("qwen2")), torch.bfloat16)
    assert other.head_weight.data_ptr() == other.wiring.embed.weight.data_ptr()


@pytest.mark.parametrize(("narrow", "chosen"), [(0.5, "bfloat16"), (0.9, "float32"), (2.0, "float32")])
def test_only_a_clearly_faster_format_is_taken(
    narrow: float, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(tiny("llama"))
    monkeypatch.setattr(module, "step_seconds", lambda one: narrow if one.dtype == torch.bfloat16 else 1.0)
    monkeypatch.setattr(module, "_multiplies_faster", lambda _model: True)
    found = search_copy(model)
    assert found.dtype == chosen
    assert set(found.seconds) == {"float32 sdpa", "float32 eager", "bfloat16 sdpa", "bfloat16 eager"}
    assert (found.model is model) == (chosen == "float32")


@pytest.mark.parametrize(("bfloat16", "tried"), [(0.5, True), (2.0, False)])
def test_a_format_that_multiplies_no_faster_is_not_tried(
    bfloat16: float, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(tiny("llama"))
    monkeypatch.setattr(module, "step_seconds", lambda _one: 1.0)
    monkeypatch.setattr(
        module, "_product_seconds", lambda rows, _: bfloat16 if rows.dtype == torch.bfloat16 else 1.0
    )
    found = search_copy(model)
    assert ("bfloat16 sdpa" in found.seconds) == tried
    assert found.dtype == "float32"


@pytest.mark.parametrize(("eager", "chosen"), [(0.5, "eager"), (0.95, "sdpa")])
def test_only_a_clearly_faster_kernel_is_taken(
    eager: float, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretended(one) -> float:
        return eager if one.model.config._attn_implementation == "eager" else 1.0

    monkeypatch.setattr(module, "step_seconds", pretended)
    assert search_copy(load(tiny("llama")), "float32").attention == chosen


def test_what_a_family_does_not_know_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mamba 2 has one kernel; the code of others mixes formats that do not go together."""
    model = load(tiny("llama"))

    def one_kernel(self, name: str) -> None:
        raise ValueError(f"no support for {name}")

    def one_format(one) -> float:
        if one.dtype != torch.float32:
            raise RuntimeError("expected m1 and m2 to have the same dtype")
        return 1.0

    monkeypatch.setattr(type(model.model), "set_attn_implementation", one_kernel)
    monkeypatch.setattr(module, "_multiplies_faster", lambda _model: True)
    monkeypatch.setattr(module, "step_seconds", one_format)
    found = search_copy(model)
    assert found.model is model
    assert set(found.seconds) == {"float32 sdpa"}
    with pytest.raises(InputError, match=r"a format for --search-dtype that .* runs in; got bfloat16"):
        search_copy(model, "bfloat16")


def test_a_quick_model_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two equal runs would differ by what the clock said."""
    model = load(tiny("llama"))
    monkeypatch.setattr(module, "step_seconds", lambda _one: 0.01)
    assert search_copy(model).model is model


def test_a_format_that_was_asked_for_is_taken_and_no_other_is_timed() -> None:
    found = search_copy(load(tiny("llama")), "bfloat16")
    assert found.dtype == "bfloat16"
    assert all(name.startswith("bfloat16") for name in found.seconds)


def test_no_copy_where_there_is_no_memory_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_bytes", lambda _device: 0)
    monkeypatch.setattr(module, "_multiplies_faster", lambda _model: True)
    monkeypatch.setattr(module, "step_seconds", lambda one: 0.1 if one.dtype == torch.bfloat16 else 1.0)
    assert search_copy(load(tiny("llama"))).dtype == "float32"


def test_a_busy_machine_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock on the wall says: a step of a tiny model is quick, and nothing is chosen."""
    monkeypatch.setattr(module.time, "perf_counter", iter(range(1000)).__next__)
    model = load(tiny("llama"))
    found = search_copy(model)
    assert found.model is model
    assert max(found.seconds.values()) < 0.05 < module.step_wall_seconds(model)
