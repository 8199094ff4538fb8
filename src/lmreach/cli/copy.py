"""Copying: train it, find the length at which it fails."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from lmreach.cli.options import Fresh, Json, Load, NoProgress, Open, Out, Quiet
from lmreach.config import LoadConfig
from lmreach.config.settings import Seconds
from lmreach.config.training import CopyKind, CopyTaskName, CopyTrainConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from lmreach.runs.copying.run import CopyConfig

Several = {"consume_multiple": True, "negative_iterable": ()}
# Options whose names differ from those of the settings they set.
_OPTIONS = {
    "max_steps": "--steps",
    "longest": "--train-longest",
    "shortest": "--train-shortest",
    "n": "--ngram",
}


def copy(
    model: str | None = None,
    /,
    *,
    kind: Annotated[CopyKind | None, Parameter(help="Architecture to train; default rope.")] = None,
    task: Annotated[CopyTaskName, Parameter(help="What is asked of a string.")] = "copy",
    preset: Annotated[
        Literal["quick", "paper"], Parameter(help="Training strings of up to 16 (quick) or 50 letters.")
    ] = "quick",
    fine_tune: Annotated[
        bool, Parameter(help="Train MODEL further instead of asking it as it is.", negative="")
    ] = False,
    resize: Annotated[
        bool, Parameter(help="Fine-tuning: new rows for the symbols instead of tokens it has.", negative="")
    ] = False,
    alphabet: Annotated[
        str, Parameter(help='Letters of the strings, e.g. "a-p"; with MODEL also "tokens".')
    ] = "",
    test_alphabet: Annotated[
        str, Parameter(help="Letters to measure with; default: those of training.")
    ] = "",
    teacher_forced: Annotated[
        bool, Parameter(help="Feed the true answer back, as the published code does.", negative="")
    ] = False,
    strings: Annotated[int, Parameter(help="Strings per length.")] = 64,
    lengths: Annotated[
        list[int] | None,
        Parameter(
            name=["-n", "--length"], help="Lengths to measure; default: chosen as results come in.", **Several
        ),
    ] = None,
    longest: Annotated[
        int | None, Parameter(help="Longest string measured; default 20 x the longest in training, or 256.")
    ] = None,
    layout: Annotated[
        str, Parameter(help='Prompt layout to measure in, e.g. "long examples"; default: the usual one.')
    ] = "",
    layouts: Annotated[bool, Parameter(help="Compare prompt layouts around the fall.")] = True,
    cram_strings: Annotated[int, Parameter(help="Strings crammed beside it at each m; 0: none.")] = 16,
    cram_steps: Annotated[int, Parameter(help="Optimiser steps per crammed string.")] = 200,
    train_longest: Annotated[
        int | None, Parameter(help="Longest training string.", group="Training options")
    ] = None,
    train_shortest: Annotated[
        int | None, Parameter(help="Shortest training string.", group="Training options")
    ] = None,
    ngram: Annotated[
        int | None, Parameter(help="Length of the n-gram of n-gram tasks.", group="Training options")
    ] = None,
    width: Annotated[int | None, Parameter(help="Width d.", group="Training options")] = None,
    layers: Annotated[int | None, Parameter(help="Blocks.", group="Training options")] = None,
    heads: Annotated[int | None, Parameter(help="Attention heads.", group="Training options")] = None,
    steps: Annotated[int | None, Parameter(help="Most training steps.", group="Training options")] = None,
    lr: Annotated[float | None, Parameter(help="Largest learning rate.", group="Training options")] = None,
    precision: Annotated[
        Literal["no", "bf16", "fp16"] | None, Parameter(help="Mixed precision.", group="Training options")
    ] = None,
    seed: Annotated[int, Parameter(help="Seed of weights and strings.")] = 0,
    budget: Annotated[
        Seconds, Parameter(help="Time for the whole run: 90s, 5m, 1h, or none for no limit.")
    ] = None,
    out: Out = None,
    fresh: Fresh = False,
    open: Open = False,
    load: Load = LoadConfig(),
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Find the length at which a model stops copying strings, and set the limit from theory beside it.

    Without MODEL a small one is trained from scratch (--kind); with --fine-tune MODEL is trained further: on
    strings up to a length until held-out ones are all copied. Then longer ones are measured by free-running
    decoding. MODEL alone is asked as it is, in context. Writes a run folder with results.json and
    report.html. A stopped run goes on with the same command and the same --out, or with lmreach resume.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random; none: one is trained.
    """
    _one_subject(model, fine_tune=fine_tune, kind=kind)
    from lmreach.config import CopyConfig

    own = {
        "fine_tune": model if fine_tune else None,
        "revision": load.revision if fine_tune else None,
        "offline": (load.offline or None) if fine_tune else None,
        "trust_remote_code": (load.trust_remote_code or None) if fine_tune else None,
        "resize": resize or None,
        "task": task,
        "letters": alphabet or None,
        "longest": train_longest,
        "shortest": train_shortest,
        "n": ngram,
        "width": width,
        "layers": layers,
        "heads": heads,
        "max_steps": steps,
        "lr": lr,
        "precision": precision,
    }
    training = {name: value for name, value in own.items() if value is not None}
    asked = None if fine_tune else model
    if asked is not None:
        _only_when_trained({**training, "test_alphabet": test_alphabet or None}, task)
    train = None
    if asked is None:
        _can_train_so(load)
        train = CopyTrainConfig.preset(
            preset, kind or "rope", **_sensible(training), seed=seed, device=load.device
        )
    config = CopyConfig(
        train=train,
        model=asked,
        load=load,
        budget_s=budget,
        alphabet=alphabet if asked is not None else "",
        test_alphabet=test_alphabet,
        strings=strings,
        lengths=() if lengths is None else tuple(lengths),
        longest=longest,
        teacher_forced=teacher_forced,
        layout=layout,
        layouts=layouts,
        cram_strings=cram_strings,
        cram_steps=cram_steps,
        seed=seed,
    )
    return _run(config, out, fresh=fresh, open=open, json=json, quiet=quiet, no_progress=no_progress)


def go_on(run: Path, budget_s: float | None, *, json: bool, quiet: bool, silent: bool, open: bool) -> int:
    """Go on with a copying run from its folder."""
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.runs.copying.run import resume_copying

    return watch(
        lambda progress, stop: resume_copying(
            run, budget_s=budget_s, progress=progress, stop=stop, begun=BEGUN
        ),
        json=json,
        quiet=quiet,
        no_progress=silent,
        open=open,
    )


def _run(
    config: "CopyConfig",
    out: str | None,
    *,
    fresh: bool,
    open: bool,
    json: bool,
    quiet: bool,
    no_progress: bool,
) -> int:
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.copying.call import copy as run_copy

    return watch(
        lambda progress, stop: run_copy(
            config.model,
            config,
            out=out,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
            begun=BEGUN,
        ),
        json=json,
        quiet=quiet,
        no_progress=no_progress,
        open=open,
    )


def _one_subject(model: str | None, *, fine_tune: bool, kind: str | None) -> None:
    if fine_tune and model is None:
        raise InputError(problem("MODEL with --fine-tune", "none", "name the model to train further"))
    if model is not None and kind is not None:
        got = f"{model} and --kind {kind}"
        raise InputError(problem("MODEL, or --kind of one to train", got, "leave one of them out"))


def _can_train_so(load: LoadConfig) -> None:
    """Refuse model options that training has others for: they would be passed over in silence."""
    if load.dtype != "float32":
        raise InputError(
            problem("float32 weights in training", f"--dtype {load.dtype}", "use --precision bf16 or fp16")
        )
    if load.device not in ("auto", "cpu"):
        raise InputError(
            problem("--device auto or cpu in training", load.device, "choose a GPU by CUDA_VISIBLE_DEVICES")
        )


def _only_when_trained(training: dict[str, Any], task: str) -> None:
    """Refuse training options where nothing is trained: they would be passed over in silence."""
    names = [
        name for name, value in training.items() if value is not None and name not in ("task", "letters")
    ]
    names += ["task"] if task != "copy" else []
    if names:
        got = ", ".join(_OPTIONS.get(name, f"--{name.replace('_', '-')}") for name in names)
        raise InputError(
            problem("no training options for a model as it is", got, "leave them out, or add --fine-tune")
        )


def _sensible(training: dict[str, Any]) -> dict[str, Any]:
    """Raise the shortest training string to what an n-gram task can be asked about."""
    from lmreach.experiments.copying.tasks import CopyTask

    task = CopyTask(training["task"], n=training.get("n", CopyTrainConfig.model_fields["n"].default))
    return {"shortest": task.least, **training} if task.name != "copy" else training
