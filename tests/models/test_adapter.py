"""An adapter beside the weights of its model is part of what is measured, and said; never passed over."""

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PromptTuningConfig, get_peft_model

from lmreach.errors import ModelError
from lmreach.models import adapter
from lmreach.models.load import load
from lmreach.models.partial import read_parts, whole_parts
from lmreach.models.tiny import tiny

# What the library says of adapters of heads when it saves them.
pytestmark = pytest.mark.filterwarnings("ignore:Setting `save_emb", "ignore:Model has `tie_word")

IDS = torch.tensor([[3, 9, 60, 11]])


def beside(folder: Path, settings: LoraConfig | PromptTuningConfig) -> torch.Tensor:
    """Save a model and an adapter of it in one folder; return the logits of the two together."""
    tiny("llama").save_pretrained(folder)
    torch.manual_seed(0)
    both = get_peft_model(tiny("llama"), settings)
    both.save_pretrained(folder)
    with torch.no_grad():
        return both.eval()(input_ids=IDS).logits


def lora(**more: object) -> LoraConfig:
    return LoraConfig(r=2, init_lora_weights=False, task_type="CAUSAL_LM", **more)


@pytest.mark.parametrize(
    "settings",
    [
        lora(target_modules=["q_proj", "down_proj"]),
        lora(target_modules=["v_proj", "lm_head"], use_rslora=True),
        lora(target_modules=["o_proj"], modules_to_save=["lm_head"], use_dora=True),
    ],
    ids=["blocks", "head", "whole head"],
)
def test_the_two_are_measured_as_one(tmp_path: Path, settings: LoraConfig) -> None:
    expected = beside(tmp_path / "m", settings)
    base, loaded = load(tiny("llama")), load(tmp_path / "m")
    with torch.no_grad():
        logits = loaded.logits(loaded.input_vectors(IDS))
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
        assert not torch.allclose(logits, base.logits(base.input_vectors(IDS)), atol=1e-2)
        state = torch.randn(5, loaded.facts.hidden_width)
        torch.testing.assert_close(
            state @ loaded.head_weight.T, loaded.head_logits(state), atol=1e-4, rtol=1e-4
        )
    assert loaded.facts.fingerprint != base.facts.fingerprint
    assert loaded.facts.parameters == base.facts.parameters
    assert "with the LORA adapter that lies beside its weights, merged into them" in loaded.facts.notes
    parts = read_parts(tmp_path / "m")
    assert "the whole model was loaded: an adapter lies beside its weights" in parts.notes
    assert parts.fingerprint == whole_parts(loaded).fingerprint


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    """With a tied table, what is added to the head would be added to the inputs, too."""
    folder = tmp_path / "tied"
    tiny("qwen2").save_pretrained(folder)
    get_peft_model(tiny("qwen2"), lora(target_modules=["lm_head"])).save_pretrained(folder)
    with pytest.raises(ModelError, match=r"can be merged .* the LORA adapter of tied is merged; merge it"):
        load(folder)


def test_without_the_library_it_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside(tmp_path / "m", lora(target_modules=["q_proj"]))
    monkeypatch.setattr(adapter.importlib.util, "find_spec", lambda name: None)
    for reader in (load, read_parts):
        with pytest.raises(ModelError, match=r"expected peft, .* got m with both .* a LORA adapter, and"):
            reader(tmp_path / "m")


def test_prompt_vectors_beside_a_model_are_judged_instead(tmp_path: Path) -> None:
    beside(tmp_path / "m", PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3))
    assert json.loads((tmp_path / "m" / "adapter_config.json").read_text())["peft_type"] == "PROMPT_TUNING"
    for reader in (load, read_parts):
        with pytest.raises(ModelError, match="PROMPT_TUNING adapter; judge its vectors"):
            reader(tmp_path / "m")
