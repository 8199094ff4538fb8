"""The census of a real model: prompts of real tokens, all or a random sample, and what they make it say.

All prompts of one token can be tried. Of the V^m prompts of more tokens a sample is drawn, and how many
outputs there are beyond those seen is estimated from below (`lmreach.stats.richness`). Prompts come in
numbered blocks of one size, each from a seed of its own: a census can stop and go on anywhere, and its
numbers do not depend on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from lmreach.config import Bos
from lmreach.errors import InputError, problem
from lmreach.experiments.census.count import Distinct, LengthCounts, Packing, measure
from lmreach.experiments.census.decode import Block, decode_block
from lmreach.models.loaded import LoadedModel

__all__ = [
    "BLOCK",
    "TokenCensus",
    "TokenPlan",
    "check_plan",
    "count_outputs",
    "decode_plan_block",
    "prompt_ids",
]

# Prompts decoded at once. SmolLM2-135M on one thread, processor time per prompt of 8 tokens: 40 ms at 32, 31
# at 64, 26.5 at 128, 26 at 256.
BLOCK = 128
_STREAM = 21


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """Which prompts, and how far they are decoded.

    Attributes
    ----------
    tokens
        m, ids in a prompt.
    n
        Tokens decoded after each.
    prompts
        How many prompts. m = 1 goes through the usable ids in a random order, each once; more tokens are
        drawn independently and uniformly.
    bos
        Where a start token stands.
    seed
        Of order and draws.
    """

    tokens: int
    n: int
    prompts: int
    bos: Bos = "none"
    seed: int = 0

    @property
    def blocks(self) -> int:
        """How many blocks of `BLOCK` prompts that is; the last may hold fewer."""
        return -(-self.prompts // BLOCK)


@dataclass(frozen=True, slots=True)
class TokenCensus:
    """What was counted.

    Attributes
    ----------
    plan
        As asked for.
    vocab
        V, usable ids.
    prompts
        Decoded, the first ones of the plan.
    complete
        Whether these are all prompts there are.
    lengths
        For every length 1 .. n.
    tied, close
        Prompts with a tie, and with two logits within rounding, which batch 1 might decide otherwise.
    seconds
        Spent decoding.
    """

    plan: TokenPlan
    vocab: int
    prompts: int
    complete: bool
    lengths: tuple[LengthCounts, ...]
    tied: int
    close: int
    seconds: float


def check_plan(model: LoadedModel, plan: TokenPlan) -> None:
    """Refuse what cannot be run.

    Raises
    ------
    InputError
        Sizes below 1, more one-token prompts than ids, no start token to put, or a prompt beyond the context.
    """
    if min(plan.tokens, plan.n, plan.prompts) < 1:
        got = f"{plan.tokens}, {plan.n} and {plan.prompts}"
        raise InputError(problem("prompt tokens, n and prompts of at least 1", got, "ask for one of each"))
    usable, context = model.facts.usable, model.facts.context
    if plan.tokens == 1 and plan.prompts > usable:
        got = f"{plan.prompts:,}"
        raise InputError(
            problem(f"at most {usable:,} prompts of one token", got, "leave --prompts out for all")
        )
    if plan.bos != "none" and model.facts.bos_id is None:
        raise InputError(problem("a start token for --bos", "a model without one", "use --bos none"))
    need = plan.tokens + plan.n + (plan.bos != "none")
    if context is not None and need > context:
        raise InputError(problem(f"at most {context} positions, the model's context", str(need), "lower n"))


def prompt_ids(model: LoadedModel, plan: TokenPlan, block: int) -> Int[np.ndarray, "rows m"]:
    """Return the ids of one block's prompts; of the last block only those that the plan asks for."""
    rows = min(BLOCK, plan.prompts - block * BLOCK)
    if plan.tokens == 1:
        order = np.random.default_rng([plan.seed, _STREAM, 1]).permutation(model.usable_ids)
        return order[block * BLOCK :][:rows, None]
    rng = np.random.default_rng([plan.seed, _STREAM, plan.tokens, block])
    return rng.choice(model.usable_ids, size=(BLOCK, plan.tokens))[:rows]


def decode_plan_block(model: LoadedModel, plan: TokenPlan, block: int) -> Block:
    """Decode one block; the batch is filled up to `BLOCK` rows, so that every block rounds alike."""
    ids = prompt_ids(model, plan, block)
    filled = np.concatenate([ids, np.repeat(ids[:1], BLOCK - len(ids), axis=0)])
    found = decode_block(model, model.input_vectors(torch.from_numpy(filled)), plan.n, bos=plan.bos)
    return Block(found.ids[: len(ids)], found.tied[: len(ids)], found.close[: len(ids)])


def count_outputs(
    model: LoadedModel, plan: TokenPlan, blocks: Sequence[Block], *, seconds: float
) -> TokenCensus:
    """Count the distinct outputs of decoded blocks (blocks 0, 1, 2, ... of the plan).

    Raises
    ------
    InputError
        Without a block.
    """
    if not blocks:
        raise InputError(problem("at least one decoded block", "none", "allow more time"))
    packing = Packing(model.facts.rows, plan.n)
    with Distinct(packing) as distinct:
        for block in blocks:
            distinct.add(block.ids)
        lengths = measure(distinct.chunks(), packing)
    prompts = lengths[0].prompts
    return TokenCensus(
        plan=plan,
        vocab=model.facts.usable,
        prompts=prompts,
        complete=plan.tokens == 1 and prompts == model.facts.usable,
        lengths=lengths,
        tied=int(sum(block.tied.sum() for block in blocks)),
        close=int(sum(block.close.sum() for block in blocks)),
        seconds=seconds,
    )
