"""Train a model to copy, from scratch or further: steps, tests on held-out strings, checkpoints.

What is learned from are answers only; the strings of a step are drawn afresh, so no string is seen twice but
by chance (the shortest ones: there are only 26 of one letter). Held-out strings are drawn from a stream of
their own; see `lmreach.experiments.copying.held_out`.
"""

import json
import pickle
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn

from lmreach.config.training import CopyTrainConfig
from lmreach.errors import InputError, ModelError, OutputError, problem
from lmreach.experiments.copying.held_out import decoded_matches, exact_matches, held_out, passes
from lmreach.experiments.copying.steps import answer_loss, optimisers, rate_factor, without_dropout
from lmreach.experiments.copying.tasks import CopyTask, check_fit, check_targets
from lmreach.experiments.copying.vocabulary import parent
from lmreach.files import by_umask, drafted, write_whole
from lmreach.models.copiers import MARKS, copier, copy_tokenizer, save_copier
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.quiet import quiet
from lmreach.progress import Progress, Silent

__all__ = ["Trained", "train"]

_CHECKPOINT, _MODEL = "checkpoint.pt", "model"


@dataclass(frozen=True, eq=False)
class Trained:
    """A model that was trained to copy.

    Attributes
    ----------
    model
        Frozen, in eval mode.
    task
        What it was trained on; its ids are the model's.
    config
        The settings.
    curve
        One entry per test: ``step``, ``loss`` (mean over the steps since the last test, nats per answer
        token), ``exact`` (share of held-out strings answered without a mistake), ``strings`` (how many),
        ``seconds``.
    reached
        Whether the mark was reached.
    stopped
        Whether training was told to stop before it ended; calling `train` again goes on.
    steps, seconds
        Optimiser steps and wall time, earlier calls included.
    folder
        Where the model was saved; None while training has not ended.
    """

    model: LoadedModel = field(repr=False)
    task: CopyTask
    config: CopyTrainConfig
    curve: list[dict[str, float]] = field(repr=False)
    reached: bool
    stopped: bool
    steps: int
    seconds: float
    folder: Path | None


@dataclass
class _State:
    """Where a run stands; with weights, optimisers and `rng` all that a resumed run needs."""

    step: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_steps: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)
    reached: bool = False
    ended: bool = False


def train(
    config: CopyTrainConfig,
    folder: Path,
    *,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Trained:
    """Train until held-out strings are copied without a mistake or the steps are used up.

    Parameters
    ----------
    config
        What and how.
    folder
        Receives a checkpoint, the learning curve and, at the end, the model. Training goes on from a
        checkpoint of the same settings, bit for bit as if it had not been interrupted, and a finished one
        is only read.
    progress
        Is told of every test.
    stop
        Asked after every step; once it says yes a checkpoint is written and training returns.

    Raises
    ------
    InputError
        For strings that do not fit a context or a task, or letters the model has no token for.
    ModelError
        If the loss is not finite, naming the step.
    OutputError
        If the folder holds a checkpoint of other settings, or cannot be written.
    """
    run = _Training(config, folder, progress or Silent())
    run.resume()
    stopped = False
    while not run.state.ended:
        run.advance()
        stopped = not run.state.ended and stop is not None and stop()
        if stopped or run.state.ended or run.state.step % config.save_every == 0:
            run.save()
        if stopped:
            break
    return run.result(stopped)


class _Training:
    """One training, held together by its settings."""

    def __init__(self, config: CopyTrainConfig, folder: Path, progress: Progress) -> None:
        self.config, self.folder, self.progress = config, folder, progress
        plain = _plain_task(config)
        check_fit(plain, config.longest, min(config.pack, config.context))
        _check_shortest(plain, config)
        self.accelerator = _accelerator(config)
        model, self.tokenizer, self.task = _start(config, plain)
        model.requires_grad_(True)
        prepared = self.accelerator.prepare(model, *optimisers(model, config))
        self.model: nn.Module = prepared[0]
        # Precision is lowered around the training step only: tests are in float32, as all measuring is.
        self.plain_model: Any = self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)
        without_dropout(self.model)
        with quiet(), torch.no_grad():  # a first pass says which kernels are missing: into the debug log
            self.model(input_ids=torch.tensor([[self.task.start]], device=self.accelerator.device))
        self.optimisers: list[Any] = list(prepared[1:])
        self.rng = np.random.default_rng([config.seed, 0])
        self.held_out = held_out(self.task, config)
        self.state = _State()
        self._mark = time.perf_counter()

    def advance(self) -> None:
        """Do one step, and a test where one is due."""
        config, state = self.config, self.state
        if state.step >= config.max_steps:
            state.ended = True
            return
        loss = self._step()
        state.step += 1
        state.loss_sum, state.loss_steps = state.loss_sum + loss, state.loss_steps + 1
        if state.step % config.test_every == 0 or state.step == config.max_steps:
            self._test()
        state.ended = state.reached or state.step >= config.max_steps
        now = time.perf_counter()
        state.seconds, self._mark = state.seconds + now - self._mark, now

    def _step(self) -> float:
        config = self.config
        ids, labels = self.task.batch(self.rng, config.batch, config.pack, config.shortest, config.longest)
        check_targets(labels)
        device = self.accelerator.device
        inputs = torch.from_numpy(ids).to(device)
        with self.accelerator.autocast():
            logits = self.model(input_ids=inputs, use_cache=False).logits
        loss = answer_loss(logits, torch.from_numpy(labels).to(device))
        value = float(loss.detach())
        if not np.isfinite(value):
            raise ModelError(
                problem(
                    "a finite loss",
                    f"{value} at step {self.state.step + 1}",
                    "use a smaller learning rate or a longer warm-up, or train without mixed precision",
                )
            )
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.model.parameters(), config.clip)
        factor = rate_factor(self.state.step, config)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["full_lr"] * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return value

    def _test(self) -> None:
        config, state = self.config, self.state
        right = exact_matches(self.plain_model, self.held_out, self.accelerator.device)
        strings = len(right)
        point = {
            "step": state.step,
            "loss": state.loss_sum / max(1, state.loss_steps),
            "exact": float(right.mean()),
            "strings": strings,
            "seconds": state.seconds + time.perf_counter() - self._mark,
        }
        state.curve.append(point)
        state.loss_sum, state.loss_steps = 0.0, 0
        self.progress.stage(
            f"step {state.step} of at most {config.max_steps}: loss {point['loss']:.4f}, "
            f"{int(right.sum())} of {strings} held-out strings right"
        )
        self.progress.expect(point["seconds"] / state.step * (config.max_steps - state.step))
        if right.all() and passes(strings, strings, config.mark):
            state.reached = bool(decoded_matches(self._loaded(), self.held_out).all())

    def _loaded(self) -> LoadedModel:
        """Return the model as everything else in this package takes it; its weights stay trainable after."""
        loaded = load(self.plain_model, tokenizer=self.tokenizer)
        if not self.state.ended:
            self.plain_model.requires_grad_(True)
            without_dropout(self.plain_model)
        return loaded

    def save(self) -> None:
        """Write the checkpoint in one move, and beside it the curve."""
        content = {
            "config": self.config.model_dump(mode="json"),
            "model": self.plain_model.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "rng": self.rng.bit_generator.state,
            "scaler": self._scaler_state(),
            "state": asdict(self.state),
        }
        try:
            with drafted(self.folder / _CHECKPOINT) as draft:
                torch.save(content, draft)
            text = json.dumps({"config": content["config"], **content["state"]}, indent=1)
            write_whole(self.folder / "training.json", text + "\n")
            if self.state.ended:
                self._save_model()
        except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            raise _cannot_write(self.folder, error) from error

    def _save_model(self) -> None:
        model, place = self.plain_model, self.folder / _MODEL
        if self.config.fine_tune is None:
            save_copier(model, self.config.kind, place)
        else:
            with quiet():
                model.save_pretrained(place)
                if self.tokenizer is not None:
                    self.tokenizer.save_pretrained(place)
        by_umask(place)

    def _scaler_state(self) -> dict[str, Any] | None:
        scaler = self.accelerator.scaler
        return None if scaler is None else dict(scaler.state_dict())

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one."""
        path = self.folder / _CHECKPOINT
        if not path.is_file():
            return
        content = _read_checkpoint(path)
        self._check_same(content["config"])
        self.plain_model.load_state_dict(content["model"])
        for optimiser, saved in zip(self.optimisers, content["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        self.rng.bit_generator.state = content["rng"]
        if content["scaler"] is not None:
            self.accelerator.scaler.load_state_dict(content["scaler"])
        self.state = _State(**content["state"])
        self._mark = time.perf_counter()

    def _check_same(self, saved: dict[str, Any]) -> None:
        mine = self.config.model_dump(mode="json")
        names = [name for name in mine if saved.get(name) != mine[name]]
        if names:
            shown = ", ".join(f"{name}={saved.get(name)!r}" for name in names)
            raise OutputError(
                problem(
                    "a checkpoint of the same settings",
                    f"{self.folder.name} with {shown}",
                    "use the same settings or another folder",
                )
            )

    def result(self, stopped: bool) -> Trained:
        """Return the outcome."""
        state = self.state
        place = self.folder / _MODEL if state.ended else None
        return Trained(
            self._loaded(),
            self.task,
            self.config,
            state.curve,
            bool(state.reached),
            stopped,
            state.step,
            state.seconds,
            place,
        )


def _plain_task(config: CopyTrainConfig) -> CopyTask:
    return CopyTask(config.task, config.alphabet, config.n, _letters(config))


def _letters(config: CopyTrainConfig) -> tuple[int, ...] | None:
    """Read ``a-p`` or ``abc`` as numbers of letters."""
    text = config.letters
    if not text:
        return None
    if len(text) == 3 and text[1] == "-":
        text = "".join(chr(c) for c in range(ord(text[0]), ord(text[2]) + 1))
    found = tuple(ord(c) - ord("a") for c in text)
    if not found or not all(0 <= k < config.alphabet for k in found):
        last = chr(ord("a") + config.alphabet - 1)
        raise InputError(problem(f"letters from a to {last}", repr(config.letters), "write e.g. a-p or abc"))
    return tuple(sorted(set(found)))


def _check_shortest(task: CopyTask, config: CopyTrainConfig) -> None:
    if config.shortest < task.least:
        wanted = f"strings of at least {task.least} letters for {task.name} with n = {task.n}"
        got = f"shortest = {config.shortest}"
        raise InputError(problem(wanted, got, f"ask for shortest = {task.least} or more"))


def _accelerator(config: CopyTrainConfig) -> Accelerator:
    """Return what knows device and precision; one process may train several models with different ones."""
    AcceleratorState._reset_state(reset_partial_state=True)
    plain = Accelerator(cpu=config.device == "cpu")
    if config.precision == "fp16" and plain.device.type == "cpu":
        got = "--precision fp16 on a CPU, which would train in float32 without a word"
        raise InputError(problem("precision no or bf16 on a CPU", got, "use bf16, or a GPU"))
    AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(mixed_precision=config.precision, cpu=config.device == "cpu")


def _start(config: CopyTrainConfig, task: CopyTask) -> tuple[Any, Any, CopyTask]:
    """Return the model to be trained, its tokenizer, and the task in its ids."""
    if config.fine_tune is not None:
        return parent(config, task)
    rows = config.alphabet + len(MARKS)
    model = copier(
        config.kind,
        width=config.width,
        layers=config.layers,
        heads=config.heads,
        rows=rows,
        context=config.context,
        seed=config.seed,
        state=config.state,
    )
    return model, copy_tokenizer(config.alphabet), task


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise OutputError(
            problem(f"a checkpoint in {path.name}", f"{type(error).__name__}", "delete it and train again")
        ) from error
    return content


def _cannot_write(folder: Path, error: Exception) -> OutputError:
    return OutputError(problem(f"a folder {folder.name} that can be written", f"{error}", "choose another"))
