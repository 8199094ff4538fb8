"""Whether vectors that belong to no token can be handed in and improved: what every measurement does.

Table rows alone do not tell: a family may look up which token a row belongs to (Gemma 4 with per-layer
embeddings), change its inputs in place (CTRL), draw random numbers in each pass, or have no gradient at its
inputs (Reformer).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from lmreach.models.checks import CALL_ERRORS, distance, failure, reason
from lmreach.models.loaded import Wiring

__all__ = ["check_free_vectors"]

_ROWS, _LENGTH, _LONGER = 2, 3, 20


def check_free_vectors(
    model: PreTrainedModel,
    wiring: Wiring,
    table: Float[Tensor, "1 length d"],
    allowed: float,
    context: int | None,
) -> None:
    """Hand in random vectors of the size of ``table``'s: two rows of three, one long row, one vector alone.

    Parameters
    ----------
    table
        Input vectors of some tokens.
    allowed
        Relative difference of two passes that counts as rounding.
    context
        Longest sequence the model takes.

    Raises
    ------
    ModelError
        ``check 'NAME' failed: ...``.

    Notes
    -----
    Passes of different shapes are compared in 32 bits and more only: in 16, rounding alone may send a
    position of a mixture of experts to another expert.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(_ROWS, _LENGTH, table.shape[-1], generator=generator).to(table.device)
    vectors = (drawn * table.float().square().mean().sqrt()).requires_grad_()
    before = vectors.detach().clone()
    length = _LONGER if context is None else max(_LENGTH, min(_LONGER, context))
    long_row = vectors.detach()[:1].repeat(1, length, 1)[:, :length]

    def logits(some: Tensor) -> Tensor:
        return wiring.logits(wiring.hidden(model, some))

    first = _run("free vectors can be handed in", logits, vectors)
    with torch.no_grad():
        again = _run("free vectors can be handed in", logits, vectors)
        own = _run("free vectors can be handed in", _whole_model(model, wiring), vectors)
        longer = _run("a longer row can be handed in", logits, long_row)
        single = _run("one vector can be handed in alone", logits, vectors[:1, :1])
    if not torch.equal(vectors, before):
        raise failure("vectors handed in stay as they are", "the same vectors after a pass", "others")
    _compare("two passes over the same vectors agree", first, again, allowed)
    _compare("free vectors give the model's own logits", own, first, allowed)
    _check_gradients(first, vectors)
    if torch.finfo(table.dtype).bits >= 32:
        _compare("a longer row begins with the same logits", first[:1], longer[:, :_LENGTH], allowed)
        _compare("one vector alone gives the logits it gives in a row", first[:1, :1], single, allowed)


def _compare(check: str, a: Tensor, b: Tensor, allowed: float) -> None:
    far = distance(a, b)
    if not far <= allowed:
        raise failure(check, f"equal logits (within {allowed:g})", f"a relative difference of {far:.3g}")


def _whole_model(model: PreTrainedModel, wiring: Wiring) -> Callable[[Tensor], Tensor]:
    def logits(some: Tensor) -> Tensor:
        output: Tensor = model(inputs_embeds=wiring.handed_in(some), use_cache=False).logits
        return output

    return logits


def _run(check: str, logits: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    try:
        return logits(vectors)
    except CALL_ERRORS as error:
        shape = " x ".join(str(size) for size in vectors.shape)
        raise failure(check, f"logits of {shape} numbers that belong to no token", reason(error)) from error


def _check_gradients(logits: Tensor, vectors: Tensor) -> None:
    """Look at the gradients of a row's last logits and of its first, which neither later nor other rows have.

    A gradient of exactly zero is sharper than equal logits: it hangs neither on rounding nor on how far the
    weights of a later position happen to reach.
    """
    check = "gradients reach the vectors"
    # The largest logit, less the mean: a sum over all of them may be flat where rows add up to nothing.
    lead = logits.amax(dim=-1) - logits.mean(dim=-1)
    try:
        (at_last,) = torch.autograd.grad(lead[:, -1].sum(), vectors, retain_graph=True)
        (at_first,) = torch.autograd.grad(lead[0, 0], vectors)
    except CALL_ERRORS as error:
        raise failure(check, "a gradient of the last logits at the vectors", reason(error)) from error
    if not bool(torch.isfinite(at_last).all()):
        raise failure(check, "a finite gradient of the last logits at the vectors", "infinities or NaN")
    if not bool((at_last[:, -1] != 0).any()):
        raise failure(check, "a gradient of the last logits at the last vector", "zeros")
    elsewhere = (
        ("a later vector changes no earlier logits", at_first[0, 1:]),
        ("a row changes no other row's logits", at_first[1:]),
    )
    for check, gradient in elsewhere:
        if bool((gradient != 0).any()):
            share = float(gradient.abs().max() / at_first.abs().max())
            raise failure(check, "no gradient there at all", f"one of {share:.2g} of the largest")
