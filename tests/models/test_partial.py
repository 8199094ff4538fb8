"""Parts read without the layers equal those of the whole model, and cost no more memory than they are."""

import sys

import numpy as np
import pytest

from lmreach.errors import ModelError
from lmreach.models import partial
from lmreach.models.load import load
from lmreach.models.partial import read_parts, whole_parts
from lmreach.models.stored import NeedsWhole
from lmreach.models.tiny import FAMILIES, tiny, tiny_tokenizer
from tests.models.every_family import build
from tests.models.sparse import ROWS, read_cost, write_llama_7b
from tests.models.test_gguf import write_gguf


def same(light, whole):
    assert (light.name, light.width, light.hidden_width) == (whole.name, whole.width, whole.hidden_width)
    assert (light.rows, light.usable) == (whole.rows, whole.usable)
    assert light.final_norm.kind == whole.final_norm.kind
    np.testing.assert_allclose(light.final_norm.gain, whole.final_norm.gain, rtol=1e-5)
    np.testing.assert_allclose(light.final_norm.bias, whole.final_norm.bias, atol=1e-5)
    np.testing.assert_allclose(light.low, whole.low, rtol=1e-6)
    np.testing.assert_allclose(light.high, whole.high, rtol=1e-6)


@pytest.mark.parametrize("shard", ["5GB", "40KB"])
@pytest.mark.parametrize("family", FAMILIES)
def test_parts_are_those_of_the_whole(family, shard, tmp_path):
    tiny(family).save_pretrained(tmp_path / "m", max_shard_size=shard)
    tiny_tokenizer(60).save_pretrained(tmp_path / "m")
    light = read_parts(tmp_path / "m")
    assert light.fingerprint is None, light.notes
    same(light, whole_parts(load(tmp_path / "m")))
    assert light.usable < 64


@pytest.mark.parametrize("name", ["builtin:random", "builtin:verse"])
def test_builtins(name):
    same(read_parts(name), whole_parts(load(name)))


def test_gguf_before_and_after_it_was_converted(tmp_path, monkeypatch):
    monkeypatch.setenv("LMREACH_CACHE", str(tmp_path / "cache"))
    write_gguf(tmp_path / "tiny.gguf", tiny("qwen2", rms_norm_eps=1e-6))
    before = read_parts(tmp_path / "tiny.gguf")
    assert before.fingerprint is None, before.notes
    assert not (tmp_path / "cache").exists()
    whole = whole_parts(load(tmp_path / "tiny.gguf"))
    same(before, whole)
    same(read_parts(tmp_path / "tiny.gguf"), whole)


def test_what_cannot_be_read_in_part_is_loaded_whole_and_said(tmp_path, monkeypatch):
    tiny("llama").save_pretrained(tmp_path / "m")

    def fail(*args):
        raise NeedsWhole("of a test")

    monkeypatch.setattr(partial, "_load_norm", fail)
    parts = read_parts(tmp_path / "m")
    assert parts.notes[-1] == "the whole model was loaded: of a test"
    assert parts.fingerprint is not None
    same(parts, whole_parts(load(tmp_path / "m")))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_of_7_billion_parameters_only_the_needed_are_read(tmp_path):
    assert write_llama_7b(tmp_path) > 13e9
    cost = read_cost(tmp_path)
    assert cost.found == (str(ROWS), "rms", "None", "0.5")
    assert cost.grown < 1.5 * cost.needed, f"{cost.grown / cost.needed:.2f} times what is needed"


@pytest.mark.parametrize("family", ["modernbert-decoder", "rwkv"])
def test_a_config_that_cannot_be_cut_down_costs_a_note_at_most(family, tmp_path):
    """One has a padding id that must be a number, one divides by its number of blocks less one."""
    build(family).save_pretrained(tmp_path / "m")
    same(read_parts(tmp_path / "m"), whole_parts(load(tmp_path / "m")))


@pytest.mark.parametrize("family", ["gemma4_text", "prophetnet"])
def test_a_family_that_cannot_be_measured_is_refused_here_too(family, tmp_path):
    build(family).save_pretrained(tmp_path / "m")
    with pytest.raises(ModelError, match=r"check '.*' failed"):
        read_parts(tmp_path / "m")
