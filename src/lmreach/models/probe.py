"""Find out how a model is wired by running it: no list of names, and a named check for every assumption.

A model passes when (1) one module turns ids into vectors, (2) handing in those vectors gives the logits that
the ids give, (3) a later token changes no earlier logits, (4) logits are a scaled, perhaps soft-capped linear
map of one hidden state per position. Whatever fails is a `ModelError` that names the check.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from lmreach.models.checks import CALL_ERRORS, distance, failure, reason, tolerance
from lmreach.models.context import context_limit
from lmreach.models.facts import FinalNorm
from lmreach.models.free_vectors import check_free_vectors
from lmreach.models.head import HeadShape, find_head, find_shape, is_linear
from lmreach.models.loaded import Wiring
from lmreach.models.norm import final_norm
from lmreach.models.trace import Trace, trace

_LENGTH = 6


@dataclass(frozen=True)
class Probe:
    """What running the model a few times has shown (see `ModelFacts` for the meaning of each)."""

    wiring: Wiring
    final_norm: FinalNorm
    layers: int
    width: int
    hidden_width: int
    rows: int
    context: int | None
    embedding_scale: float | None
    vector_scale: float


def probe(model: PreTrainedModel, usable: Int[np.ndarray, " usable"]) -> Probe:
    """Run ``model`` on a few usable ids and describe it.

    Raises
    ------
    ModelError
        ``check 'NAME' failed: ...`` where the model is none that can be measured.
    """
    model_tolerance = tolerance(model)
    ids, other = _probe_ids(usable, next(model.parameters()).device)
    by_ids = _run("the model runs on ids", model, input_ids=ids)
    _check_finite(by_ids)
    embed = _find_embed(by_ids, ids)
    vectors, other_vectors = _vectors(embed, ids), _vectors(embed, other)
    by_vectors = _run("vectors can be handed in", model, inputs_embeds=vectors)
    _check_agreement(by_ids, by_vectors, model_tolerance)
    by_other = _run("the model runs on ids", model, input_ids=other)
    _check_causal(by_ids, by_other, model_tolerance)

    head = _head(by_vectors)
    head_input = _head_input(by_vectors, head)
    shape = _head_shape(model, head, vectors, head_input)
    blocks = _blocks(model, by_vectors)
    first = next((call.given for call in by_ids.calls if blocks and call.module is blocks[0]), None)
    first_other = next((call.given for call in by_other.calls if blocks and call.module is blocks[0]), None)
    raw = _raw_rows(embed, torch.stack([ids[0, -1], other[0, -1]]))
    body = _body(by_vectors, head, vectors, head_input)
    wiring = Wiring(embed, body, head, shape, tuple(blocks))
    context = _context(model, wiring, vectors)
    check_free_vectors(model, wiring, vectors, model_tolerance, context)
    return Probe(
        wiring=wiring,
        final_norm=final_norm(_before(by_vectors, head), head_input, blocks),
        layers=len(blocks),
        width=vectors.shape[-1],
        hidden_width=head_input.shape[-1],
        rows=by_ids.logits.shape[-1],
        context=context,
        embedding_scale=_ratio(_last_difference(first, first_other), raw[0] - raw[1], model_tolerance),
        vector_scale=_vector_scale(first, first_other, vectors, other_vectors, model_tolerance),
    )


def _run(check: str, model: PreTrainedModel, **inputs: Tensor) -> Trace:
    """Trace a pass; what a model of another kind raises when it is called like this fails the check."""
    try:
        return trace(model, **inputs)
    except CALL_ERRORS as error:
        expected = f"an output with logits from {', '.join(inputs)} and use_cache=False"
        raise failure(check, expected, reason(error)) from error


def _head_shape(
    model: PreTrainedModel,
    head: nn.Module,
    vectors: Float[Tensor, "1 length d"],
    head_input: Float[Tensor, "1 length h"],
) -> HeadShape:
    allowed = tolerance(model)
    try:
        shape = find_shape(model, head, vectors, allowed) if is_linear(head, head_input, allowed) else None
    except CALL_ERRORS:  # code that does more with the head's output than numbers of any kind allow
        shape = None
    if shape is None:
        raise failure(
            "logits are a scaled linear map of the final state",
            "logits that follow from W h + b by one factor and at most one tanh soft cap",
            "something else",
        )
    if not shape.exact and torch.finfo(head_input.dtype).bits < 32:
        raise failure(
            "logits are rounded step by step",
            f"factor and soft cap applied in {head_input.dtype} or in float32",
            "logits of other bits (loading in float32 may do)",
        )
    return shape


def _context(model: PreTrainedModel, wiring: Wiring, vectors: Float[Tensor, "1 length d"]) -> int | None:
    try:
        return context_limit(model, lambda some: wiring.hidden(model, some), wiring.embed, vectors)
    except CALL_ERRORS as error:
        expected = "passes of several lengths"
        raise failure("vectors can be handed in", expected, reason(error)) from error


def _probe_ids(usable: Int[np.ndarray, " usable"], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return two rows of ids, shape (1, length), that differ in the last one only."""
    if len(usable) < 2:
        raise failure("two tokens to choose from", "at least 2 usable ids", str(len(usable)))
    rng = np.random.default_rng(0)
    drawn = rng.choice(usable, size=_LENGTH + 1, replace=len(usable) <= _LENGTH)
    while drawn[-1] == drawn[-2]:
        drawn[-1] = rng.choice(usable)
    ids = torch.as_tensor(drawn[:-1], device=device)[None]
    other = ids.clone()
    other[0, -1] = int(drawn[-1])
    return ids, other


def _find_embed(seen: Trace, ids: Int[Tensor, "1 length"]) -> nn.Module:
    for call in seen.calls:
        weight = getattr(call.module, "weight", None)
        is_table = isinstance(weight, Tensor) and weight.ndim == 2 and call.result is not None
        if is_table and call.given is not None and torch.equal(call.given, ids):
            return call.module
    raise failure(
        "one module turns ids into vectors", "a module with a token table that is given the ids", "none"
    )


def _vectors(embed: nn.Module, ids: Int[Tensor, "1 length"]) -> Float[Tensor, "1 length d"]:
    with torch.no_grad():
        vectors: Tensor = embed(ids)
    return vectors.detach().clone()


def _raw_rows(embed: nn.Module, ids: Int[Tensor, " n"]) -> Float[Tensor, "n d"]:
    weight: Tensor = embed.weight  # type: ignore[assignment]
    return weight.detach()[ids].double()


def _check_finite(seen: Trace) -> None:
    if not bool(torch.isfinite(seen.logits).all()):
        got = f"infinities or NaN with weights in {next(iter(_dtypes(seen)))}"
        raise failure("logits are finite", "finite logits for a few tokens", f"{got} (a wider dtype may do)")


def _dtypes(seen: Trace) -> set[torch.dtype]:
    return {p.dtype for call in seen.calls for p in call.module.parameters(recurse=False)}


def _check_agreement(by_ids: Trace, by_vectors: Trace, allowed: float) -> None:
    far = distance(by_ids.logits, by_vectors.logits)
    if not far <= allowed:
        raise failure(
            "ids and vectors agree",
            f"the same logits from ids and from their vectors as inputs_embeds (within {allowed:g})",
            f"a relative difference of {far:.3g}",
        )


def _check_causal(first: Trace, second: Trace, allowed: float) -> None:
    far = distance(first.logits[:, :-1], second.logits[:, :-1])
    if not far <= allowed:
        raise failure(
            "a later token changes no earlier logits",
            f"logits before the last position that do not depend on the last token (within {allowed:g})",
            f"a relative difference of {far:.3g}",
        )


def _head(seen: Trace) -> nn.Module:
    head = find_head(seen)
    if head is None or len(seen.of(head)) != 1:
        raise failure(
            "one module makes the logits", "a module with a (rows, h) matrix, called once per pass", "none"
        )
    return head


def _head_input(seen: Trace, head: nn.Module) -> Float[Tensor, "1 length h"]:
    given = seen.of(head)[0].given
    assert given is not None, "find_head only takes modules that were given a tensor"
    return given


def _before(seen: Trace, module: nn.Module) -> list[Any]:
    calls = list(seen.calls)
    return calls[: next(k for k, call in enumerate(calls) if call.module is module)]


def _body(
    seen: Trace,
    head: nn.Module,
    vectors: Float[Tensor, "1 length d"],
    head_input: Float[Tensor, "1 length h"],
) -> nn.Module | None:
    """Return the outermost module that takes ``inputs_embeds`` and returns exactly what the head is given."""
    for call in reversed(_before(seen, head)):
        if not _same(call.result, head_input):
            continue
        if "inputs_embeds" in inspect.signature(call.module.forward).parameters:
            with torch.no_grad():
                alone = call.module(inputs_embeds=vectors.clone(), use_cache=False)[0]
            return call.module if _same(alone, head_input) else None
    return None


def _same(result: Tensor | None, head_input: Float[Tensor, "1 length h"]) -> bool:
    """Whether these are the head's inputs, which some 16-bit models compute in float32 and then round."""
    if result is None or result.shape != head_input.shape:
        return False
    return torch.equal(result.to(head_input.dtype), head_input)


def _blocks(model: nn.Module, seen: Trace) -> list[nn.Module]:
    """Return the largest list of modules that were all called: the blocks; empty where there is none."""
    called = {id(call.module) for call in seen.calls}
    lists = [list(m) for m in model.modules() if isinstance(m, nn.ModuleList) and len(m)]
    lists = [modules for modules in lists if all(id(m) in called for m in modules)]
    return max(lists, key=lambda modules: sum(p.numel() for m in modules for p in m.parameters()), default=[])


def _last_difference(first: Tensor | None, second: Tensor | None) -> Float[Tensor, " d"] | None:
    """Return the difference at the last position, in which everything that depends on the place cancels."""
    if first is None or second is None or first.ndim != 3:
        return None
    return (first[0, -1] - second[0, -1]).double()


def _ratio(received: Tensor | None, given: Tensor, allowed: float) -> float | None:
    """Return c with received = c * given, or None where that does not hold."""
    if received is None or received.shape != given.shape:
        return None
    given = given.double()
    c = float(((received * given).sum() / (given * given).sum()).float())
    if not bool((received - c * given).abs().max() <= 4 * allowed * received.abs().max()):
        return None
    return 1.0 if abs(c - 1) <= allowed else c


def _vector_scale(
    first: Tensor | None, second: Tensor | None, vectors: Tensor, other_vectors: Tensor, allowed: float
) -> float:
    # The traces ran on ids; ids and vectors were found to agree, so the blocks received the same.
    given = (vectors[0, -1] - other_vectors[0, -1]).double()
    ratio = _ratio(_last_difference(first, second), given, allowed)
    return 1.0 if ratio is None else ratio
