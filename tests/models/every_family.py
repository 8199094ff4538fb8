"""Every causal language model that the installed transformers knows, built small from its config class.

Sizes are recognised by what configs call them, so that a family of a later release is built without being
listed; what a family needs besides stands in `NEEDS`.
"""

import re
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from lmreach.models.quiet import quiet

# Kinds within a family that are wired differently.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "opt, projected": ("opt", {"word_embed_proj_dim": 16, "do_layer_norm_before": False}),
    "gemma4_text, no per-layer embeddings": ("gemma4_text", {"hidden_size_per_layer_input": 0}),
}
FAMILIES = (*sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES), *VARIANTS)

ROWS, CONTEXT, WIDTH, HEADS, LAYERS = 96, 64, 32, 4, 2

# The first pattern that matches a field's whole name gives its small value.
_SMALL: tuple[tuple[str, int], ...] = (
    (r"type_vocab_size|.*token_id|pad_index|.*_index|chunk_size_feed_forward|n_langs|.*multipl.*", -1),
    (r"vocab_size.*|.*_vocab_size|n_words|.*group_vocab", ROWS),
    (r".*max_position_embeddings|n_positions|n_ctx|max_seq_len|seq_length|max_sequence_length", CONTEXT),
    (r"max_(target|source)_positions|context_length|model_max_length", CONTEXT),
    (r"(num|n)_(shared_experts|codebooks)|moe_num_shared_experts", 1),
    (r".*(num|n)_.*experts|moe_num_experts|zero_expert_num", 4),
    (r"num_experts_per_tok(en)?|moe_k|moe_topk|top_k_experts", 2),
    (r"n_groups?|topk_group|num_expert_group|.*ngroups|.*n_groups|o_groups|num_kv_shared_layers", 1),
    (r".*(num_key_value|n?_kv|num_query)_(heads|groups)|.*num_key_heads", 2),
    (r".*(num|n|attention)_(.*_)?heads?|n_head|n_heads|num_query_groups", HEADS),
    (r".*head_dim|d_head|dim_head|.*headdim|attention_head_size|mamba_d_head|kv_channels|rotary_dim", 8),
    (r"(num|n|encoder|decoder)_(.*_)?layers?(_per_stack)?|num_blocks|n_layer|n_layers", LAYERS),
    (r"hidden_size_per_layer_input|.*_rank|laurel_rank|ple_embed_dim", 8),
    (r"hidden_size|d_model|n_embd|dim|word_embed_proj_dim|.*embedding_size|.*embed_dim|embedding_dim", WIDTH),
    (r"emb_dim|lru_width|attention_hidden_size|router_hidden_size", WIDTH),
    (r".*intermediate_size(_mlp)?|.*ffn_dim|d_ff|n_inner|dff|d_inner|.*ffn_hidden_size|dim_ff", 48),
    (r"feed_forward_size|prompt_mid_dim|mamba_d_ssm|.*_proj_size", 64),
    (r".*sliding_window(_size)?|.*window_size|local_attention(_window_len)?|attention_chunk_size", 8),
    (r"(ssm_|mamba_d_)?(state_size|state)|num_mel_bins", 8),
    (r".*chunk_size|.*chunk_length|index_block_size|keep_window_size|block_size|rel_extent", 16),
    (r"ngram_vocab_size_base|split_ngram_parts|make_ngram_vocab_size_divisible_by", 64),
)  # fmt: skip

_UNSET = ("head_dim", "num_key_value_heads", "num_kv_heads")  # left to None, they follow from large sizes
_MOST_LAYERS = 5
_FIXED = {
    "is_decoder": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "initializer_range": 0.2,
}

_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8}
_WINDOW_AND_FULL = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
_GEMMA_4 = {**_WINDOW_AND_FULL, "num_kv_shared_layers": 0, "global_head_dim": 8}
_ALTERNATING = {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1}
_LATENT_HEADS = {
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "head_dim": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "q_lora_rank": 8,
    "kv_lora_rank": 8,
}
NEEDS: dict[str, dict[str, Any]] = {
    "bamba": {**_MAMBA, "attn_layer_indices": [1]},
    "cohere_compass_text": {
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {
            k: {"rope_type": "default", "rope_theta": 1e4} for k in _WINDOW_AND_FULL["layer_types"]
        },
    },
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "dots3_note_text": {"per_layer_config": {"02": _LATENT_HEADS}},
    "dots3_note": {"adapter_in_dim": WIDTH},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dory": {
        "num_hidden_layers": 3,
        "n_input_layers": 1,
        "n_recurrent_layers": 1,
        "n_output_layers": 1,
        "layer_types": ["full_attention"] * 3,
    },
    "falcon_h1": {"mamba_d_ssm": 64, **_MAMBA},
    "gemma3n_text": {
        "num_hidden_layers": 5,
        "num_kv_shared_layers": 0,
        "intermediate_size": [48] * 5,
        "activation_sparsity_pattern": [0.0] * 5,
        "layer_types": ["sliding_attention"] * 4 + ["full_attention"],
    },
    "gemma4_text": _GEMMA_4,
    "gemma4_unified_text": _GEMMA_4,
    "granitemoehybrid": {
        **_MAMBA,
        "num_hidden_layers": 2,
        "layer_types": ["linear_attention", "full_attention"],
    },
    "hrm_text": {"num_hidden_layers": 1, "num_layers_per_stack": None, "layer_types": None},
    "jamba": _ALTERNATING,
    "lfm2_moe": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "longcat_flash": {"qk_head_dim": 16},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "olmo_hybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 16,
        "indexer_compress_ratio": 4,
    },
    "recurrent_gemma": {"num_hidden_layers": 3},
    "reformer": {
        "axial_pos_shape": [8, 8],
        "axial_pos_embds_dim": [16, 16],
        "attn_layers": ["local", "lsh"],
        "num_hidden_layers": 2,
    },
    "xlstm": {"hidden_size": 64, "embedding_dim": 64, "qk_dim_factor": 1.0, "v_dim_factor": 1.0},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "linear_attention", "hybrid", "hybrid"],
    },
    "zamba2": {
        "n_mamba_heads": 8,
        "mamba_headdim": 8,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "linear_attention", "hybrid", "hybrid"],
    },
    "zaya": {"num_experts_per_tok": 1},
}
"""Family -> fields of its config that must be set by hand."""


def small_config(family: str) -> PreTrainedConfig:
    """Return the family's config with all sizes small."""
    family, more = VARIANTS.get(family, (family, {}))
    return _small(CONFIG_MAPPING[family], {**NEEDS.get(family, {}), **more})


def build(family: str, *, seed: int = 0) -> PreTrainedModel:
    """Return a random-weight model of a family, its gains and biases random too."""
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(small_config(family), dtype=torch.float32)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.is_floating_point() and parameter.ndim == 1:
                    parameter.add_(0.1 * torch.randn(parameter.shape))
    return model.eval()


def _small(kind: type[PreTrainedConfig], more: dict[str, Any]) -> PreTrainedConfig:
    plain = kind()
    fields: dict[str, Any] = {}
    layers = _chosen_layers(plain)
    for name, value in vars(plain).items():
        if name in more or name.startswith("_") or name in plain.attribute_map:
            continue
        if isinstance(value, PreTrainedConfig):
            fields[name] = _small(type(value), NEEDS.get(value.model_type, {}))
        elif isinstance(value, list) and layers and len(value) == _layers(plain):
            fields[name] = [value[k] for k in layers]
        elif (isinstance(value, int) and not isinstance(value, bool)) or (value is None and name in _UNSET):
            size = _size(name)
            if size is not None:
                fields[name] = size
    if layers and "num_hidden_layers" not in more:
        fields |= {
            n: len(layers) for n in ("num_hidden_layers", "num_layers") if isinstance(fields.get(n), int)
        }
    if "kv_lora_rank" in vars(plain) and "num_key_value_heads" in fields:
        fields["num_key_value_heads"] = HEADS  # keys and values come from one latent for all heads
    ids = {
        "is_decoder": True,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "initializer_range": 0.2,
    }
    fields |= {name: value for name, value in ids.items() if hasattr(plain, name)}
    return kind(**{**fields, **more})


def _size(name: str) -> int | None:
    size = next((new for pattern, new in _SMALL if re.fullmatch(pattern, name)), -1)
    return None if size < 0 else size


def _layers(config: PreTrainedConfig) -> int:
    value = getattr(config, "num_hidden_layers", 0)
    return value if isinstance(value, int) else 0


def _chosen_layers(config: PreTrainedConfig) -> list[int]:
    """Return one block of each kind, at least two; none where the config lists nothing by block."""
    count = _layers(config)
    lists = [value for value in vars(config).values() if isinstance(value, list) and len(value) == count]
    if not lists or not count:
        return []
    kinds = [tuple(str(each[k]) for each in lists) for k in range(count)]
    first = [k for k, kind in enumerate(kinds) if kind not in kinds[:k]][:_MOST_LAYERS]
    others = [k for k in range(count) if k not in first]
    return sorted([*first, *others[: max(0, LAYERS - len(first))]])
