"""A family transformers does not know, with switches for everything that can be odd about one."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput


class OddConfig(PreTrainedConfig):
    model_type = "odd"

    def __init__(self, oddity: str = "none", **kwargs) -> None:
        self.oddity = oddity
        self.vocab_size, self.hidden_size, self.num_hidden_layers = 40, 16, 2
        super().__init__(**kwargs)


class Mixer(nn.Module):
    """Adds to each position a function of the running mean of what stands before it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        steps = torch.arange(1, x.shape[1] + 1)[:, None]
        return x + torch.tanh(self.inner(x.cumsum(dim=1) / steps))


class Kept:
    """A cache: the sequence so far."""

    def __init__(self, so_far: torch.Tensor) -> None:
        self.so_far = so_far


class OddBody(PreTrainedModel):
    config_class = OddConfig

    def __init__(self, config: OddConfig) -> None:
        super().__init__(config)
        self.words = nn.Embedding(40, 16)
        self.pile = nn.ModuleList([Mixer(), Mixer()])
        self.last = nn.LayerNorm(16)
        self.post_init()

    def forward(self, input_ids=None, inputs_embeds=None, past=None, use_cache=False):
        oddity = self.config.oddity
        x = self.words(input_ids) if inputs_embeds is None else inputs_embeds
        if oddity.startswith("cache") and use_cache:
            return self._cached(x, past)
        if oddity == "ids scaled" and inputs_embeds is None:
            x = 3 * x
        if oddity == "both scaled":
            x = 3 * x
        if oddity == "looks ahead":
            x = x + x.mean(dim=1, keepdim=True)
        if oddity == "mixes rows":
            x = x + 0.1 * x.mean(dim=0, keepdim=True)
        if oddity == "looks ahead a little":
            x = x + 1e-6 * x.mean(dim=1, keepdim=True)
        if oddity == "random" and not x.requires_grad and x.shape[0] > 1:
            x = x + torch.randn_like(x)
        if oddity == "cut off from its input":
            x = x.detach()
        if oddity == "needs long rows" and x.shape[1] < 3:
            raise ValueError("rows of 3 and more")
        for block in self.pile:
            x = block(x)
        x = x if oddity == "no norm" else self.last(x)
        if use_cache:
            return CachedOutput(last_hidden_state=x, past=["useless"])
        return CachedOutput(last_hidden_state=x)

    def _cached(self, new, past):
        """Keep the whole sequence, rightly but for the oddity."""
        before = None if past is None else past.so_far
        if before is not None and self.config.oddity == "cache mixes rows of eight" and len(new) == 8:
            before = before.roll(1, dims=0)
        x = new if before is None else torch.cat([before, new], dim=1)
        seen = x[:, -24:] if self.config.oddity == "cache forgets after 24" else x
        out = self(inputs_embeds=seen)[0][:, -new.shape[1] :]
        return CachedOutput(last_hidden_state=out, past=Kept(x))


@dataclass
class CachedOutput(BaseModelOutput):
    """An output with a cache; in most oddities it does not work: `past` is taken and ignored."""

    past: object = None


class OddForCausalLM(PreTrainedModel):
    config_class = OddConfig

    def __init__(self, config: OddConfig) -> None:
        super().__init__(config)
        self.trunk = OddBody(config)
        self.out = nn.Linear(16, 40)
        self.post_init()

    def forward(self, input_ids=None, inputs_embeds=None, use_cache=False):
        oddity = self.config.oddity
        x = self.trunk(input_ids=input_ids, inputs_embeds=inputs_embeds, use_cache=use_cache)[0]
        if oddity == "state divided":
            x = x / 4
        logits = self.out(x)
        if oddity == "logits scaled":
            logits = logits * 0.0625
        if oddity == "scaled and capped":
            logits = 50 * torch.tanh(logits * 0.5 / 50)
        if oddity == "squared":
            logits = logits * logits.abs()
        if oddity == "not finite":
            logits = logits / 0.0
        return CausalLMOutput(logits=logits)


class NoVectors(OddForCausalLM):
    def forward(self, input_ids, use_cache=False):
        return super().forward(input_ids)


class NoLogits(OddForCausalLM):
    def forward(self, input_ids=None, inputs_embeds=None, use_cache=False):
        return self.trunk(input_ids, inputs_embeds)


def odd(oddity: str = "none", kind: type[OddForCausalLM] = OddForCausalLM) -> OddForCausalLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind(OddConfig(oddity))
        for parameter in model.parameters():
            parameter.data.add_(0.3 * torch.randn(parameter.shape))
    return model.eval()
