"""One name for a model: the weights, and every setting that a logit depends on."""

import copy
import json
import math

import pytest
import torch
from torch import nn

from lmreach.errors import OutputError
from lmreach.identity import require_same, same_model, weights_of
from lmreach.models.fingerprint import fingerprint, settings_of, weights_fingerprint
from lmreach.models.tiny import tiny

# A value of each setting that changes the logits of a family while every weight stays what it is.
CHANGES = [
    ("llama", {"rms_norm_eps": 0.5}),
    ("llama", {"hidden_act": "relu"}),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}),
    ("gemma2", {"final_logit_softcapping": 2.0}),
    ("gemma2", {"query_pre_attn_scalar": 1}),
    ("gpt2", {"scale_attn_weights": False}),
    ("mistral", {"sliding_window": 2}),
]
IDS = torch.tensor([[1, 5, 2, 9, 3, 7, 4, 8]])


def rebuilt(model: nn.Module, changes: dict[str, object]) -> nn.Module:
    """Return a model of the same weights under another config."""
    config = copy.deepcopy(model.config)
    for name, value in changes.items():
        setattr(config, name, value)
    other = type(model)(config).eval()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize(("family", "changes"), CHANGES, ids=lambda value: str(value)[:40])
def test_a_setting_that_changes_logits_changes_the_name(family: str, changes: dict[str, object]) -> None:
    model = tiny(family)
    other = rebuilt(model, changes)
    with torch.no_grad():
        assert not torch.equal(model(IDS).logits, other(IDS).logits), "the example changes something"
    assert weights_fingerprint(model) == weights_fingerprint(other)
    assert fingerprint(model) != fingerprint(other)
    assert weights_of(fingerprint(model)) == weights_fingerprint(model)
    assert not same_model(fingerprint(model), fingerprint(other))


def test_what_no_logit_depends_on_changes_nothing() -> None:
    model = tiny("llama")
    other = rebuilt(model, {"use_cache": False, "eos_token_id": 5, "_name_or_path": "/home/me", "new": False})
    assert fingerprint(other) == fingerprint(model)
    assert "/home/me" not in str(settings_of(other))


def test_settings_without_an_end_can_be_kept() -> None:
    """As Mamba 2, Bamba and others have them."""
    model = tiny("llama")
    endless, ended = (rebuilt(model, {"time_step_limit": (0.0, end)}) for end in (math.inf, 1.0))
    kept = settings_of(endless)
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    assert kept["time_step_limit"] == [0.0, "inf"]
    assert len({fingerprint(one) for one in (model, endless, ended)}) == 3


def test_older_names_know_the_weights_alone() -> None:
    name = fingerprint(tiny("llama"))
    weights, settings = name.split("-")
    assert (len(weights), len(settings)) == (16, 8)
    assert same_model(weights, name)
    assert "weights alone" in (require_same(weights, name, where="the run", remedy="x") or "")
    assert require_same(name, name, where="the run", remedy="x") is None
    assert require_same(None, name, where="the run", remedy="x") is None
    with pytest.raises(OutputError, match=r"config\.json: eps \(2 instead of 1\)"):
        require_same(name, f"{weights}-00000000", where="x", remedy="x", difference="eps (2 instead of 1)")
    with pytest.raises(OutputError, match="weights"):
        require_same("0" * 16, name, where="the run", remedy="x")
