"""What a model is called, and what is said of folders and files that are no model."""

import json
from pathlib import Path

import pytest
from transformers import BertConfig, CLIPConfig, T5Config, WhisperConfig

from lmreach.errors import ModelError
from lmreach.models.load import load
from lmreach.models.partial import read_parts
from lmreach.models.resolve import find
from lmreach.models.tiny import tiny

HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny("llama").save_pretrained(tmp_path / "whole")
    return tmp_path / "whole"


@pytest.fixture
def cached(folder: Path, tmp_path: Path) -> Path:
    """A model as the hub library keeps it: files in blobs, links to them in a snapshot."""
    repository = tmp_path / "models--org--tiny-1.0"
    snapshot = repository / "snapshots" / HASH
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for k, file in enumerate(sorted(folder.iterdir())):
        blob = repository / "blobs" / f"blob{k}"
        file.rename(blob)
        (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    return repository


def said_of(path: Path) -> str:
    messages = []
    for reader in (load, read_parts):
        with pytest.raises(ModelError) as raised:
            reader(path)
        messages.append(str(raised.value))
        assert "\n" not in messages[-1]
    assert messages[0] == messages[1]
    return messages[0]


def test_a_snapshot_is_named_by_its_model_and_commit(cached: Path) -> None:
    facts = load(cached / "snapshots" / HASH).facts
    assert (facts.name, facts.revision) == ("org/tiny-1.0", HASH)


def test_a_repository_of_the_cache_is_its_main_branch(cached: Path) -> None:
    assert load(cached).facts.name == "org/tiny-1.0"
    other = cached / "snapshots" / HASH[::-1]
    other.mkdir()
    with pytest.raises(ModelError, match=f"one snapshot.*2 in models--org--tiny.*give one of {HASH}"):
        find(cached)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(HASH)
    assert find(cached).revision == HASH


def test_a_link_to_a_file_that_is_gone_is_named(cached: Path) -> None:
    link = cached / "snapshots" / HASH / "model.safetensors"
    link.resolve().unlink()
    assert f"model.safetensors in {HASH}, a link to a file that is gone" in said_of(cached)
    lost = cached.parent / "a.gguf"
    lost.symlink_to("nowhere")
    with pytest.raises(ModelError, match="a link to nowhere, which is gone"):
        find(lost)


def adapter(folder: Path, kind: str = "LORA") -> None:
    folder.mkdir(exist_ok=True)
    facts = {"peft_type": kind, "base_model_name_or_path": "org/base"}
    (folder / "adapter_config.json").write_text(json.dumps(facts))


def test_adapters_are_told_from_models(folder: Path, tmp_path: Path) -> None:
    adapter(tmp_path / "lora")
    assert "lora, a LORA adapter of org/base; merge it" in said_of(tmp_path / "lora")
    adapter(tmp_path / "prompt", "PROMPT_TUNING")
    assert "lmreach judge prompt org/base" in said_of(tmp_path / "prompt")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (T5Config(architectures=["T5ForConditionalGeneration"]), "a t5 (T5ForConditionalGeneration)"),
        (CLIPConfig(), "a clip"),
        (WhisperConfig(architectures=["WhisperForConditionalGeneration"]), "a whisper"),
        (BertConfig(architectures=["BertForMaskedLM"]), "a bert (BertForMaskedLM)"),
    ],
)
def test_other_models_are_named_for_what_they_are(folder: Path, settings, said: str) -> None:
    settings.save_pretrained(folder)
    message = said_of(folder)
    assert message.startswith("expected a causal language model")
    assert said in message


def test_folders_of_other_things(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "model.Q4.gguf").write_bytes(b"GGUF")
    assert f"give e.g. {files / 'model.Q4.gguf'}" in said_of(files)
    diffusion = tmp_path / "diffusion"
    diffusion.mkdir()
    (diffusion / "model_index.json").write_text("{}")
    assert "a diffusion pipeline" in said_of(diffusion)
