"""Greedy decoding from vectors, step by step: the only judge of what a prompt emits.

Plain argmax over all rows of the head, never the library's generation loop and never the generation settings
that came with a checkpoint. The cache is used where it agreed with a full recompute when the model was loaded
(``facts.cache_ok``), and a decode of more positions than have agreed so far, at its batch size, is compared
before anything is made of it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.errors import InputError, ModelError, problem
from lmreach.models.checks import tolerance
from lmreach.models.frame import NO_FRAME, PromptFrame, framed
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import interruptible

_WATCHED = 16  # rows of a batch that are compared: a cache that mixes rows up mixes up more than one
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Decoded:
    """What came out.

    Attributes
    ----------
    ids
        The n ids, none skipped: decoding goes on past an end token.
    gaps
        Largest minus second largest logit at each step; 0 is a tie.
    used_cache
        Whether keys and values were kept between steps.
    """

    ids: Int[np.ndarray, " n"]
    gaps: Float[np.ndarray, " n"]
    used_cache: bool

    @property
    def smallest_gap(self) -> float:
        """Smallest top-two gap over all steps."""
        return float(self.gaps.min())


@dataclass(frozen=True)
class Emission:
    """How much of a target a prompt emits.

    Attributes
    ----------
    reach
        Length of the longest prefix of the target that came out with a top-two gap above 0 at every step.
    smallest_gap
        Smallest gap over that prefix, None if ``reach`` is 0.
    """

    reach: int
    smallest_gap: float | None


class Steps:
    """A batch of prompts fed token by token; `logits` are always those of the next token.

    With a cache only the new token goes through the model; without one the whole sequence does.
    """

    def __init__(
        self, loaded: LoadedModel, vectors: Float[Tensor, "batch m d"], *, use_cache: bool | None = None
    ) -> None:
        self.loaded = loaded
        self.use_cache = (
            loaded.facts.cache_ok and not loaded.cache_record.broken if use_cache is None else use_cache
        )
        self._sequence = vectors.detach().to(loaded.device)
        self._kept: dict[str, Any] = {}
        batch = len(vectors)
        self._watched = torch.linspace(0, batch - 1, min(batch, _WATCHED)).long().to(loaded.device)
        self._seen: list[Tensor] = [self._sequence[self._watched]]
        self._tops: list[tuple[Tensor, Tensor]] = []
        self.logits: Float[Tensor, "batch rows"] = self._next(self._sequence)
        self._watch()

    @torch.no_grad()
    def push(self, ids: Int[Tensor, " batch"]) -> None:
        """Append one id to each row."""
        new = self.loaded.input_vectors(ids)[:, None]
        if self.use_cache:
            self._seen.append(new[self._watched])
            self.logits = self._next(new)
            self._watch()
        else:
            self._sequence = torch.cat([self._sequence, new], dim=1)
            self.logits = self._next(self._sequence)

    def _watch(self) -> None:
        if self.use_cache:
            value, pick = self.logits[self._watched].max(dim=-1)
            self._tops.append((value, pick))

    @torch.no_grad()
    def cache_agrees(self) -> bool:
        """Whether passes that keep nothing give the same largest logits, at every step of up to 16 rows.

        Decodes no longer than one of this batch size that agreed are not compared again.
        """
        record, batch = self.loaded.cache_record, len(self._sequence)
        length = self._sequence.shape[1] + len(self._tops) - 1
        if not self.use_cache or record.covers(batch, length):
            return True
        before = self._sequence.shape[1] - 1
        allowed = 2 * tolerance(self.loaded.model)
        agreed = all(
            self._same(vectors, before, row, allowed)
            for row, vectors in enumerate(torch.cat(self._seen, dim=1))
        )
        record.note(batch, length, agreed=agreed)
        return agreed

    def _same(self, vectors: Float[Tensor, "length d"], before: int, row: int, allowed: float) -> bool:
        """Compare one row: the logits picked with the cache must be the largest without, and of that size."""
        hidden = self.loaded.hidden(vectors[None])[0, before:]
        for state, (values, picks) in zip(hidden, self._tops, strict=True):
            plain = self.loaded.head_logits(state)
            slack = allowed * float(plain.abs().max())
            own = float(plain[picks[row]])
            if not (float(plain.max()) - own <= slack and abs(float(values[row]) - own) <= slack):
                return False
        return True

    @torch.no_grad()
    def _next(self, vectors: Float[Tensor, "batch length d"]) -> Float[Tensor, "batch rows"]:
        if not self.use_cache:
            return self.loaded.head_logits(self.loaded.hidden(vectors)[:, -1])
        body = self.loaded.wiring.body
        assert body is not None, "the cache check is only passed by models with a headless body"
        given = self.loaded.wiring.handed_in(vectors)
        with interruptible(self.loaded.wiring.blocks):
            output = body(inputs_embeds=given, use_cache=True, **self._kept)
        self._kept = kept_between_steps(body, output)
        return self.loaded.head_logits(output[0][:, -1])


def kept_between_steps(body: torch.nn.Module, output: Any) -> dict[str, Any]:
    """Return what of an output is to be handed in again: fields that are also arguments, tensors excepted.

    The argument's name differs between families and releases (``past_key_values``, ``cache_params``, ...).
    """
    arguments = inspect.signature(body.forward).parameters
    return {k: v for k, v in output.items() if k in arguments and v is not None and not isinstance(v, Tensor)}


def settled(
    loaded: LoadedModel, prompt: Float[Tensor, "batch length d"], decode: Callable[[Steps], _Result]
) -> _Result:
    """Return what a decode gives, run once more without the cache where the cache turns out wrong."""
    steps = Steps(loaded, prompt)
    result = decode(steps)
    return result if steps.cache_agrees() else decode(Steps(loaded, prompt, use_cache=False))


def greedy(
    loaded: LoadedModel, vectors: Float[Tensor, "m d"], n: int, *, frame: PromptFrame = NO_FRAME
) -> Decoded:
    """Return the n ids that greedy decoding emits after ``vectors``, at batch 1.

    Parameters
    ----------
    loaded
        The model.
    vectors
        m prompt vectors in the space of ``inputs_embeds``; m >= 1.
    n
        Number of ids; exactly that many come back.
    frame
        Fixed ids around the vectors.

    Raises
    ------
    InputError
        For vectors of the wrong width or not finite, n < 1, or m + n beyond the context.
    ModelError
        If the logits of a step are not finite.
    """
    prompt = _checked_prompt(loaded, vectors[None], n, frame)
    return settled(loaded, prompt, lambda steps: _greedy(steps, n))


def _greedy(steps: Steps, n: int) -> Decoded:
    ids, gaps = np.empty(n, dtype=np.int64), np.empty(n)
    for k in range(n):
        ids[k], gaps[k] = top_and_gap(steps.logits[0])
        if not np.isfinite(gaps[k]):
            got = f"none at step {k + 1} of {n} in {steps.loaded.dtype}"
            raise ModelError(problem("finite logits", got, "use a wider dtype"))
        if k + 1 < n:
            steps.push(torch.as_tensor(ids[k : k + 1]))
    return Decoded(ids, gaps, steps.use_cache)


def emitted_prefix(
    loaded: LoadedModel,
    vectors: Float[Tensor, "m d"],
    target: Int[np.ndarray, " n"],
    *,
    frame: PromptFrame = NO_FRAME,
) -> Emission:
    """Return how many ids of ``target``, the first included, greedy decoding emits after ``vectors``.

    Batch 1. Stops at the first id that is wrong, tied or not finite, so it costs reach + 1 steps. Errors as
    in `greedy`.
    """
    prompt = _checked_prompt(loaded, vectors[None], len(target), frame)
    return settled(loaded, prompt, lambda steps: _emission(steps, target))


def _emission(steps: Steps, target: Int[np.ndarray, " n"]) -> Emission:
    ids = torch.from_numpy(np.ascontiguousarray(target, dtype=np.int64)).to(steps.loaded.device)
    smallest: float | None = None
    for reach in range(len(target)):
        gap = lead(steps.logits, ids[reach : reach + 1])
        if not bool(leads(gap)):
            return Emission(reach, smallest)
        smallest = float(gap) if smallest is None else min(float(gap), smallest)
        if reach + 1 < len(target):
            steps.push(ids[reach : reach + 1])
    return Emission(len(target), smallest)


def greedy_batch(
    loaded: LoadedModel, vectors: Float[Tensor, "batch m d"], n: int, *, frame: PromptFrame = NO_FRAME
) -> Int[Tensor, "batch n"]:
    """Return the n ids after each row's vectors, all rows at once: quicker than `greedy`, but no proof.

    A batch rounds differently from a single row, which can change a pick in 16-bit formats.
    """
    return settled(loaded, _checked_prompt(loaded, vectors, n, frame), lambda steps: _greedy_rows(steps, n))


def _greedy_rows(steps: Steps, n: int) -> Int[Tensor, "batch n"]:
    columns: list[Tensor] = []
    for k in range(n):
        if k:
            steps.push(columns[-1])
        columns.append(steps.logits.argmax(dim=-1))
    return torch.stack(columns, dim=1).cpu()


def sample(
    loaded: LoadedModel,
    prompts: Int[Tensor, "batch p"],
    n: int,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    allowed: Bool[np.ndarray, " rows"] | None = None,
) -> Int[Tensor, "batch n"]:
    """Draw n ids per row from the model itself.

    Parameters
    ----------
    prompts
        Ids that stand before the sample. With p = 0 the model's start token does; for a model without one the
        first sampled id is drawn uniformly from the allowed ids.
    generator
        The source of randomness, on the CPU.
    temperature
        Logits are divided by it; above 0.
    allowed
        Which rows may be drawn; by default the usable ids that are not special.
    """
    if not temperature > 0:
        raise InputError(
            problem("a temperature above 0", str(temperature), "use a small one for nearly greedy")
        )
    mask = torch.from_numpy(_plain_mask(loaded) if allowed is None else allowed)
    prompts, drawn = _with_start(loaded, prompts, mask, generator)
    _check_length(loaded, prompts.shape[1], n)
    state = generator.get_state()

    def draw(steps: Steps) -> Int[Tensor, "batch n"]:
        generator.set_state(state)
        columns = [*drawn]
        while len(columns) < n:
            columns.append(_draw(steps.logits, mask, temperature, generator))
            if len(columns) < n:
                steps.push(columns[-1])
        return torch.stack(columns, dim=1)

    return settled(loaded, loaded.input_vectors(prompts), draw)


def lead(logits: Float[Tensor, "p rows"], ids: Int[Tensor, " p"]) -> Float[Tensor, " p"]:
    """Return an id's logit minus the largest other, at each position."""
    own = ids[:, None]
    others = logits.scatter(1, own, -torch.inf).amax(dim=1)
    return logits.gather(1, own)[:, 0] - others


def leads(gap: Float[Tensor, " p"]) -> Bool[Tensor, " p"]:
    """Say what a `lead` must be for the id to count as emitted: above 0, a tie is none, and a number."""
    return (gap > 0) & (gap < torch.inf)


def top_and_gap(logits: Float[Tensor, " rows"]) -> tuple[int, float]:
    """Return the first id of the largest logit and its lead over the second (0: a tie; may be NaN)."""
    largest = torch.topk(logits, 2).values
    return int(logits.argmax()), float(largest[0] - largest[1])


def _plain_mask(loaded: LoadedModel) -> Bool[np.ndarray, " rows"]:
    mask = np.zeros(loaded.facts.rows, dtype=bool)
    mask[loaded.plain_ids] = True
    return mask


def _with_start(
    loaded: LoadedModel,
    prompts: Int[Tensor, "batch p"],
    mask: Bool[Tensor, " rows"],
    generator: torch.Generator,
) -> tuple[Int[Tensor, "batch q"], list[Tensor]]:
    """Return prompts of at least one id, and the sampled columns so far."""
    if prompts.shape[1]:
        return prompts, []
    batch = len(prompts)
    if loaded.facts.bos_id is not None:
        return torch.full((batch, 1), loaded.facts.bos_id), []
    choices = mask.nonzero()[:, 0]
    first = choices[torch.randint(len(choices), (batch,), generator=generator)]
    return first[:, None], [first]


def _draw(
    logits: Float[Tensor, "batch rows"],
    mask: Bool[Tensor, " rows"],
    temperature: float,
    generator: torch.Generator,
) -> Int[Tensor, " batch"]:
    scores = (logits.cpu() / temperature).masked_fill(~mask, -torch.inf)
    return torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)[:, 0]


def _checked_prompt(
    loaded: LoadedModel, vectors: Float[Tensor, "batch m d"], n: int, frame: PromptFrame
) -> Float[Tensor, "batch length d"]:
    batch, m, d = vectors.shape
    if d != loaded.facts.width:
        raise InputError(
            problem(f"vectors of width {loaded.facts.width}", f"{d}", "use this model's own vectors")
        )
    if min(batch, m, n) < 1:
        raise InputError(problem("m and n of at least 1", f"m={m}, n={n}", "ask for at least one of each"))
    if not bool(torch.isfinite(vectors).all()):
        raise InputError(problem("finite vectors", "NaN or infinities", "check how the vectors were made"))
    prompt = framed(loaded, vectors.detach(), frame)
    _check_length(loaded, prompt.shape[1], n)
    return prompt


def _check_length(loaded: LoadedModel, prompt: int, n: int) -> None:
    context = loaded.facts.context
    if context is not None and prompt + n > context:
        raise InputError(
            problem(
                f"prompt and output of at most {context} positions, the context of {loaded.facts.name}",
                f"{prompt} + {n} = {prompt + n}",
                "use fewer vectors or a shorter output",
            )
        )
