"""One step of training to copy: loss, optimisers and their rates."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmreach.config.training import CopyTrainConfig
from lmreach.experiments.copying.tasks import IGNORED, check_targets


def answer_loss(
    logits: Float[Tensor, "batch length rows"], labels: Int[Tensor, "batch length"]
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy over scored labels, in nats per token.

    Labels stand where their ids stand, so the logits at k - 1 are compared with the label at k: the one shift
    there is. Raises `InputError` if no label is scored.
    """
    check_targets(labels.cpu().numpy())
    wanted = labels[:, 1:].reshape(-1)
    there = wanted != IGNORED
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1)[there].float(), wanted[there])


def rate_factor(step: int, config: CopyTrainConfig) -> float:
    """Return the share of the largest learning rate at a step: warm-up, constant, linear fall to 0."""
    rise = (step + 1) / config.warmup if config.warmup else 1.0
    falling = config.decay * config.max_steps
    fall = (config.max_steps - step) / falling if falling else 1.0
    return min(1.0, rise, fall)


def optimisers(model: nn.Module, config: CopyTrainConfig) -> list[torch.optim.Optimizer]:
    """AdamW for everything, or Muon for the matrices inside blocks and AdamW for the rest."""
    outer = {id(p) for m in (_table(model), _head(model)) for p in m.parameters()}
    inner = [p for p in model.parameters() if p.ndim == 2 and id(p) not in outer]
    chosen = {id(p) for p in inner} if config.optimiser == "muon" else set()
    rest = [p for p in model.parameters() if id(p) not in chosen]
    made: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=config.lr, betas=(0.9, 0.98), weight_decay=config.weight_decay)
    ]
    if chosen:
        decay = config.weight_decay
        made.append(torch.optim.Muon(inner, lr=config.matrix_lr, weight_decay=decay))
    for optimiser in made:
        for group in optimiser.param_groups:
            group["full_lr"] = group["lr"]
    return made


def _table(model: Any) -> nn.Module:
    table: nn.Module = model.get_input_embeddings()
    return table


def _head(model: Any) -> nn.Module:
    head: nn.Module | None = model.get_output_embeddings()
    return _table(model) if head is None else head


def without_dropout(model: nn.Module) -> None:
    """Leave nothing in a step to chance: strings are new at every step, so there is nothing to regularise."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.RNNBase):  # has no gradient on CUDA in eval mode
            module.train()
