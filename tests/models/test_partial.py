"""Parts read without the layers equal those of the whole model, and cost no more memory than they are."""

import json
import subprocess
import sys

import numpy as np
import pytest

from lmreach.models import partial
from lmreach.models.load import load
from lmreach.models.partial import read_parts, whole_parts
from lmreach.models.tiny import FAMILIES, tiny, tiny_tokenizer
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


@pytest.mark.parametrize("name", ["builtin:random"])
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
        raise partial._NeedsWhole("of a test")

    monkeypatch.setattr(partial, "_load_norm", fail)
    parts = read_parts(tmp_path / "m")
    assert parts.notes[-1] == "the whole model was loaded: of a test"
    assert parts.fingerprint is not None
    same(parts, whole_parts(load(tmp_path / "m")))


WIDTH, ROWS, LAYERS = 4096, 32000, 32
MEASURE = """
import resource, sys, torch
torch.set_num_threads(1)
import lmreach.models.partial as partial
from transformers import LlamaForCausalLM
def peak():  # VmHWM, since ru_maxrss of a child starts at its parent's
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM")) * 1024
before = peak()
parts = partial.read_parts(sys.argv[1])
print(peak() - before, parts.usable, parts.final_norm.kind, parts.fingerprint, float(parts.high.max()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_of_7_billion_parameters_only_the_needed_are_read(tmp_path):
    """Two sparse shards of a 7B Llama: 13 GB by their headers, a few MB on disk."""
    settings = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": WIDTH,
        "intermediate_size": 11008,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "num_hidden_layers": LAYERS,
        "vocab_size": ROWS,
        "max_position_embeddings": 4096,
    }
    (tmp_path / "config.json").write_text(json.dumps(settings))
    layer = {f"self_attn.{k}_proj": (WIDTH, WIDTH) for k in "qkvo"}
    layer |= {f"mlp.{k}_proj": (11008, WIDTH) for k in ("gate", "up")} | {"mlp.down_proj": (WIDTH, 11008)}
    layer |= {"input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}
    layers = {f"model.layers.{i}.{k}.weight": shape for i in range(LAYERS) for k, shape in layer.items()}
    ends = {"model.embed_tokens.weight": (ROWS, WIDTH), "model.norm.weight": (WIDTH,)}
    ends["lm_head.weight"] = (ROWS, WIDTH)
    half = len(layers) // 2
    names = list(layers)
    shards = {
        "model-1.safetensors": {k: layers[k] for k in names[:half]},
        "model-2.safetensors": {k: layers[k] for k in names[half:]} | ends,
    }
    sizes = {file: write_sparse(tmp_path / file, tensors) for file, tensors in shards.items()}
    assert sum(sizes.values()) > 13e9
    index = {name: file for file, tensors in shards.items() for name in tensors}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown, usable, kind, fingerprint, top = done.stdout.split()
    needed = 2 * (2 * ROWS * WIDTH + WIDTH)
    assert (usable, kind, fingerprint, float(top)) == (str(ROWS), "rms", "None", 0.5)
    assert int(grown) < 1.5 * needed, f"{int(grown) / needed:.2f} times what is needed"


def write_sparse(path, tensors):
    """Write a safetensors file of bfloat16 zeros, with a gain of 1 and one row of 0.5 in the table."""
    header, end = {}, 0
    for name, shape in tensors.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
        for name, bits in (("model.norm.weight", 0x3F80), ("model.embed_tokens.weight", 0x3F00)):
            if name in header:
                file.seek(8 + len(text) + header[name]["data_offsets"][0])
                file.write(np.full(WIDTH, bits, dtype="<u2").tobytes())
    return 8 + len(text) + end
