"""A Llama of 7B parameters in two sparse shards, and what reading its parts costs in memory."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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


@dataclass(frozen=True)
class Cost:
    """Bytes that reading the parts added to the peak, bytes of the parts, and what came out."""

    grown: int
    needed: int
    found: tuple[str, ...]


def read_cost(folder: Path) -> Cost:
    """Read the parts in a fresh process; needed are head, token table and final norm."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    grown, *found = done.stdout.split()
    return Cost(int(grown), 2 * (2 * ROWS * WIDTH + WIDTH), tuple(found))


def write_llama_7b(folder: Path) -> int:
    """Write 13 GB by the headers, a few MB on disk; return the bytes of the two shards."""
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
    (folder / "config.json").write_text(json.dumps(settings))
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
    sizes = {file: write_sparse(folder / file, tensors) for file, tensors in shards.items()}
    index = {name: file for file, tensors in shards.items() for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return sum(sizes.values())


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
