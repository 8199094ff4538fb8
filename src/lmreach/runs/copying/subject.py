"""Who is asked to copy, and how: a trained copier or a model as it is, its layouts, the lengths that fit."""

from dataclasses import dataclass
from pathlib import Path

from lmreach.config.copying import CopyConfig
from lmreach.config.training import CopyTrainConfig
from lmreach.errors import InputError, problem
from lmreach.experiments.copying.measure import check_room
from lmreach.experiments.copying.prompts import (
    TOKENS,
    InContext,
    Laid,
    in_context,
    in_context_layouts,
    letters_in,
    trained_layouts,
)
from lmreach.experiments.copying.tasks import CopyTask, check_fit
from lmreach.experiments.copying.train import Trained
from lmreach.experiments.copying.walk import grid
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.results.copying import Alphabet, Counted, LearningPoint, Training

__all__ = ["Subject", "as_it_is", "check", "copier_subject", "in_layout", "no_room", "planned"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured.

    Attributes
    ----------
    model
        Frozen.
    layouts
        The usual one first.
    counted
        Which answers count.
    least
        Shortest string that can be asked for.
    training
        What to say of its training; None for a model as it is.
    alphabet
        What to say of the symbols.
    """

    model: LoadedModel
    layouts: list[Laid]
    counted: Counted
    least: int
    training: Training | None
    alphabet: Alphabet


def check(config: CopyConfig) -> None:
    """Refuse what cannot be run before anything is trained, loaded or written."""
    if config.train is None:
        if config.alphabet != TOKENS:
            letters_in(config.alphabet)
        return
    asked = config.train
    task = CopyTask(asked.task, asked.alphabet, asked.n, letters_in(asked.letters, asked.alphabet))
    check_fit(task, asked.longest, min(asked.pack, asked.context))
    letters_in(config.test_alphabet, asked.alphabet)
    in_layout(trained_layouts(task, pad=task.pad, start=task.start, longest=asked.longest), config.layout)
    short = [n for n in config.lengths if n < task.least]
    if short:
        wanted = f"strings of at least {task.least} letters for {task.name}"
        raise InputError(problem(wanted, f"{short[0]}", "measure longer ones"))
    context = _context(asked) if config.lengths else None
    for n in config.lengths:
        if context is not None:
            check_fit(task, n, context)


def _context(asked: CopyTrainConfig) -> int | None:
    """Return the positions that the model to be trained takes; None: any number."""
    if asked.fine_tune is not None:
        return load(asked.fine_tune, asked.load_parent).facts.context
    return None if asked.kind in ("mamba", "lstm") else asked.context


def copier_subject(config: CopyConfig, trained: Trained) -> Subject:
    """Return a trained copier and how it is asked."""
    asked, task = trained.config, trained.task
    known = letters_in(asked.letters, asked.alphabet)
    tested = letters_in(config.test_alphabet, asked.alphabet) if config.test_alphabet else known
    unseen = sorted(set(tested) - set(known))
    letters = [chr(ord("a") + k) for k in unseen]
    facts = trained.model.facts
    training = Training(
        kind=asked.kind if asked.fine_tune is None else None,
        parent=asked.fine_tune and Path(asked.fine_tune).name,
        task=asked.task,
        n=asked.n,
        shortest=asked.shortest,
        longest=asked.longest,
        steps=trained.steps,
        seconds=round(trained.seconds, 3),
        reached=trained.reached,
        mark=asked.mark,
        curve=tuple(LearningPoint.model_validate(point) for point in trained.curve),
        parameters=facts.parameters,
    )
    layouts = trained_layouts(
        task.with_letters(tested), pad=task.pad, start=task.start, longest=asked.longest
    )
    alphabet = Alphabet(
        symbols="letters",
        trained=len(known),
        tested=len(tested),
        unseen=len(unseen),
        unseen_letters=tuple(letters),
    )
    return Subject(trained.model, layouts, "exact", task.least, training, alphabet)


def as_it_is(model: LoadedModel, alphabet: str) -> Subject:
    """Return a pretrained model and how it is asked in context."""
    asker: InContext = in_context(model, alphabet)
    told = Alphabet(
        symbols="tokens" if alphabet == TOKENS else "letters",
        trained=None,
        tested=int(asker.symbols.size),
        unseen=0,
        unseen_letters=(),
    )
    return Subject(model, in_context_layouts(model, asker), "complete", 1, None, told)


def in_layout(layouts: list[Laid], name: str) -> list[Laid]:
    """Return the layouts with the named one first (empty: as they are).

    Raises
    ------
    InputError
        There is no such layout.
    """
    names = [one.name for one in layouts]
    if not name:
        return layouts
    if name not in names:
        raise InputError(problem(f"a layout among {', '.join(names)}", repr(name), "name one of these"))
    return sorted(layouts, key=lambda one: one.name != name)


def planned(config: CopyConfig, subject: Subject, usual: Laid) -> tuple[list[int], list[tuple[str, str]]]:
    """Return the lengths to begin with, and those of them that do not fit with the reason.

    Raises
    ------
    InputError
        A length that was asked for does not fit the context.
    """
    if config.lengths:
        for n in config.lengths:
            check_room(subject.model, usual, n)
        return sorted(set(config.lengths)), []
    lengths = [n for n in grid(config.trained_to, config.furthest) if n >= subject.least]
    reasons = {n: no_room(subject.model, usual, n) for n in lengths}
    return (
        [n for n in lengths if reasons[n] is None],
        [(f"strings of {n}", reason) for n, reason in reasons.items() if reason is not None],
    )


def no_room(model: LoadedModel, laid: Laid, n: int) -> str | None:
    """Return why a length does not fit, or None if it does."""
    try:
        check_room(model, laid, n)
    except InputError as error:
        return str(error)
    return None
