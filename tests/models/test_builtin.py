"""Built-in models, and the names a user may give."""

import pytest

from lmreach.config import LoadConfig
from lmreach.errors import InputError, ModelError
from lmreach.models import builtin
from lmreach.models.builtin import random_model
from lmreach.models.fingerprint import fingerprint
from lmreach.models.load import load
from lmreach.models.tiny import tiny

FIRST = [-0.110448793, 0.111025989, -0.216498137]  # numpy's PCG64 from the stated seed, times 0.3


def test_the_random_model_is_the_same_everywhere():
    facts = load("builtin:random").facts
    assert (facts.name, facts.family, facts.width, facts.layers, facts.rows) == (
        "builtin:random",
        "gpt_neox",
        64,
        2,
        512,
    )
    weight = random_model().gpt_neox.embed_in.weight
    assert weight[0, :3].tolist() == pytest.approx(FIRST, rel=1e-6)
    assert (facts.bos_id, facts.special_ids, facts.usable) == (None, (), 512)


def test_the_random_models_matrices_have_the_stated_spread():
    weight = random_model().gpt_neox.embed_in.weight
    assert float(weight.detach().std()) == pytest.approx(
        0.3, rel=0.02
    )  # 32,768 numbers: standard error 0.4 %
    assert fingerprint(random_model(1)) != fingerprint(random_model(2))


def test_the_random_model_takes_a_dtype():
    loaded = load("builtin:random", LoadConfig(dtype="bfloat16"))
    assert (loaded.facts.dtype, loaded.facts.stored_dtype) == ("bfloat16", "float32")


def test_an_unknown_built_in_lists_those_that_exist():
    with pytest.raises(ModelError, match="one of builtin:verse, builtin:random; got builtin:prose"):
        load("builtin:prose")


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match="a device torch can use here; got warp"):
        load("builtin:random", LoadConfig(device="warp"))


def test_an_unknown_tiny_family_is_refused():
    with pytest.raises(InputError, match="one of gpt_neox, llama"):
        tiny("perceptron")


def test_the_shipped_model_is_a_folder_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(builtin, "_VERSE", tmp_path / "verse")
    with pytest.raises(ModelError, match="install the package again"):
        load("builtin:verse")
    tiny("gpt_neox").save_pretrained(tmp_path / "verse")
    assert load("builtin:verse").facts.name == "builtin:verse"
