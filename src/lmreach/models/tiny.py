"""Random-weight models of every family, small enough for tests and examples, and tokenizers for them."""

from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from lmreach.errors import InputError, problem
from lmreach.models.quiet import quiet

_STD = 0.2  # weights large enough that logits differ clearly between tokens
_ROWS, _CONTEXT = 64, 128


def _llama_kind(**more: Any) -> dict[str, Any]:
    base = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
    return {**base, "num_hidden_layers": 2, "max_position_embeddings": _CONTEXT, **more}


def _gemma_kind(**more: Any) -> dict[str, Any]:
    heads = {"hidden_size": 64, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}
    return _llama_kind(**heads, **more)


FAMILIES: dict[str, Callable[[], dict[str, Any]]] = {
    "gpt_neox": lambda: {**_llama_kind(), "rotary_pct": 0.25},
    "llama": _llama_kind,
    "qwen2": lambda: _llama_kind(tie_word_embeddings=True),
    "qwen3": lambda: _llama_kind(head_dim=8),
    "gemma2": _gemma_kind,
    "gemma3_text": _gemma_kind,
    "mistral": lambda: _llama_kind(sliding_window=8),
    "gpt2": lambda: {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": _CONTEXT},
    "opt": lambda: {**_llama_kind(), "ffn_dim": 48, "word_embed_proj_dim": 32},
    "olmo2": _llama_kind,
    "phi": lambda: _llama_kind(partial_rotary_factor=0.5),
    "mamba": lambda: {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "time_step_rank": 4},
}
"""model_type -> settings of a small model of that family (about 32 wide, 2 blocks, 64 rows)."""


def tiny(family: str, *, seed: int = 0, **overrides: Any) -> PreTrainedModel:
    """Return a small random-weight model; ``overrides`` replace fields of its config.

    Gains and biases are random too, so that a norm or head that ignores them is seen. The caller's random
    state is left as it was.
    """
    if family not in FAMILIES:
        raise InputError(
            problem(f"one of {', '.join(FAMILIES)}", repr(family), "choose a family from the list")
        )
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None, "initializer_range": _STD}
    settings = {"vocab_size": _ROWS, **ids, **FAMILIES[family](), **overrides}
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **settings))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(0.1 * torch.randn(parameter.shape))
    model.eval()
    return model


def tiny_tokenizer(size: int = _ROWS, *, bos: bool = False) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer of ``size`` ids: ``<s>``, ``</s>``, then single characters, then words.

    With ``bos`` it puts ``<s>`` in front of what it encodes, as Llama's and Gemma's do.
    """
    if size < 4:
        raise InputError(problem("a size of at least 4", str(size), "ask for more ids"))
    special = ["<s>", "</s>"]
    vocabulary = {token: i for i, token in enumerate([*special, *_pieces(size - len(special))])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token=special[0], eos_token=special[1], add_bos_token=bos
    )


def _pieces(count: int) -> list[str]:
    """Return ``count`` distinct byte-level tokens: letters and the space, all other bytes, then words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", "!"]
    singles = [*letters, *(c for c in alphabet if c not in letters)]
    words = [f"Ġ{a}{b}" for a in letters[:26] for b in letters[:26]]
    longer = [f"{w}{c}" for w in words for c in letters[:26]]
    return [*singles, *words, *longer][:count]
