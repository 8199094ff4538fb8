"""The copy task in the vocabulary of a model that was trained on something else."""

from dataclasses import replace
from typing import Any

import torch

from lmreach.config.training import CopyTrainConfig
from lmreach.errors import InputError, problem
from lmreach.experiments.copying.tasks import CopyTask
from lmreach.models.copiers import MARKS
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.quiet import quiet

_SIGNS = {"start": "$>#@", "separator": "|:;=", "end": ".!?", "pad": "*_-+"}
"""Signs that may serve as marks, in order of preference."""


def parent(config: CopyTrainConfig, task: CopyTask) -> tuple[Any, Any, CopyTask]:
    """Return the model to be fine-tuned, its tokenizer, and the task in its ids.

    With ``config.resize`` every symbol gets a new row, drawn with mean and spread of the old ones; without,
    a letter is the token that spells it (alone, else behind a space).

    Raises
    ------
    InputError
        If a letter is no single token of the model, or its context is too short for a training context.
    """
    assert config.fine_tune is not None, "asked for by the caller only then"
    loaded = load(config.fine_tune, config.load_parent)
    context = loaded.facts.context
    if context is not None and config.pack > context:
        wanted = f"a packed context of at most {context} positions, those of {loaded.facts.name}"
        raise InputError(problem(wanted, f"{config.pack}", "pack fewer"))
    ids = _new_rows(loaded, task, config.seed) if config.resize else _own_tokens(loaded, task)
    return loaded.model, loaded.tokenizer, replace(task, ids=ids)


def _own_tokens(loaded: LoadedModel, task: CopyTask) -> tuple[int, ...]:
    if loaded.tokenizer is None:
        if len(loaded.plain_ids) < task.alphabet + len(MARKS):
            got = f"{len(loaded.plain_ids)} of {loaded.facts.name}"
            wanted = f"{task.alphabet + len(MARKS)} ids"
            raise InputError(problem(wanted, got, "use a smaller alphabet, or resize its vocabulary"))
        return tuple(int(i) for i in loaded.plain_ids[: task.alphabet + len(MARKS)])
    letters = [chr(ord("a") + k) for k in range(task.alphabet)]
    found = {letter: _single(loaded, letter) for letter in letters}
    missing = [letter for letter, i in found.items() if i is None]
    if missing:
        got = f"none for {', '.join(missing)} in {loaded.facts.name}"
        raise InputError(problem("one token per letter", got, "use a smaller alphabet, or resize"))
    ids = [i for i in found.values() if i is not None]
    for mark in MARKS:
        ids.append(_mark(loaded, mark, ids))
    return tuple(ids)


def _single(loaded: LoadedModel, text: str) -> int | None:
    """Return the one token that spells a text, alone or behind a space."""
    alone = loaded.single_id(text)
    return alone if alone is not None else loaded.single_id(f" {text}")


def _mark(loaded: LoadedModel, mark: str, taken: list[int]) -> int:
    for sign in _SIGNS[mark]:
        found = _single(loaded, sign)
        if found is not None and found not in taken:
            return found
    # Any token will do that stands for nothing else.
    free = [int(i) for i in loaded.plain_ids if int(i) not in taken]
    if not free:
        raise InputError(problem(f"a token left for {mark}", "none", "use a smaller alphabet, or resize"))
    return free[-1]


def _new_rows(loaded: LoadedModel, task: CopyTask, seed: int) -> tuple[int, ...]:
    """Give every symbol a token and a row of its own."""
    names = [*(chr(ord("a") + k) for k in range(task.alphabet)), *MARKS]
    old = loaded.facts.rows
    if loaded.tokenizer is None:
        ids = list(range(old, old + len(names)))
    else:
        tokenizer: Any = loaded.tokenizer
        spelled = [f"<copy-{name}>" for name in names]
        tokenizer.add_tokens(spelled)
        ids = [int(i) for i in tokenizer.convert_tokens_to_ids(spelled)]
    inner: Any = loaded.model
    with quiet():
        inner.resize_token_embeddings(max(old, max(ids) + 1), mean_resizing=False)
    modules = (inner.get_input_embeddings(), inner.get_output_embeddings())
    tables = {id(m.weight): m.weight for m in modules if m is not None}
    known = torch.as_tensor(loaded.plain_ids)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in tables.values():
            rows = weight[known].float()
            noise = torch.randn(len(ids), weight.shape[1], generator=generator)
            weight[torch.tensor(ids)] = (rows.mean(0) + rows.std(0) * noise).to(weight)
    return tuple(ids)
