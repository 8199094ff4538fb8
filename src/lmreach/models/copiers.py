"""Models to be trained on copying: six ways of knowing (or not) where a letter stands.

The four transformers share their blocks (RMSNorm, gated MLP, no biases: those of Llama and SmolLM3) and
differ in the position code only, so that a difference between them is one of position codes.

========== ============================================================================================
rope       `LlamaForCausalLM`
nope       `SmolLM3ForCausalLM` with rotary positions switched off in every block by its own setting
alibi      the same and a 4-D additive mask: head h of H adds -2^(-8h/H) x distance (Press et al. 2022)
hard_alibi the same and a 4-D mask: half of the heads see only the last 1, 2, ... positions, the other
           half all of them (Jelassi et al. 2024)
mamba      `Mamba2ForCausalLM` (Dao and Gu 2024)
lstm       torch's LSTM, stacked, behind the interface of a transformers model
========== ============================================================================================

Mamba is the second version because its scan is made of matrix products in plain torch: a training step of
32 x 128 tokens at width 128 and 2 blocks takes 0.2 s on one core, as for the transformers; the library's
loop over positions for the first version takes 18 s (it slices the states at every position, and the
gradient of a slice is as large as what it was cut from).

The masks are put in by a hook before the forward pass of the unchanged SmolLM3 body. So that no loader can
forget the hook, such models carry a model type of their own, registered with transformers when this module
is imported: without it a saved folder is refused, not read as a model without positions.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer, decoders, models
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)
from transformers.utils.generic import ModelOutput

from lmreach.errors import InputError, ModelError, OutputError, problem
from lmreach.models import checkpoint
from lmreach.models import folder as folders
from lmreach.models.quiet import quiet

__all__ = ["COPIERS", "copier", "load_copier", "save_copier"]

COPIERS = ("rope", "nope", "alibi", "hard_alibi", "mamba", "lstm")
"""Kinds of copiers."""

MARKS = ("start", "separator", "end", "pad")
"""Symbols after the letters, in the order of their ids."""

_NOTE = "copier.json"
_MAMBA_HEAD, _MAMBA_CHUNK = 32, 32


class MaskedConfig(SmolLM3Config):
    """SmolLM3's settings and the kind of mask that tells positions."""

    model_type = "lmreach_masked"

    position_mask: str = "alibi"


class MaskedForCausalLM(SmolLM3ForCausalLM):
    """SmolLM3 without rotary positions, whose attention mask depends on head and distance."""

    config_class = MaskedConfig

    def __init__(self, config: MaskedConfig) -> None:
        super().__init__(config)
        self.model.register_forward_pre_hook(_put_in_mask, with_kwargs=True)


def _put_in_mask(
    body: nn.Module, args: tuple[Any, ...], given: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Replace the attention mask by one that differs between heads."""
    if args:  # transformers itself calls the body by names only
        got = f"{len(args)} without"
        raise InputError(problem("arguments by name", got, "write input_ids=... or inputs_embeds=..."))
    vectors, ids = given.get("inputs_embeds"), given.get("input_ids")
    tokens: Any = ids if vectors is None else vectors
    cache = given.get("cache", given.get("past_key_values"))
    past = 0 if cache is None else int(cache.get_seq_length())
    settings: Any = body.config
    weight: Tensor = body.get_input_embeddings().weight  # type: ignore[operator]
    mask = head_mask(settings.position_mask, settings.num_attention_heads, past, tokens.shape[1]).to(weight)
    seen = given.get("attention_mask")
    if isinstance(seen, Tensor) and seen.ndim == 2:  # 1: a token, 0: padding
        mask = mask.masked_fill((seen == 0)[:, None, None], torch.finfo(mask.dtype).min)
    return args, {**given, "attention_mask": mask}


def head_mask(kind: str, heads: int, past: int, new: int) -> Float[Tensor, "1 heads new length"]:
    """Return what is added to the attention scores of ``new`` positions that follow ``past`` kept ones.

    Parameters
    ----------
    kind
        ``alibi``: minus slope times distance, slopes 2^(-8h/heads) for h = 1 .. heads;
        ``hard_alibi``: the first ``heads // 2`` heads see 1, 2, ... positions (their own
        among them), the others all up to their own.
    """
    at = torch.arange(past, past + new)[:, None]
    distance = at - torch.arange(past + new)
    hidden = torch.finfo(torch.float32).min
    if kind == "alibi":
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
        mask = -slopes[:, None, None] * distance
        return mask.masked_fill(distance < 0, hidden)[None]
    reach = torch.full((heads,), past + new)
    reach[: heads // 2] = torch.arange(1, heads // 2 + 1)
    seen = (distance >= 0) & (distance < reach[:, None, None])
    return torch.zeros(seen.shape).masked_fill(~seen, hidden)[None]


class LstmConfig(PreTrainedConfig):
    """Sizes of a stacked LSTM."""

    model_type = "lmreach_lstm"

    vocab_size: int = 30
    hidden_size: int = 128
    num_hidden_layers: int = 2
    initializer_range: float = 0.1
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    pad_token_id: int | None = None
    tie_word_embeddings: bool = False


@dataclass
class LstmOutput(ModelOutput):
    """Hidden states or logits, and what is to be handed in with the next token."""

    last_hidden_state: Tensor | None = None
    logits: Tensor | None = None
    state: tuple[Tensor, Tensor] | None = None


class LstmModel(PreTrainedModel):
    """Ids or vectors to hidden states."""

    config_class = LstmConfig

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        size = config.hidden_size
        self.layers = nn.LSTM(size, size, config.num_hidden_layers, batch_first=True)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the token table."""
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the token table."""
        self.embeddings = value  # type: ignore[assignment]

    def _init_weights(self, module: nn.Module) -> None:
        """Draw weights as torch does, whose LSTM is uniform in 1 / sqrt(width); forget gates start open."""
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)
        elif isinstance(module, nn.LSTM):
            module.reset_parameters()
            size = module.hidden_size
            for name, parameter in module.named_parameters():
                if name.startswith("bias_ih"):
                    nn.init.ones_(parameter[size : 2 * size])

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"] | None = None,
        inputs_embeds: Float[Tensor, "batch length d"] | None = None,
        state: tuple[Tensor, Tensor] | None = None,
        use_cache: bool | None = None,
    ) -> LstmOutput:
        """Run the layers from ``state`` (None: zeros)."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("exactly one of input_ids and inputs_embeds")
        vectors = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        hidden, after = self.layers(vectors, state)
        return LstmOutput(last_hidden_state=hidden, state=after if use_cache else None)


class LstmForCausalLM(PreTrainedModel):
    """`LstmModel` with a linear head."""

    config_class = LstmConfig
    base_model_prefix = "model"

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(config)
        self.model: LstmModel = LstmModel(config)
        self.lm_head: nn.Linear = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Draw the head as torch draws any linear map; the body draws its own."""
        if module is self.lm_head:
            self.lm_head.reset_parameters()
        else:
            self.model._init_weights(module)

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the token table."""
        return self.model.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the token table."""
        self.model.set_input_embeddings(value)

    def get_output_embeddings(self) -> nn.Linear:
        """Return the head."""
        return self.lm_head

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Replace the head."""
        self.lm_head = value

    def forward(self, **given: Any) -> LstmOutput:
        """Run the body and the head."""
        out = self.model(**given)
        return LstmOutput(logits=self.lm_head(out.last_hidden_state), state=out.state)


for _config, _model in ((MaskedConfig, MaskedForCausalLM), (LstmConfig, LstmForCausalLM)):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoModelForCausalLM.register(_config, _model, exist_ok=True)


def copier(
    kind: str,
    *,
    width: int,
    layers: int,
    heads: int,
    rows: int,
    context: int,
    seed: int,
    state: int = 16,
) -> PreTrainedModel:
    """Return an untrained copier; the caller's random state is left as it was.

    Parameters
    ----------
    kind
        One of `COPIERS`.
    width, layers, heads
        d, blocks, attention heads (mamba and lstm have none).
    rows
        Ids: letters, then start, separator, end, pad.
    context
        Longest sequence of a transformer; mamba and lstm take any.
    seed
        Of the weights.
    state
        Numbers kept per channel (mamba).

    Raises
    ------
    InputError
        For an unknown kind, a width that the heads do not divide, or rotary heads of odd width.
    """
    if kind not in COPIERS:
        raise InputError(problem(f"one of {', '.join(COPIERS)}", repr(kind), "choose one of these"))
    if kind not in ("mamba", "lstm"):
        _check_heads(width, heads)
    marks = {f"{name}_token_id": rows - k for name, k in (("bos", 4), ("eos", 2), ("pad", 1))}
    common = {"vocab_size": rows, "hidden_size": width, "num_hidden_layers": layers, **marks}
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model = _build(kind, common, heads, context, state)
    model.config._name_or_path = f"copier-{kind}"
    return model


def _check_heads(width: int, heads: int) -> None:
    if width % heads or (width // heads) % 2:
        got = f"width {width} and {heads} heads"
        raise InputError(problem("a width that is an even multiple of the heads", got, "use fewer heads"))


def _build(kind: str, common: dict[str, Any], heads: int, context: int, state: int) -> PreTrainedModel:
    if kind == "lstm":
        return LstmForCausalLM(LstmConfig(**common))
    if kind == "mamba":
        return _mamba(common, state)
    sizes = {
        **common,
        "intermediate_size": 4 * int(common["hidden_size"]),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "max_position_embeddings": context,
        "tie_word_embeddings": False,
    }
    if kind == "rope":
        return LlamaForCausalLM(LlamaConfig(**sizes))
    off = [0] * int(common["num_hidden_layers"])
    if kind == "nope":
        return SmolLM3ForCausalLM(SmolLM3Config(**sizes, no_rope_layers=off))
    return MaskedForCausalLM(MaskedConfig(**sizes, no_rope_layers=off, position_mask=kind))


def _mamba(common: dict[str, Any], state: int) -> PreTrainedModel:
    inner = 2 * int(common["hidden_size"])
    size = min(_MAMBA_HEAD, inner)
    if inner % size:
        got = f"width {common['hidden_size']}"
        raise InputError(
            problem(f"a width that is a multiple of {_MAMBA_HEAD // 2}", got, "use such a width")
        )
    sizes: dict[str, Any] = {
        "num_heads": inner // size,
        "head_dim": size,
        "n_groups": 1,
        "chunk_size": _MAMBA_CHUNK,
    }
    return Mamba2ForCausalLM(Mamba2Config(**common, **sizes, state_size=state, tie_word_embeddings=False))


def copy_tokenizer(alphabet: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer of one-letter tokens a, b, ... and the marks ``<start>``, ``<separator>``, ..."""
    named = {mark: f"<{mark}>" for mark in MARKS}
    words = [*(chr(ord("a") + k) for k in range(alphabet)), *named.values()]
    inner = Tokenizer(models.BPE(vocab={word: k for k, word in enumerate(words)}, merges=[]))
    inner.decoder = decoders.Fuse()  # no spaces between letters
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token=named["start"],
        eos_token=named["end"],
        pad_token=named["pad"],
        sep_token=named["separator"],
    )


def save_copier(model: PreTrainedModel, kind: str, folder: Path) -> None:
    """Write a copier where `load_copier` and any command that takes a model folder find it.

    Raises
    ------
    OutputError
        If the folder cannot be written.
    """
    try:
        with quiet():
            model.save_pretrained(folder)
            copy_tokenizer(int(model.config.vocab_size) - len(MARKS)).save_pretrained(folder)
        (folder / _NOTE).write_text(json.dumps({"kind": kind}) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(problem("a folder that can be written", f"{error}", "choose another")) from error


def load_copier(folder: Path) -> PreTrainedModel:
    """Return what `save_copier` wrote, in eval mode.

    Raises
    ------
    ModelError
        If the folder holds no whole copier.
    """
    kind = checkpoint.read_json(folder / _NOTE, f"a copier's folder with {_NOTE}").get("kind")
    if kind not in COPIERS:
        raise ModelError(problem(f"a kind among {', '.join(COPIERS)}", repr(kind), "train the copier again"))
    from lmreach.config import LoadConfig

    with quiet():
        came = folders.bring_in(folder, f"copier-{kind}", LoadConfig(), torch.device("cpu"))
    came.model.eval()
    return came.model
