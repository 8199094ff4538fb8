"""Held-out strings: which they are, and how many of them a model answers without a mistake.

A whole answer comes out of greedy decoding exactly if, in one pass over the true answer, the largest logit is
right at every position: then greedy decoding goes through the same inputs, and where the pass is wrong first,
greedy decoding goes wrong too. So one pass counts exact matches (it would not count right letters after the
first mistake), and step-by-step decoding only confirms.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import nn

from lmreach.config.training import CopyTrainConfig
from lmreach.experiments.copying.tasks import IGNORED, CopyTask
from lmreach.models.decode import greedy_batch
from lmreach.models.loaded import LoadedModel
from lmreach.stats.survival import clopper_pearson

_ROWS = 256  # strings per pass


@dataclass(frozen=True)
class Question:
    """Ids of one question and its answer, the end mark included."""

    prompt: Int[np.ndarray, " p"]
    answer: Int[np.ndarray, " a"]


def held_out(task: CopyTask, config: CopyTrainConfig) -> list[Question]:
    """Return test questions sorted by length, from a stream that training does not draw from."""
    rng = np.random.default_rng([config.seed, 1])
    lengths = np.sort(rng.integers(config.shortest, config.longest + 1, size=config.test_strings))
    return [Question(*task.example(rng, int(length))) for length in lengths]


@torch.no_grad()
def exact_matches(
    model: nn.Module, questions: list[Question], device: torch.device
) -> Bool[np.ndarray, " k"]:
    """Return for each question whether greedy decoding gives its whole answer (see the module's text)."""
    right: list[bool] = []
    for begin in range(0, len(questions), _ROWS):
        rows = questions[begin : begin + _ROWS]
        width = max(len(q.prompt) + len(q.answer) for q in rows)
        ids, labels = np.zeros((len(rows), width), np.int64), np.full((len(rows), width), IGNORED)
        for k, q in enumerate(rows):  # a causal model does not see what stands to the right
            split, stop = len(q.prompt), len(q.prompt) + len(q.answer)
            ids[k, :split], ids[k, split:stop], labels[k, split:stop] = q.prompt, q.answer, q.answer
        logits = model(input_ids=torch.from_numpy(ids).to(device), use_cache=False).logits
        picked = logits[:, :-1].argmax(dim=-1).cpu().numpy()
        wanted = labels[:, 1:]
        right += ((picked == wanted) | (wanted == IGNORED)).all(axis=1).tolist()
    return np.array(right)


@torch.no_grad()
def decoded_matches(model: LoadedModel, questions: list[Question]) -> Bool[np.ndarray, " k"]:
    """Return the same by decoding step by step, questions of one shape at a time."""
    right = np.zeros(len(questions), dtype=bool)
    shapes: dict[tuple[int, int], list[int]] = {}
    for k, q in enumerate(questions):
        shapes.setdefault((len(q.prompt), len(q.answer)), []).append(k)
    for (_, size), rows in shapes.items():
        prompts = torch.from_numpy(np.stack([questions[k].prompt for k in rows]))
        out = greedy_batch(model, model.input_vectors(prompts), size).numpy()
        right[rows] = (out == np.stack([questions[k].answer for k in rows])).all(axis=1)
    return right


def passes(right: int, strings: int, mark: float) -> bool:
    """Whether the lower 95 % limit (Clopper and Pearson) of ``right / strings`` is over ``mark``."""
    low, _ = clopper_pearson(np.array(float(right)), np.array(float(strings)), 0.95)
    return bool(low > mark)
