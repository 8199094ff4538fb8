"""A frozen model with everything the measurements ask of it: vectors in, hidden states and logits out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lmreach.config.written import LARGEST_ID
from lmreach.errors import InputError, problem
from lmreach.models import tokens
from lmreach.models.cache_record import CacheRecord
from lmreach.models.facts import FinalNorm, ModelFacts
from lmreach.models.head import HeadShape, head_bias, head_matrix
from lmreach.models.stopping import interruptible

_RMS_CHUNK = 1 << 14  # ids looked up at once

Ids = Sequence[int | np.integer[Any]] | Int[np.ndarray, "*shape"] | Int[Tensor, "*shape"]


@dataclass(frozen=True)
class Wiring:
    """Which modules do what; found by `lmreach.models.probe`, verified against real logits.

    Attributes
    ----------
    embed
        ids -> vectors that may be handed in as ``inputs_embeds``.
    body
        vectors -> final hidden states; None where no module's output is exactly what the head is given, and
        the whole model has to run up to its head instead.
    head, shape
        hidden states -> raw scores, and what is made of those.
    blocks
        The blocks of the body, in order; empty where none were found.
    """

    embed: nn.Module
    body: nn.Module | None
    head: nn.Module
    shape: HeadShape
    blocks: tuple[nn.Module, ...] = ()

    def hidden(
        self, model: PreTrainedModel, vectors: Float[Tensor, "batch length d"]
    ) -> Float[Tensor, "batch length h"]:
        """Return the final hidden states as the head reads them; see `LoadedModel.hidden`."""
        given = self.handed_in(vectors)
        with interruptible(self.blocks):
            if self.body is None:
                return _run_to_head(model, self.head, given)
            states: Tensor = self.body(inputs_embeds=given, use_cache=False)[0]
        return states.to(given.dtype)

    def handed_in(self, vectors: Float[Tensor, "batch length d"]) -> Float[Tensor, "batch length d"]:
        """Return a copy in the model's dtype: some families scale what they are given in place."""
        weight: Tensor = self.embed.weight  # type: ignore[assignment]
        return vectors.to(weight.dtype, copy=True)

    def logits(self, hidden: Float[Tensor, "*shape h"]) -> Float[Tensor, "*shape rows"]:
        """Return float32 logits of final hidden states: head, bias, factor and soft cap."""
        weight: Tensor = self.embed.weight  # type: ignore[assignment]
        return self.shape.apply(self.head(hidden.to(weight.dtype)))


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A causal language model, frozen: eval mode, no weight takes a gradient.

    Letters in shapes: d is ``facts.width``, h ``facts.hidden_width``, rows ``facts.rows``.

    Attributes
    ----------
    model
        The transformers model.
    tokenizer
        Its tokenizer, or None.
    facts, final_norm
        What is known of it, see `ModelFacts` and `FinalNorm`.
    usable_ids
        Sorted int64 ids that the tokenizer knows and that have a row (all rows without a tokenizer).
    wiring
        Which of its modules do what.
    """

    model: PreTrainedModel = field(repr=False)
    tokenizer: PreTrainedTokenizerBase | None = field(repr=False)
    facts: ModelFacts
    final_norm: FinalNorm = field(repr=False)
    usable_ids: Int[np.ndarray, " usable"] = field(repr=False)
    wiring: Wiring = field(repr=False)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.wiring.embed.weight.device  # type: ignore[return-value]

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self.wiring.embed.weight.dtype  # type: ignore[return-value]

    @cached_property
    def plain_ids(self) -> Int[np.ndarray, " plain"]:
        """Usable ids without the special ones: what random targets are drawn from."""
        return np.setdiff1d(self.usable_ids, np.asarray(self.facts.special_ids, dtype=np.int64))

    @cached_property
    def cache_record(self) -> CacheRecord:
        """Which decodes with a cache were compared with passes without one, in this process."""
        return CacheRecord()

    @property
    def current_facts(self) -> ModelFacts:
        """Facts with what decoding has found since loading: a cache that broke later than was looked at."""
        broken = self.cache_record.broken_at
        if broken is None:
            return self.facts
        note = f"a cache of {broken[0]} rows did not agree with a full recompute within {broken[1]} positions"
        notes = (*self.facts.notes, f"{note}: decoding recomputes every step")
        return replace(self.facts, cache_ok=False, notes=notes)

    @property
    def head_weight(self) -> Float[Tensor, "rows h"]:
        """W of logits = shape(W h + b), in the model's dtype; no copy."""
        return head_matrix(self.wiring.head)

    @property
    def head_bias(self) -> Float[Tensor, " rows"] | None:
        """Return b of logits = shape(W h + b), or None where nothing is added."""
        return head_bias(self.wiring.head)

    def input_vectors(self, ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape d"]:
        """Return, in float32, what must be handed in so that the model behaves as with these ids."""
        with torch.no_grad():
            vectors: Tensor = self.wiring.embed(ids.to(self.device))
        # Gradient checkpointing hooks the table so that what it gives asks for gradients all the same.
        return vectors.detach().float()

    @cached_property
    def input_rms(self) -> float:
        """Root mean square of a coordinate of real input vectors, over usable ids that are not special."""
        total, ids = 0.0, torch.as_tensor(self.plain_ids)
        for chunk in ids.split(_RMS_CHUNK):
            total += float(self.input_vectors(chunk).square().sum(dtype=torch.float64))
        return float(np.sqrt(total / (len(ids) * self.facts.width)))

    def hidden(self, vectors: Float[Tensor, "batch length d"]) -> Float[Tensor, "batch length h"]:
        """Return the final hidden states as the head reads them, in the model's dtype.

        Gradients flow to ``vectors``. No mask is used: the model is causal, so what stands to the right of a
        row's last real position does not change it. ``vectors`` stay as they are.
        """
        return self.wiring.hidden(self.model, vectors)

    def head_logits(self, hidden: Float[Tensor, "*shape h"]) -> Float[Tensor, "*shape rows"]:
        """Return the model's own logits of final hidden states, rounded as it rounds them, in float32."""
        return self.wiring.logits(hidden)

    def logits_of(
        self, hidden: Float[Tensor, "*batch f h"], ids: Int[Tensor, "*batch k"]
    ) -> Float[Tensor, "*batch f k"]:
        """Return float32 logits of a few ids, those of each batch entry at all of its hidden states."""
        bias = self.head_bias
        raw = hidden.to(self.dtype) @ self.head_weight[ids].mT
        return self.wiring.shape.apply(raw if bias is None else raw + bias[ids][..., None, :])

    def logits(self, vectors: Float[Tensor, "batch length d"]) -> Float[Tensor, "batch length rows"]:
        """Return float32 logits at every position."""
        return self.head_logits(self.hidden(vectors))

    def text(self, ids: Ids) -> str:
        """Return a printable one-line form of any ids, those without text and broken UTF-8 included."""
        return tokens.display(self.tokenizer, _int_list(ids))

    def encode(self, text: str, *, special: bool = False) -> Int[np.ndarray, " n"]:
        """Return the ids of ``text``, no start token added.

        Names of control tokens that occur in it stay text unless ``special``.

        Raises
        ------
        InputError
            If the model came without a tokenizer, or with one that lacks a character of the text.
        """
        if self.tokenizer is None:
            raise InputError(
                problem(
                    "a tokenizer to read text with",
                    f"none with {self.facts.name}",
                    "give ids instead of text",
                )
            )
        return tokens.encode(self.tokenizer, text, special=special)

    def single_id(self, text: str) -> int | None:
        """Return the one id that ``text`` is read as; None where it is several, or cannot be read."""
        try:
            ids = self.encode(text)
        except InputError:
            return None
        return int(ids[0]) if len(ids) == 1 else None

    def round_trips(self, ids: Ids) -> bool:
        """Whether text made from these ids reads back as the same ids; False without a tokenizer."""
        wanted = _int_list(ids)
        known = set(self.usable_ids.tolist())
        if self.tokenizer is None or not all(i in known for i in wanted):
            return False
        special = not set(wanted).isdisjoint(self.facts.special_ids)
        try:
            back = tokens.encode(self.tokenizer, tokens.decode(self.tokenizer, wanted), special=special)
        except InputError:
            return False
        return bool(back.tolist() == wanted)

    def check_ids(self, ids: Ids, where: str = "") -> Int[np.ndarray, " n"]:
        """Return the ids as int64 after checking that each is usable.

        Parameters
        ----------
        where
            Where they stand, for the message, e.g. ``line 3 of 'a.ids'``.

        Raises
        ------
        InputError
            Naming the first id that has no row or that the tokenizer does not know.
        """
        flat = _int_list(ids)
        # What does not fit into 64 bits is no id either; a row of -1 stands for it.
        array = np.asarray([i if abs(i) <= LARGEST_ID else -1 for i in flat], dtype=np.int64)
        bad = np.flatnonzero(~np.isin(array, self.usable_ids))
        if len(bad):
            facts, first = self.facts, flat[bad[0]]
            kind = "a padded row no token uses" if 0 <= first < facts.rows else "outside the vocabulary"
            raise InputError(
                problem(
                    f"ids that {facts.name} can use ({facts.rows} rows, {facts.usable} usable)",
                    f"id {first}{f' in {where}' if where else ''}, {kind}",
                    "take ids that the tokenizer knows",
                )
            )
        return array


class _AtHead(Exception):
    """Carries the hidden states out of a forward pass that need not go on."""

    def __init__(self, hidden: Tensor) -> None:
        self.hidden = hidden


def _run_to_head(
    model: PreTrainedModel, head: nn.Module, vectors: Float[Tensor, "batch length d"]
) -> Float[Tensor, "batch length h"]:
    def stop(module: nn.Module, args: tuple[Any, ...]) -> None:
        raise _AtHead(args[0])

    handle = head.register_forward_pre_hook(stop)
    try:
        model(inputs_embeds=vectors, use_cache=False)
    except _AtHead as reached:
        return reached.hidden
    finally:
        handle.remove()
    raise AssertionError("the head was not called, though it was when the model was probed")


def _int_list(ids: Ids) -> list[int]:
    flat = ids.reshape(-1).tolist() if isinstance(ids, Tensor | np.ndarray) else ids
    return [int(i) for i in flat]
