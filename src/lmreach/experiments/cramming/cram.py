"""Cramming: optimise prompt vectors of a frozen model until greedy decoding emits the target.

Every string is an independent row: its own vectors, its own Adam moments and step count, its own
frontier. Rows that finish leave at once and waiting strings take their place, so one batch serves any
number of strings. Nothing passes from row to row, but how many rows a product has decides how it rounds, and
steps this large make a rounding grow about tenfold in ten steps: on equal hardware the same call gives the
same results to the bit, and so does a string at ``batch_size`` 1 whatever else is asked for; in other company
its reach is another draw of the same chance. What is claimed holds either way: it is decoded at batch 1.

Differs from the published protocol (Meyer et al. 2026, their replication code): the first target token
is scored, success is what greedy decoding emits from the vectors alone, the stored vectors are the very
iterate that was confirmed, and step sizes are in units of real inputs (docs/cramming.md).

Letters of shapes: r rows in the batch, m prompt vectors, n target ids, d width, f longest frontier.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.config import CramSettings, OptimiserConfig
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.buckets import MOST, buckets
from lmreach.experiments.cramming.competitors import FROM_ROWS, Competitors, score_among
from lmreach.experiments.cramming.frontier import CLOSED, block_length, next_frontier
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.experiments.cramming.regions.flips import improve
from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.experiments.cramming.rows import Rows
from lmreach.experiments.cramming.scoring import Score, emitted, score
from lmreach.models.decode import Emission, emitted_prefix
from lmreach.models.frame import frame_of, framed
from lmreach.models.loaded import LoadedModel
from lmreach.models.stopping import PassStopped, stoppable

# Of the largest logit: a bfloat16 logit is rounded to one part in 256, and what is below it adds its own.
_SLACK = 2.0**-6

Outcome = Literal["hit_limit", "gave_up", "spent", "non_finite", "cut"]
OUTCOMES: dict[Outcome, str] = {
    "hit_limit": "emitted the whole target: its reach is at least the length limit",
    "gave_up": "no growth within the patience",
    "spent": "used all its steps",
    "non_finite": "the loss stopped being a number: a failed trial, no evidence of what can be reached",
    "cut": "time was up before its last step: confirmed as it stood, a lower bound at fewer steps",
}


@dataclass(frozen=True, slots=True)
class CramResult:
    """What became of one string.

    Attributes
    ----------
    index
        Position of the string in the call.
    reach
        Longest prefix of the target that greedy decoding emits from ``vectors``, in tokens.
    outcome
        A name of `OUTCOMES`.
    vectors
        Shape (m, d), float32: the iterate that was confirmed, a member of the set that was asked for.
    free
        Shape (m, k), float32: its free coordinates there (the vectors themselves, or those of a subspace).
    smallest_gap
        Smallest top-two gap of the logits over the confirmed prefix; None where reach is 0.
    proposed
        Longest prefix seen in a teacher-forced pass; larger than ``reach`` only if decoding disagreed.
    steps
        Optimiser steps spent, over all restarts.
    growing
        Whether it used all its steps and its prefix grew in the last tenth of them: more steps would then
        most likely reach further.
    growth
        Steps taken and tokens of the prefix, each time the prefix grew; the last one's tokens are ``reach``.
    """

    index: int
    reach: int
    outcome: Outcome
    vectors: Float[np.ndarray, "m d"]
    free: Float[np.ndarray, "m k"]
    smallest_gap: float | None
    proposed: int
    steps: int
    growing: bool = False
    growth: tuple[tuple[int, int], ...] = ()

    @property
    def censored(self) -> bool:
        """Whether the length limit, not the optimiser, ended this string."""
        return self.outcome == "hit_limit"


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did.

    Attributes
    ----------
    rows
        Rows stepped.
    positions
        Model positions computed, forth and back.
    steps
        Most steps that any of the rows has taken.
    prefixes
        Longest prefix seen so far of each string that has been started, in tokens, none confirmed yet.
    losses
        Shape (rows,), see `Rows.loss`; on the model's device, which reading it waits for.
    """

    rows: int
    positions: int
    steps: int
    prefixes: tuple[int, ...]
    losses: Float[Tensor, " r"]


def check_lengths(model: LoadedModel, m: int, n: int, config: CramSettings) -> None:
    """Refuse m or n that cannot be run, before the first step.

    Raises
    ------
    InputError
        m or n below 1, m + n (and what stands around the vectors) beyond the model's context, or a start
        token or text that the model has none for.
    """
    if m < 1 or n < 1:
        raise InputError(problem("m and n of at least 1", f"m = {m}, n = {n}", "raise the one below 1"))
    context = model.facts.context
    need = m + n + frame_of(model, config.bos, config.prefix, config.suffix).length
    if context is not None and need > context:
        raise InputError(
            problem(
                f"at most {context} positions, the model's context",
                f"{need} for m = {m}, n = {n}",
                "lower m or n",
            )
        )


def cram(
    model: LoadedModel,
    targets: Int[np.ndarray, "strings n"],
    m: int,
    config: OptimiserConfig,
    *,
    generators: Sequence[np.random.Generator],
    batch_size: int,
    search: LoadedModel | None = None,
    on_result: Callable[[CramResult], None] | None = None,
    on_step: Callable[[StepReport], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    cut: Callable[[], bool] = lambda: False,
    abandon: Callable[[], bool] = lambda: False,
) -> list[CramResult]:
    """Optimise m vectors for each target string.

    Parameters
    ----------
    targets
        Ids, shape (strings, n).
    m
        Number of prompt vectors.
    config
        Protocol and optimiser.
    generators
        One per string: the source of its starts, so that these depend on neither order nor batch.
    batch_size
        Rows stepped at once.
    search
        A quicker copy of the model to take the steps on (`lmreach.models.search_copy`); a prefix that grows
        there counts only once a pass of ``model`` itself shows it. None: the model itself.
    on_result
        Called with each finished string, as it finishes.
    on_step
        Called after each step.
    stop
        Asked before every step; when it says yes, unfinished strings are dropped and the finished returned.
    cut
        Asked before every step; when it says yes, every string that has taken a step is confirmed as it
        stands, with outcome ``cut``. Rows that began together have taken the same number of steps, so none is
        favoured.
    abandon
        Asked within every step, before each block of a pass forth and back; when it says yes, the step under
        way is given up, and strings are confirmed as they stood before it.

    Returns
    -------
    list of CramResult
        In order of ``index``; shorter than ``targets`` only after ``stop``, or where ``cut`` came before
        a string's first step.

    Raises
    ------
    InputError
        See `check_lengths`; also for the protocol ``published`` (`cramming.published` runs that), and when
        there are fewer generators than strings.
    """
    strings, n = targets.shape
    check_settings(config)
    check_lengths(model, m, n, config)
    if len(generators) != strings:
        raise InputError(problem(f"{strings} generators", f"{len(generators)}", "pass one per string"))
    run = _Shared(
        model, search or model, targets, m, config, generators, on_result, over=lambda: stop() or cut()
    )
    run.to_the_end(deque(range(strings)), batch_size, on_step, stop, cut, abandon)
    return sorted(run.finished, key=lambda result: result.index)


def check_settings(config: CramSettings) -> None:
    """Refuse a plan: what is left open in it has to be found first, and the published protocol is another."""
    if not isinstance(config, OptimiserConfig):
        remedy = "pass what its optimiser(start_scale) gives"
        raise InputError(problem("an OptimiserConfig", f"a {type(config).__name__}", remedy))


class _Shared:
    """The state that the rows of one call share: model, targets, real inputs, and what has finished."""

    def __init__(
        self,
        model: LoadedModel,
        search: LoadedModel,
        targets: Int[np.ndarray, "strings n"],
        m: int,
        config: OptimiserConfig,
        generators: Sequence[np.random.Generator],
        on_result: Callable[[CramResult], None] | None,
        *,
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.model = model
        self.search = search
        self.config = config
        self.m = m
        self.targets = targets
        self.n = int(targets.shape[1])
        self.ids = torch.from_numpy(targets).to(model.device)
        self.generators = generators
        self.on_result = on_result
        self.finished: list[CramResult] = []
        self._best: dict[int, CramResult] = {}
        self._growth: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._restarts_left = dict.fromkeys(range(len(targets)), config.restarts - 1)
        self._held = held_to(config, model)
        most = m * self._held.log_count / math.log(model.facts.usable) if config.within else None
        self._block = block_length(config, m, model.facts.width, most=most)
        self._over = over
        self._frame = frame_of(model, config.bos, config.prefix, config.suffix)
        many = model.facts.rows >= FROM_ROWS and model.device.type == "cpu"
        self._competitors = Competitors() if many else None

    def to_the_end(
        self,
        waiting: deque[int],
        batch_size: int,
        on_step: Callable[[StepReport], None] | None,
        stop: Callable[[], bool],
        cut: Callable[[], bool],
        abandon: Callable[[], bool],
    ) -> None:
        """Step rows until every waiting string has finished, or one of these says that time is up."""
        rows = self.fill(None, waiting, batch_size)
        while rows is not None and not stop():
            positions = None if cut() else self._whole_step(rows, abandon)
            if positions is None:
                self.cut(rows)
                break
            if on_step is not None:
                on_step(StepReport(rows.count, positions, int(rows.steps.max()), self.prefixes(), rows.loss))
            keep = self.harvest(rows, waiting)
            if not bool(keep.all()):
                rows = self.fill(rows.select(keep) if bool(keep.any()) else None, waiting, batch_size)

    def _whole_step(self, rows: Rows, abandon: Callable[[], bool]) -> int | None:
        """Return the positions of a step; None where it was given up, which leaves the rows as they were."""
        try:
            with stoppable(abandon):
                return self.step(rows)
        except PassStopped:
            if not abandon():  # somebody else's limit
                raise
            return None

    def fill(self, rows: Rows | None, waiting: deque[int], batch_size: int) -> Rows | None:
        """Let waiting strings take the free places."""
        free = batch_size - (rows.count if rows is not None else 0)
        joining = [waiting.popleft() for _ in range(min(free, len(waiting)))]
        if not joining:
            return rows
        new = Rows.start(
            torch.tensor(joining, device=self.model.device),
            torch.stack([self._start_vectors(index) for index in joining]),
            frontier=self._first_frontier(),
        )
        return new if rows is None else rows.join(new)

    def step(self, rows: Rows) -> int:
        """One optimiser step of every row; returns the number of model positions computed."""
        ahead = self.m + self._frame.length - 1
        lengths = rows.frontier.cpu().numpy() + ahead
        prefix, hits = torch.zeros_like(rows.best), torch.zeros_like(rows.best)
        loss = torch.zeros_like(rows.vectors[:, 0, 0])
        grad, positions = torch.zeros_like(rows.vectors), 0
        for some in buckets(lengths, most=MOST.get(rows.vectors.device.type, MOST["cuda"])):
            places = torch.from_numpy(some).to(rows.index.device)
            found = self._pass(rows, places)
            prefix[places], hits[places], loss[places], grad[places] = found
            positions += int(lengths[some].max()) * len(some)
        rows.note(prefix, loss, self._next_frontier(rows, prefix, hits))
        self._note_growth(rows)
        rows.descend(grad, self._learning_rate(rows), self.config.beta1, self.config.beta2)
        rows.vectors = self._held.keep(rows.vectors)
        return positions

    def _pass(
        self, rows: Rows, places: Int[Tensor, " r"]
    ) -> tuple[Int[Tensor, " r"], Int[Tensor, " r"], Float[Tensor, " r"], Float[Tensor, "r m d"]]:
        """Return prefix, hits, loss and gradient of some rows, from one pass forth and back."""
        frontier, best = rows.frontier[places], rows.best[places]
        width = int(frontier.max())
        ids = self.ids[rows.index[places], :width]
        # Straight through: what is seen, and what is stepped, stands at the member; steps add up beside it.
        vectors = self._held.settle(rows.vectors[places]).detach().requires_grad_(True)
        inputs = self._inputs(self._held.point(vectors), ids[:, : width - 1])
        hidden = self.search.hidden(inputs)[:, inputs.shape[1] - width :]
        scored = torch.arange(width, device=ids.device) < frontier[:, None]
        index, steps = rows.index[places], rows.steps[places]
        full, exact = self._due(index, steps), self.search is self.model
        loss, pull = torch.zeros_like(frontier, dtype=torch.float32), torch.zeros_like(hidden)
        near, hits = torch.zeros_like(frontier), torch.zeros_like(frontier)
        for some, among in ((full, False), (~full, True)):
            if bool(some.any()):
                got = self._score(
                    index[some], hidden[some], ids[some], scored[some], steps[some], among=among
                )
                # Among competitors hits may be too many; they only say when the next block begins.
                loss[some], pull[some], hits[some] = got.loss, got.hidden_grad, got.hits
                near[some] = got.near if among or not exact else got.prefix
        (grad,) = torch.autograd.grad(hidden, vectors, pull)
        # What all logits of the model itself show needs no second look.
        sure = full if exact else torch.zeros_like(full)
        prefix = self._checked(best, inputs.detach(), ids, near, sure)
        if self._competitors is not None:
            self._competitors.distrust(index[(near > best) & (prefix < near)])
        return prefix, hits, loss, grad

    def _due(self, index: Int[Tensor, " r"], steps: Int[Tensor, " r"]) -> Bool[Tensor, " r"]:
        """Return the rows whose targets are to be scored against all ids."""
        if self._competitors is None:
            return torch.ones_like(index, dtype=torch.bool)
        return self._competitors.needs_full_pass(index, steps)

    def _score(
        self,
        index: Int[Tensor, " r"],
        hidden: Float[Tensor, "r f h"],
        ids: Int[Tensor, "r f"],
        scored: Bool[Tensor, "r f"],
        steps: Int[Tensor, " r"],
        *,
        among: bool,
    ) -> Score:
        """Score rows against all ids, or against their competitors alone."""
        unsolved, slack = self._unsolved_weight(steps), 0.0 if self.search is self.model else _SLACK
        if self._competitors is None:
            return score(self.search, hidden, ids, scored, unsolved=unsolved, slack=slack)
        if among:
            kept = self._competitors.ids_of(index)
            return score_among(self.search, hidden, ids, scored, kept, unsolved=unsolved, slack=slack)
        mass = torch.zeros(len(index), self.model.facts.rows, device=hidden.device)
        got = score(self.search, hidden, ids, scored, unsolved=unsolved, slack=slack, mass=mass)
        self._competitors.update(index, mass)
        return got

    def _checked(
        self,
        best: Int[Tensor, " r"],
        inputs: Float[Tensor, "r l d"],
        ids: Int[Tensor, "r f"],
        near: Int[Tensor, " r"],
        sure: Bool[Tensor, " r"],
    ) -> Int[Tensor, " r"]:
        """Return prefixes that the model itself shows: one pass of it, for rows that only seem to grow."""
        prefix = torch.where(sure, near, torch.minimum(near, best))
        grown = (near > best) & ~sure
        if bool(grown.any()):
            width = int(near[grown].max())
            end = inputs.shape[1] - ids.shape[1] + width
            with torch.no_grad():
                hidden = self.model.hidden(inputs[grown, :end])[:, end - width :]
            prefix[grown] = emitted(self.model, hidden, ids[grown, :width])
        return prefix

    def _note_growth(self, rows: Rows) -> None:
        """Keep the steps, over all restarts, at which prefixes grew; also strings that have not, yet."""
        for index, steps, best in zip(
            rows.index.tolist(), rows.steps.tolist(), rows.best.tolist(), strict=True
        ):
            seen = self._growth[index]
            if best > (seen[-1][1] if seen else 0):
                before = self._best[index].steps if index in self._best else 0
                seen.append((before + steps, best))

    def prefixes(self) -> tuple[int, ...]:
        """Return the longest prefix seen of each string that has been started."""
        return tuple(seen[-1][1] if seen else 0 for _, seen in sorted(self._growth.items()))

    def cut(self, rows: Rows) -> None:
        """Confirm what stands of every row, and of strings between two starts."""
        for place in range(rows.count):
            index = int(rows.index[place])
            previous = self._best.pop(index, None)
            if int(rows.steps[place]) > 0:
                self._end(_better(previous, self._confirm(rows, place, index, cut=True)))
            elif previous is not None:
                self._end(replace(previous, outcome="cut"))
        for index in sorted(self._best):
            self._end(replace(self._best[index], outcome="cut"))

    def harvest(self, rows: Rows, waiting: deque[int]) -> Bool[Tensor, " r"]:
        """Take out rows that are done; returns the mask of rows that go on."""
        # Until the frontier has closed in, a prefix may stand still while the tokens behind it are won.
        earliest = 0.0 if self.config.protocol == "fixed" else CLOSED * self.config.max_steps
        done = rows.done(self.n, self.config, earliest=earliest)
        for place in torch.nonzero(done).flatten().tolist():
            self._finish(rows, place, waiting)
        return ~done

    def _finish(self, rows: Rows, place: int, waiting: deque[int]) -> None:
        index = int(rows.index[place])
        result = _better(self._best.pop(index, None), self._confirm(rows, place, index))
        if self._restarts_left[index] > 0 and result.reach < self.n:
            self._restarts_left[index] -= 1
            self._best[index] = result
            waiting.appendleft(index)
            return
        self._end(result)

    def _end(self, result: CramResult) -> None:
        growth = _grown(self._growth[result.index], result.reach)
        self.finished.append(replace(result, growth=growth))
        if self.on_result is not None:
            self.on_result(self.finished[-1])

    def _confirm(self, rows: Rows, place: int, index: int, *, cut: bool = False) -> CramResult:
        free, emission = self._settled(rows, place, index)
        outcome = self._outcome(rows, place, emission.reach, cut=cut)
        late = int(rows.grown_at[place]) >= 0.9 * self.config.max_steps
        return CramResult(
            index=index,
            reach=emission.reach,
            outcome=outcome,
            vectors=self._held.point(free).cpu().numpy().copy(),
            free=free.cpu().numpy().copy(),
            smallest_gap=emission.smallest_gap,
            proposed=int(rows.best[place]),
            steps=int(rows.steps[place]),
            growing=outcome == "spent" and late,
        )

    def _settled(self, rows: Rows, place: int, index: int) -> tuple[Float[Tensor, "m k"], Emission]:
        """Return the member that a row ends with and what it emits: after a local search, if that gains."""
        free, target = self._held.settle(rows.best_vectors[place]), self.targets[index]
        emission = self._emission(free, target)
        if self.config.flips == 0 or not isinstance(self._held, Grid) or emission.reach >= self.n:
            return free, emission
        better = improve(
            self.model,
            self._held,
            free,
            target,
            reach=emission.reach,
            rounds=self.config.flips,
            generator=self.generators[index],
            frame=self._frame,
            stop=self._over,
        )
        gained = self._emission(better, target)
        if gained.reach <= emission.reach:
            return free, emission
        self._growth[index].append((int(rows.steps[place]), gained.reach))
        return better, gained

    def _emission(self, free: Float[Tensor, "m k"], target: Int[np.ndarray, " n"]) -> Emission:
        return emitted_prefix(self.model, self._held.point(free), target, frame=self._frame)

    def _outcome(self, rows: Rows, place: int, reach: int, *, cut: bool) -> Outcome:
        if reach >= self.n:
            return "hit_limit"
        if not bool(rows.finite[place]):
            return "non_finite"
        if cut:
            return "cut"
        return "spent" if int(rows.steps[place]) >= self.config.max_steps else "gave_up"

    def _start_vectors(self, index: int) -> Float[Tensor, "m k"]:
        """Start at m real input vectors drawn at random, made as long as asked and brought into the set."""
        ids = self.generators[index].choice(self.model.plain_ids, size=self.m)
        real = self.model.input_vectors(torch.from_numpy(ids).to(self.model.device)).detach().float()
        return self._held.start(real, self.config.start_scale, self.generators[index])

    def _first_frontier(self) -> int:
        return self.n if self.config.protocol == "fixed" else min(self.n, self._block)

    def _next_frontier(
        self, rows: Rows, prefix: Int[Tensor, " r"], hits: Int[Tensor, " r"]
    ) -> Int[Tensor, " r"]:
        if self.config.protocol == "fixed":
            return rows.frontier
        best = torch.maximum(prefix, rows.best)
        found = next_frontier(
            rows.frontier, best, hits, rows.steps, block=self._block, max_steps=self.config.max_steps
        )
        return found.clamp(max=self.n)

    def _inputs(self, vectors: Float[Tensor, "r m d"], ids: Int[Tensor, "r f"]) -> Float[Tensor, "r l d"]:
        return torch.cat([framed(self.model, vectors, self._frame), self.model.input_vectors(ids)], dim=1)

    def _unsolved_weight(self, steps: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """Geometric growth over each row's own steps.

        As long as a row grows fast, every token's loss helps; towards its end solved tokens, which are made
        ever surer, pull away from those that could still be had.
        """
        first, last = self.config.unsolved_weight, self.config.unsolved_weight_end
        return first * (last / first) ** (steps.float() / self.config.max_steps).clamp(max=1.0)

    def _learning_rate(self, rows: Rows) -> Float[Tensor, " r"]:
        """Cosine decay over each row's own steps, in units of its own RMS (at least that of real inputs).

        The first norm of most models sees only the direction of a vector, so steps of fixed size turn it ever
        less as it grows; and some models emit anything at all only from vectors far longer than real inputs.
        """
        config = self.config
        done = (rows.steps.float() / config.max_steps).clamp(max=1.0)
        share = 0.5 * (1.0 + torch.cos(math.pi * done))
        least = self._held.free_rms(self.model.input_rms)
        own = rows.vectors.square().mean(dim=(1, 2)).sqrt().clamp(min=least)
        return own * (config.lr_end + (config.lr - config.lr_end) * share)


def _better(previous: CramResult | None, result: CramResult) -> CramResult:
    """Return the further of a string's two starts, with the steps of both; how the last one ended stands.

    A start whose loss stopped being a number fails the string only if the other did, too.
    """
    if previous is None:
        return result
    better = max(previous, result, key=lambda one: one.reach)
    sound = [one.outcome for one in (better, result, previous) if one.outcome != "non_finite"]
    outcome: Outcome = "cut" if result.outcome == "cut" else (sound[0] if sound else "non_finite")
    return replace(better, steps=previous.steps + result.steps, outcome=outcome)


def _grown(seen: Sequence[tuple[int, int]], reach: int) -> tuple[tuple[int, int], ...]:
    """Return growth up to the prefix that decoding confirmed, which may go on past the frontier."""
    kept: list[tuple[int, int]] = []
    for steps, prefix in seen:
        if not kept or kept[-1][1] < reach:
            kept.append((steps, min(prefix, reach)))
    return (*kept[:-1], (kept[-1][0], reach)) if kept and reach > 0 else ()
