"""Whether a model copies: exact match and per-character accuracy by free-running greedy decoding.

Each step reads back what the model itself emitted. The published code takes the argmax of one pass over the
true answer instead (*teacher-forced*): that gives the same exact matches (the first wrong character is the
same, and so is whether there is one) but a higher per-character accuracy, because a mistake is forgiven at
the next step. It is offered under that name.

An exact match counts only with the end mark right after the last character. ``complete`` counts answers whose
characters are all right, whatever follows them.
"""

import time
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Int

from lmreach.config.copying import Decoding
from lmreach.errors import InputError, ModelError, problem
from lmreach.experiments.copying.mistakes import explain, first_wrong
from lmreach.experiments.copying.prompts import Asker, Pair, draw
from lmreach.models.decode import greedy, greedy_batch
from lmreach.models.loaded import LoadedModel
from lmreach.results.base import Share
from lmreach.results.records import CopyRecord, Mistake
from lmreach.stats.survival import clopper_pearson

__all__ = [
    "LengthScore",
    "answers",
    "characters_interval",
    "check_room",
    "measure",
    "recheck",
    "share",
]

_POSITIONS = 1 << 14  # positions decoded side by side: what their keys and values take stays below a gigabyte
_LOGITS = 1 << 26  # numbers in one block of logits of a teacher-forced pass


@dataclass(frozen=True, slots=True)
class LengthScore:
    """What came out for strings of one length.

    Attributes
    ----------
    length
        Characters asked for.
    decoding
        ``free_running`` or ``teacher_forced``.
    prompt
        Positions of the longest prompt.
    positions
        Positions of the longest prompt with its answer.
    wrong
        Per string, how many characters were right before the first wrong one; None: all of the answer, end
        mark included, is right.
    right
        Per string, characters that are right at their place.
    of
        Per string, characters in the answer without its end mark.
    mistakes
        One per string that is not right, in order.
    seconds
        Time it took.
    """

    length: int
    decoding: Decoding
    prompt: int
    positions: int
    wrong: tuple[int | None, ...]
    right: tuple[int, ...]
    of: tuple[int, ...]
    mistakes: tuple[Mistake, ...] = field(repr=False)
    seconds: float

    @property
    def strings(self) -> int:
        """Number of strings."""
        return len(self.wrong)

    @property
    def exact(self) -> int:
        """Answers that are right, end mark included."""
        return sum(place is None for place in self.wrong)

    @property
    def complete(self) -> int:
        """Answers whose characters are all right, whatever follows."""
        return sum(right == of for right, of in zip(self.right, self.of, strict=True))

    def record(self, layout: str) -> CopyRecord:
        """Return what the ledger keeps: counts, shares with their 95 % intervals, and mistakes.

        Parameters
        ----------
        layout
            Name of the prompt layout that was asked in.
        """
        return CopyRecord(
            layout=layout,
            length=self.length,
            decoding=self.decoding,
            prompt=self.prompt,
            positions=self.positions,
            strings=self.strings,
            exact=share(self.exact, self.strings),
            complete=share(self.complete, self.strings),
            characters=characters_interval(self.right, self.of),
            first_wrong=self.wrong,
            right=self.right,
            of=self.of,
            mistakes=self.mistakes,
            seconds=round(self.seconds, 3),
        )


def share(count: int, of: int, confidence: float = 0.95) -> Share:
    """Return a share of strings with its exact (Clopper-Pearson) interval."""
    low, high = clopper_pearson(np.array(float(count)), np.array(float(of)), confidence)
    return Share(count=count, of=of, share=count / of, low=float(low), high=float(high))


def characters_interval(right: tuple[int, ...], of: tuple[int, ...], confidence: float = 0.95) -> Share:
    """Return the share of characters that are right, with an interval that knows they come in strings.

    Clopper-Pearson with the effective number of characters p (1 - p) / Var p, the variance taken between
    strings (after one mistake the rest of a string is often wrong too). It is held between the number of
    strings and the number of characters, and is the number of strings where the variance says nothing: all
    right, all wrong, or one string.
    """
    hits, sizes = np.asarray(right, dtype=np.float64), np.asarray(of, dtype=np.float64)
    total, strings = float(sizes.sum()), len(sizes)
    share = float(hits.sum()) / total
    effective = float(strings)
    if strings > 1 and 0 < share < 1:
        # Ratio estimator: characters right over characters, strings as clusters.
        left = hits - share * sizes
        variance = float((left**2).sum()) * strings / (strings - 1) / total**2
        effective = min(max(share * (1 - share) / variance, float(strings)), total) if variance else total
    low, high = clopper_pearson(np.array(share * effective), np.array(effective), confidence)
    return Share(
        count=int(hits.sum()),
        of=int(total),
        share=share,
        low=float(low),
        high=float(high),
        effective=effective,
    )


def check_room(model: LoadedModel, asker: Asker, length: int) -> int:
    """Return the positions that a prompt and answer of a length take, after checking that they fit.

    Raises
    ------
    InputError
        They do not fit the model's context: both numbers are named.
    """
    if length < 1:
        raise InputError(problem("strings of at least 1 character", f"{length}", "ask for longer ones"))
    prompt, answer = asker.example(np.random.default_rng(0), length)
    need, context = len(prompt) + len(answer), model.facts.context
    if context is not None and need > context:
        raise InputError(
            problem(
                f"prompt and answer of at most {context} positions, the context of {model.facts.name}",
                f"{len(prompt)} + {len(answer)} = {need} for strings of {length}",
                "measure shorter strings",
            )
        )
    return need


def measure(
    model: LoadedModel,
    asker: Asker,
    length: int,
    strings: int,
    *,
    seed: int = 0,
    decoding: Decoding = "free_running",
) -> LengthScore:
    """Ask for ``strings`` strings of one length and score what comes out.

    Parameters
    ----------
    model
        In eval mode, as `lmreach.models.load.load` gives it.
    asker
        Gives prompts and answers; those of one length may differ in size.
    seed
        String i of a length depends on it, on the length and on i alone.
    decoding
        ``teacher_forced``: the argmax of one pass over the true answer, as in the published code.

    Raises
    ------
    InputError
        No strings, or a length that does not fit the model's context.
    ModelError
        The model is in training mode, where dropout would be measured too.
    """
    if strings < 1:
        raise InputError(problem("at least 1 string per length", f"{strings}", "ask for more"))
    if model.model.training:
        raise ModelError(problem("a model in eval mode", "training mode", "call model.eval() first"))
    begun, need = time.monotonic(), check_room(model, asker, length)
    pairs = draw(asker, length, strings, seed=seed)
    emitted = answers(model, pairs, decoding)
    places = [first_wrong(out, answer) for out, (_, answer) in zip(emitted, pairs, strict=True)]
    mistakes = [
        explain(prompt, answer, int(out[place]), place, asker.symbols)
        for out, (prompt, answer), place in zip(emitted, pairs, places, strict=True)
        if place is not None
    ]
    right = [int((out == answer)[:-1].sum()) for out, (_, answer) in zip(emitted, pairs, strict=True)]
    return LengthScore(
        length=length,
        decoding=decoding,
        prompt=max(len(prompt) for prompt, _ in pairs),
        positions=max(need, *(len(prompt) + len(answer) for prompt, answer in pairs)),
        wrong=tuple(places),
        right=tuple(right),
        of=tuple(len(answer) - 1 for _, answer in pairs),
        mistakes=tuple(mistakes),
        seconds=time.monotonic() - begun,
    )


def answers(
    model: LoadedModel, pairs: list[Pair], decoding: Decoding = "free_running"
) -> list[Int[np.ndarray, " n"]]:
    """Return what comes out after each prompt, as many ids as its answer has.

    Prompts of one size go through the model together, so that nothing before an answer has to be padded; what
    a shorter answer gets after its end is dropped.
    """
    groups: dict[int, list[int]] = {}
    for index, (prompt, _) in enumerate(pairs):
        groups.setdefault(len(prompt), []).append(index)
    out: list[Int[np.ndarray, " n"]] = [np.zeros(0, dtype=np.int64)] * len(pairs)
    for size, members in groups.items():
        longest = max(len(pairs[i][1]) for i in members)
        rows = max(1, _POSITIONS // (size + longest))
        for chunk in (members[i : i + rows] for i in range(0, len(members), rows)):
            found = _group(model, [pairs[i] for i in chunk], decoding)
            for index, ids in zip(chunk, found, strict=True):
                out[index] = ids[: len(pairs[index][1])]
    return out


def _group(model: LoadedModel, pairs: list[Pair], decoding: Decoding) -> Int[np.ndarray, "rows n"]:
    prompts = np.stack([prompt for prompt, _ in pairs])
    n = max(len(answer) for _, answer in pairs)
    if decoding == "teacher_forced":
        # Right padding is invisible to a causal model; any id will do.
        given = np.stack([np.pad(answer, (0, n - len(answer)), mode="edge") for _, answer in pairs])
        return _teacher_forced(model, prompts, given)
    return np.asarray(greedy_batch(model, model.input_vectors(torch.as_tensor(prompts)), n))


@torch.no_grad()
def _teacher_forced(
    model: LoadedModel, prompts: Int[np.ndarray, "rows p"], given: Int[np.ndarray, "rows n"]
) -> Int[np.ndarray, "rows n"]:
    n = given.shape[1]
    ids = torch.as_tensor(np.concatenate([prompts, given[:, :-1]], axis=1))
    hidden = model.hidden(model.input_vectors(ids))[:, -n:]
    size = max(1, _LOGITS // (len(given) * model.facts.rows))
    picked = [model.head_logits(part).argmax(dim=-1) for part in hidden.split(size, dim=1)]
    return np.asarray(torch.cat(picked, dim=1).cpu())


def recheck(model: LoadedModel, asker: Asker, length: int, strings: int, *, seed: int = 0) -> int:
    """Return how many of the first strings of a length come out the same at batch 1 as in a batch."""
    pairs = draw(asker, length, strings, seed=seed)
    batched = answers(model, pairs)
    same = 0
    for (prompt, answer), ids in zip(pairs, batched, strict=True):
        alone = greedy(model, model.input_vectors(torch.as_tensor(prompt)), len(answer)).ids
        same += bool((alone == ids).all())
    return same
