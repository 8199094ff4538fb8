"""Which attention head looks at the character that is to be copied, and whether it looks away at mistakes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.experiments.copying.mistakes import last_occurrence
from lmreach.experiments.copying.prompts import Asker, draw
from lmreach.models.device_map import is_spread
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import twin

__all__ = ["SourceAttention", "source_attention"]

_WEIGHTS = 1 << 26  # attention weights held at once


@dataclass(frozen=True, slots=True)
class SourceAttention:
    """Attention from where a character is predicted to where it stands in the prompt.

    Attributes
    ----------
    length, strings
        Characters per string; strings looked at.
    layer, head
        The head (both from 0) with the largest mean weight on the source.
    weight
        That mean, over all characters.
    at_mistakes
        The same head's mean at the first wrong character of each string; None without mistakes.
    mistakes
        How many there were.
    uniform
        What equal attention to all earlier positions would give.
    """

    length: int
    strings: int
    layer: int
    head: int
    weight: float
    at_mistakes: float | None
    mistakes: int
    uniform: float


def source_attention(
    model: LoadedModel,
    asker: Asker,
    length: int,
    wrong: Sequence[int | None],
    *,
    seed: int = 0,
    strings: int = 8,
) -> SourceAttention | None:
    """Return where heads look while the strings of a measured length are copied.

    One pass over prompt and true answer; up to the first wrong character that is what free-running decoding
    sees too. None for a model without attention, or whose body cannot be run on its own.

    Parameters
    ----------
    length, wrong
        Of the strings, and where the first wrong character of each is, measured with the same seed. None:
        nowhere.
    strings
        At most so many are looked at, those with mistakes first.
    """
    heads = getattr(model.model.config.get_text_config(), "num_attention_heads", None)
    if model.wiring.body is None or not heads or is_spread(model.model):
        return None
    pairs = draw(asker, length, len(wrong), seed=seed)
    order = sorted(range(len(wrong)), key=lambda i: wrong[i] is None)[:strings]
    layers = int(getattr(model.model.config.get_text_config(), "num_hidden_layers", 1))
    room = max(1, _WEIGHTS // (layers * heads * sum(map(len, pairs[0])) ** 2))
    looked = [(i, *pairs[i]) for i in order[:room]]
    # The fused kernels keep no weights: a copy that shares the weights looks with the plain one.
    plain = twin(model, model.dtype, "eager")
    places = [_weights(plain, prompt, answer) for _, prompt, answer in looked]
    if any(place is None for place in places):
        return None
    known = [place for place in places if place is not None]
    mean = np.mean([place.mean(axis=-1) for place in known], axis=0)
    layer, head = (int(k) for k in np.unravel_index(mean.argmax(), mean.shape))
    missed = [
        float(place[layer, head, at])
        for (i, _, answer), place in zip(looked, known, strict=True)
        if (at := wrong[i]) is not None and at < len(answer) - 1
    ]
    seen = [1 / (len(prompt) + k) for _, prompt, answer in looked for k in range(len(answer) - 1)]
    return SourceAttention(
        length=length,
        strings=len(looked),
        layer=layer,
        head=head,
        weight=float(mean.max()),
        at_mistakes=float(np.mean(missed)) if missed else None,
        mistakes=len(missed),
        uniform=float(np.mean(seen)),
    )


@torch.no_grad()
def _weights(
    model: LoadedModel, prompt: Int[np.ndarray, " p"], answer: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "layers heads n-1"] | None:
    """Return every head's weight on the source of each character, at the position that predicts it."""
    characters = answer[:-1]
    source = last_occurrence(prompt, characters)
    body = model.wiring.body
    assert body is not None
    if source is None:
        return None
    vectors = model.input_vectors(torch.as_tensor(np.concatenate([prompt, characters[:-1]]))[None])
    output = body(inputs_embeds=model.wiring.handed_in(vectors), use_cache=False, output_attentions=True)
    layers = [weights for weights in output.attentions or () if weights is not None]
    if not layers:
        return None
    asked = torch.arange(len(characters)) + len(prompt) - 1
    looked_at = torch.arange(len(characters)) + source
    return np.stack([one[0, :, asked, looked_at].float().cpu().numpy() for one in layers])
