"""Tiny models written as GGUF files, the way llama.cpp's converter writes them."""

import numpy as np
from gguf import GGUFWriter

LETTERS = "abcdefghijklmnopqrstuvwxyzĠ"
RENAMED = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "input_layernorm": "attn_norm",
    "model.layers": "blk",
}
_AFTER_ATTENTION = {"gemma3": "post_attention_norm"}


def write_gguf(path, model, arch="qwen2", *, without=(), entries=None, tensors=None):
    """Write a tiny Llama, Qwen2 or Gemma-3 as GGUF; a tied head is not stored.

    Parameters
    ----------
    entries
        More settings: name behind the architecture (or in full, with a leading dot) -> value.
    tensors
        More tensors by name.
    """
    settings = model.config
    writer = GGUFWriter(path, arch)
    writer.add_name("tiny")
    writer.add_context_length(settings.max_position_embeddings)
    writer.add_embedding_length(settings.hidden_size)
    writer.add_block_count(settings.num_hidden_layers)
    writer.add_feed_forward_length(settings.intermediate_size)
    writer.add_head_count(settings.num_attention_heads)
    writer.add_head_count_kv(settings.num_key_value_heads)
    rope = settings.rope_parameters
    writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    writer.add_layer_norm_rms_eps(settings.rms_norm_eps)
    writer.add_vocab_size(settings.vocab_size)
    if arch == "gemma3":
        writer.add_key_length(settings.head_dim)
        writer.add_value_length(settings.head_dim)
        writer.add_sliding_window(settings.sliding_window)
    for name, value in (entries or {}).items():
        _add(writer, name.removeprefix(".") if name.startswith(".") else f"{arch}.{name}", value)
    _add_tokens(writer, settings.vocab_size)
    _add_tensors(writer, model, arch, without)
    for name, values in (tensors or {}).items():
        writer.add_tensor(name, np.asarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer, key, value):
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def _add_tokens(writer, size):
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["<s>", "</s>", *LETTERS, *(f"{a}{b}" for a in "abcd" for b in "efghijklm")][:size])
    writer.add_token_types([3, 3, *[1] * (size - 2)])
    writer.add_token_merges([f"{a} {b}" for a in "abcd" for b in "efghijklm"][: size - 2 - len(LETTERS)])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)


def _add_tensors(writer, model, arch, without):
    settings = model.config
    renamed = {**RENAMED, "post_attention_layernorm": _AFTER_ATTENTION.get(arch, "ffn_norm")}
    for name, parameter in model.named_parameters():
        new = name
        for old, short in renamed.items():
            new = new.replace(old, short)
        values = parameter.detach().float().numpy()
        if arch == "gemma3" and new.endswith("norm.weight"):
            values = values + 1  # stored as applied
        if arch == "llama" and ("attn_q." in new or "attn_k." in new):
            heads = settings.num_attention_heads if "attn_q." in new else settings.num_key_value_heads
            values = _pairs_side_by_side(values, heads)
        if new not in without:
            writer.add_tensor(new, values.astype(np.float32))


def _pairs_side_by_side(values, heads):
    """Order rows as the original Llama does: turned coordinates in pairs, not in halves."""
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)
