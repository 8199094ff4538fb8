"""A folder is a whole checkpoint or an error that names what is wrong; nothing is ever filled up."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from lmreach.config import LoadConfig
from lmreach.errors import ModelError
from lmreach.models import checkpoint, folder, memory
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer
from tests.models.common import random_vectors


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A Llama in two shards."""
    place = tmp_path_factory.mktemp("models") / "sharded"
    tiny("llama").save_pretrained(place, max_shard_size="70KB")
    assert len(list(place.glob("model-*.safetensors"))) == 2
    return place


@pytest.fixture
def sharded(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "sharded")


@pytest.fixture
def forward_is_forbidden(monkeypatch):
    monkeypatch.setattr("lmreach.models.load.probe", lambda *a: pytest.fail("something was computed"))


def second(place):
    return sorted(place.glob("model-*.safetensors"))[1]


def index(place):
    return place / "model.safetensors.index.json"


def test_a_whole_sharded_folder_loads(sharded):
    assert load(sharded).facts.fingerprint == load(tiny("llama")).facts.fingerprint


def test_a_setting_of_the_wrong_kind_is_named(sharded, forward_is_forbidden):
    config = json.loads((sharded / "config.json").read_text())
    (sharded / "config.json").write_text(json.dumps({**config, "hidden_size": "wide"}))
    with pytest.raises(ModelError, match=r"field 'hidden_size': .*'wide'") as refused:
        load(sharded)
    assert "\n" not in str(refused.value)


def test_a_deleted_shard_is_named(sharded, forward_is_forbidden):
    second(sharded).unlink()
    with pytest.raises(ModelError, match=r"all 2 shards.*got no model-00002-of-00002\.safetensors"):
        load(sharded)


@pytest.mark.parametrize("keep", [-100, 4, 100, 0])
def test_a_shard_cut_short_is_named(sharded, forward_is_forbidden, keep):
    data = second(sharded).read_bytes()
    second(sharded).write_bytes(data[:keep])
    with pytest.raises(
        ModelError, match=r"whole safetensors file model-00002-of-00002\.safetensors; got \d+ bytes"
    ):
        load(sharded)


def test_a_shard_with_extra_bytes_is_named(sharded, forward_is_forbidden):
    with second(sharded).open("ab") as file:
        file.write(b"\0" * 10)
    with pytest.raises(ModelError, match="where the header says"):
        load(sharded)


def test_a_tensor_taken_out_of_the_index_is_named(sharded, forward_is_forbidden):
    content = json.loads(index(sharded).read_text())
    del content["weight_map"]["model.norm.weight"]
    index(sharded).write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"model\.norm\.weight is not listed"):
        load(sharded)


def test_a_tensor_the_index_promises_in_vain_is_named(sharded, forward_is_forbidden):
    content = json.loads(index(sharded).read_text())
    content["weight_map"]["model.extra.weight"] = second(sharded).name
    index(sharded).write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"tensor model\.extra\.weight in model-00002"):
        load(sharded)


def _single(tmp_path, change):
    place = tmp_path / "single"
    tiny("llama").save_pretrained(place)
    tensors = load_file(place / "model.safetensors")
    change(tensors)
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    return place


def test_a_weight_that_would_be_newly_initialised_is_named(tmp_path, forward_is_forbidden):
    place = _single(tmp_path, lambda t: t.pop("model.layers.1.mlp.up_proj.weight"))
    with pytest.raises(ModelError, match=r"1 missing.*model\.layers\.1\.mlp\.up_proj\.weight"):
        load(place)


def test_an_untied_head_that_is_not_there_is_named(tmp_path, forward_is_forbidden):
    with pytest.raises(ModelError, match=r"lm_head\.weight"):
        load(_single(tmp_path, lambda t: t.pop("lm_head.weight")))


def test_a_weight_of_the_wrong_shape_is_refused(tmp_path, forward_is_forbidden):
    place = _single(tmp_path, lambda t: t.update({"model.norm.weight": torch.ones(31)}))
    with pytest.raises(ModelError, match=r"single.*size mismatch|single.*mismatched"):
        load(place)


@pytest.mark.parametrize("key", ["lm_head.bias", "model.layers.2.mlp.up_proj.weight"])
def test_a_stored_weight_without_a_place_in_a_part_that_exists_is_refused(
    tmp_path, forward_is_forbidden, key
):
    with pytest.raises(ModelError, match=f"no place for {key}"):
        load(_single(tmp_path, lambda t: t.update({key: torch.ones(64)})))


def test_a_stored_weight_of_an_unknown_part_is_a_note(tmp_path):
    loaded = load(_single(tmp_path, lambda t: t.update({"vision_tower.weight": torch.ones(4)})))
    assert any("vision_tower.weight" in note for note in loaded.facts.notes)


def test_a_tied_head_need_not_be_stored(tmp_path):
    model = tiny("qwen2")
    model.save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    loaded = load(tmp_path)
    assert loaded.facts.tied_head
    assert torch.equal(loaded.head_weight, model.model.embed_tokens.weight)
    vectors = random_vectors(loaded, 1, 4)
    torch.testing.assert_close(loaded.logits(vectors), model(inputs_embeds=vectors).logits)


@pytest.mark.parametrize(("dtype", "itemsize"), [("float32", 4), ("bfloat16", 2)])
def test_the_dtype_is_the_one_asked_for_whatever_is_stored(tmp_path, dtype, itemsize):
    tiny("llama").to(torch.bfloat16).save_pretrained(tmp_path)
    default, loaded = load(tmp_path), load(tmp_path, LoadConfig(dtype=dtype))
    assert (default.facts.dtype, default.facts.stored_dtype) == ("float32", "bfloat16")
    assert (loaded.facts.dtype, loaded.facts.stored_dtype, loaded.dtype.itemsize) == (
        dtype,
        "bfloat16",
        itemsize,
    )
    assert loaded.input_vectors(torch.tensor([5])).dtype == torch.float32
    assert (loaded.facts.fingerprint == default.facts.fingerprint) == (dtype == "float32")


def test_a_model_too_large_for_the_memory_is_refused_before_it_is_read(sharded, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda device: 10_000)
    monkeypatch.setattr(
        folder.AutoModelForCausalLM, "from_pretrained", lambda *a, **k: pytest.fail("was read")
    )
    with pytest.raises(ModelError, match=r"about 0\.0 GiB of memory for sharded; got 0\.0 GiB free on cpu"):
        load(sharded)


def test_available_memory_is_a_number():
    assert memory.available_bytes(torch.device("cpu")) > 2**20


def test_older_pickle_weights_load_only_if_asked(tmp_path):
    model = tiny("llama")
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin in .*; convert them .*--allow-pickle"):
        load(tmp_path)
    loaded = load(tmp_path, LoadConfig(allow_pickle=True))
    assert loaded.facts.stored_dtype == "unknown"
    assert loaded.facts.fingerprint == load(model).facts.fingerprint


def test_pickle_weights_cut_short_are_refused(tmp_path, forward_is_forbidden):
    model = tiny("llama")
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    data = (tmp_path / "pytorch_model.bin").read_bytes()
    (tmp_path / "pytorch_model.bin").write_bytes(data[:-200])
    with pytest.raises(ModelError):
        load(tmp_path, LoadConfig(allow_pickle=True))


def _drop_weights(place):
    for path in [*place.glob("*.safetensors"), index(place)]:
        path.unlink()


DAMAGE = {
    "no weights": (_drop_weights, "expected weights .* got none in the folder sharded"),
    "no config": (lambda p: (p / "config.json").unlink(), "with config.json .* got no config.json"),
    "empty config": (lambda p: (p / "config.json").write_text(""), "config.json, which is no JSON"),
    "listed config": (lambda p: (p / "config.json").write_text("[]"), "holds no JSON object"),
    "unknown kind": (lambda p: (p / "config.json").write_text('{"model_type": "wat"}'), "sharded: .*wat"),
    "no kind": (lambda p: (p / "config.json").write_text("{}"), "sharded: "),
    "broken index": (lambda p: index(p).write_text("{"), "index.json, which is no JSON"),
    "empty index": (lambda p: index(p).write_text("{}"), "expected a weight_map"),
    "broken tokenizer": (lambda p: (p / "tokenizer.json").write_text("{"), "the tokenizer of sharded"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_every_kind_of_damage_is_one_line(sharded, forward_is_forbidden, kind):
    damage, words = DAMAGE[kind]
    damage(sharded)
    with pytest.raises(ModelError, match=words) as raised:
        load(sharded)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600


def test_files_that_are_no_model_are_one_line(tmp_path):
    (tmp_path / "notes.txt").write_text("no model at all")
    (tmp_path / "empty.gguf").write_bytes(b"")
    for name in ("notes.txt", "empty.gguf"):
        with pytest.raises(ModelError, match=f"the file {name}, which does not begin like a GGUF file"):
            load(tmp_path / name)


def test_an_architecture_that_is_no_language_model_is_refused(tmp_path):
    from transformers import ViTConfig, ViTModel

    small = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8
    )
    ViTModel(small).save_pretrained(tmp_path / "vit")
    with pytest.raises(ModelError, match=r"causal language model .*got vit, a vit"):
        load(tmp_path / "vit")


def test_a_header_is_read_without_the_tensors(sharded):
    entries = checkpoint.header(second(sharded))
    assert entries["model.norm.weight"] == {
        "dtype": "F32",
        "shape": [32],
        "data_offsets": entries["model.norm.weight"]["data_offsets"],
    }


def test_a_tokenizer_beside_the_weights_is_found(tmp_path):
    tiny("llama").save_pretrained(tmp_path)
    tiny_tokenizer(64).save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert loaded.tokenizer is not None
    assert (loaded.facts.bos_id, loaded.facts.special_ids) == (0, (0, 1))
    assert loaded.text(loaded.encode("ab c")) == "ab c"


def test_a_loaded_model_keeps_its_dtype_and_says_so():
    loaded = load(tiny("llama").to(torch.bfloat16).train())
    assert not loaded.model.training
    assert any("keeps its dtype bfloat16" in note for note in loaded.facts.notes)
    assert len(greedy(loaded, random_vectors(loaded, 2), 3).ids) == 3


def test_nothing_is_printed_or_warned(sharded, capfd, recwarn):
    load(sharded)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
