"""GGUF files: converted once into a cache, whole or refused, a tied head supplied."""

import json

import pytest
import torch

from lmreach.config import LoadConfig
from lmreach.errors import ModelError
from lmreach.models import cache, gguf_file
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.tiny import tiny
from tests.models.common import random_vectors
from tests.models.gguf_writing import write_gguf


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LMREACH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model():
    return tiny("qwen2", rms_norm_eps=1e-6)


@pytest.fixture
def file(tmp_path, model):
    write_gguf(tmp_path / "tiny.gguf", model)
    return tmp_path / "tiny.gguf"


def test_a_file_is_converted_once_and_told_where_it_is_kept(file, model, own_cache, monkeypatch, capfd):
    lines = []
    first = load(file, progress=lines.append)
    assert len(lines) == 1
    assert "converting tiny.gguf once" in lines[0]
    assert str(own_cache) in lines[0]
    monkeypatch.setattr(gguf_file, "_convert", lambda *given: pytest.fail("converted again"))
    again = load(file, progress=lines.append)
    assert len(lines) == 1
    assert first.facts == again.facts
    assert (again.facts.name, again.facts.stored_dtype, again.facts.dtype) == (
        "tiny.gguf",
        "gguf F32",
        "float32",
    )
    assert capfd.readouterr() == ("", "")


def test_the_head_absent_from_the_file_is_the_token_table(file, model):
    loaded = load(file)
    assert loaded.facts.tied_head
    assert torch.equal(loaded.head_weight, model.model.embed_tokens.weight)
    vectors = random_vectors(loaded, 1, 5)
    with torch.no_grad():
        torch.testing.assert_close(loaded.logits(vectors), model.eval()(inputs_embeds=vectors).logits)
    assert loaded.text(loaded.encode("ab")) == "ab"
    assert loaded.facts.special_ids == (0, 1)


def test_the_dtype_asked_for_is_used(file):
    facts = load(file, LoadConfig(dtype="bfloat16")).facts
    assert (facts.dtype, facts.stored_dtype) == ("bfloat16", "gguf F32")


def test_a_missing_tensor_is_named(tmp_path, model):
    write_gguf(tmp_path / "short.gguf", model, without=("blk.1.ffn_up.weight",))
    with pytest.raises(ModelError, match=r"model\.layers\.1\.mlp\.up_proj\.weight"):
        load(tmp_path / "short.gguf")
    assert cache.entries() == []


@pytest.mark.parametrize("keep", [-100, 2000, 30, 5])
def test_a_file_cut_short_is_refused(file, keep, monkeypatch):
    file.write_bytes(file.read_bytes()[:keep])
    monkeypatch.setattr(gguf_file, "_convert", lambda *given: pytest.fail("converted"))
    with pytest.raises(
        ModelError, match=r"expected a whole GGUF file tiny\.gguf; got .*; fetch or copy"
    ) as raised:
        load(file)
    assert "\n" not in str(raised.value)


def test_a_file_that_would_not_fit_is_refused(file, monkeypatch):
    monkeypatch.setattr(gguf_file.memory, "available_bytes", lambda device: 1000)
    with pytest.raises(ModelError, match=r"memory for converting tiny\.gguf"):
        load(file)


def test_without_room_for_the_cache_the_model_loads_with_a_note(file, own_cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(gguf_file, "_save", full)
        loaded = load(file)
    assert any("not kept" in note and "No space left" in note for note in loaded.facts.notes)
    assert list((own_cache / "models").iterdir()) == []
    vectors = random_vectors(loaded, 3)
    assert greedy(load(file), vectors, 6).ids.tolist() == greedy(loaded, vectors, 6).ids.tolist()


def test_a_cache_that_is_a_file_is_worked_around(file, own_cache):
    own_cache.write_text("in the way")
    assert any("not kept" in note for note in load(file).facts.notes)


def test_a_damaged_entry_is_made_again(file):
    load(file)
    weights = cache.entries()[0].folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    lines = []
    assert load(file, progress=lines.append).facts.cache_ok
    assert len(lines) == 1


def test_entries_are_listed_and_cleared(file, own_cache):
    assert (cache.entries(), cache.clear()) == ([], 0)
    load(file)
    (entry,) = cache.entries()
    assert (entry.name, entry.stored_dtype) == ("tiny.gguf", "F32")
    assert entry.size == sum(p.stat().st_size for p in entry.folder.iterdir())
    assert entry.folder == cache.folder_of(entry.sha256)
    assert json.dumps(cache.as_rows())
    assert cache.clear() == entry.size
    assert cache.entries() == []


def test_a_conversion_that_stops_leaves_nothing(own_cache):
    def interrupted(folder):
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.store("ab" * 32, "x.gguf", "F32", interrupted)
    assert list((own_cache / "models").iterdir()) == []


def test_two_conversions_at_once_keep_the_first(own_cache):
    def write(text):
        return lambda folder: (folder / "config.json").write_text(text)

    first = cache.store("ab" * 32, "x.gguf", "F32", write("one"))
    second = cache.store("ab" * 32, "x.gguf", "F32", write("two"))
    assert first.folder == second.folder
    assert (first.folder / "config.json").read_text() == "one"
    assert [p.name for p in (own_cache / "models").iterdir()] == [first.folder.name]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LMREACH_CACHE": "/a/own"}, "/a/own"),
        ({"XDG_CACHE_HOME": "/a/xdg"}, "/a/xdg/lmreach"),
        ({"HOME": "/a/home"}, "/a/home/.cache/lmreach"),
    ],
)
def test_the_cache_is_where_the_system_says(monkeypatch, variables, expected):
    for name in ("LMREACH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache.root()) == expected
