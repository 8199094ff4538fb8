"""Copying: train it, find the length at which it fails."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lmreach.cli.options import Copy, CopyTrain, Fresh, Json, Load, NoProgress, On, Open, Out, Quiet
from lmreach.config import CopyConfig, CopyPlan, CopyTrainConfig, ExecutorConfig, LoadConfig
from lmreach.config.given import configure, options
from lmreach.errors import InputError, problem


def copy(
    model: str | None = None,
    /,
    *,
    config: Copy = CopyPlan(),
    preset: Annotated[
        Literal["quick", "paper"],
        Parameter(help="What training options are unless given: strings of up to 16 (quick) or 50 letters."),
    ] = "quick",
    fine_tune: Annotated[
        bool, Parameter(help="Train MODEL further instead of asking it as it is.", negative="")
    ] = False,
    train: CopyTrain = CopyTrainConfig(),
    out: Out = None,
    fresh: Fresh = False,
    executor: On = ExecutorConfig(),
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
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.copying.call import copy as run_copy

    _one_subject(model, train, fine_tune=fine_tune)
    given = {name: getattr(config, name) for name in config.model_fields_set}
    if model is not None and not fine_tune:
        _only_when_trained(train, config)
        asked = configure(CopyConfig, None, {**given, "model": model, "load": load})
    else:
        _can_train_so(load)
        trained = _training(preset, train, config, load, model)
        asked = configure(CopyConfig, None, {**given, "alphabet": "", "train": trained, "load": load})
    return watch(
        lambda progress, stop: run_copy(
            asked.model,
            asked,
            out=out,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
            begun=BEGUN,
            executor=executor,
        ),
        json=json,
        quiet=quiet,
        no_progress=no_progress,
        open=open,
    )


def go_on(
    run: Path,
    budget_s: float | None,
    executor: ExecutorConfig,
    *,
    json: bool,
    quiet: bool,
    silent: bool,
    open: bool,
) -> int:
    """Go on with a copying run from its folder."""
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.runs.copying.run import resume_copying

    return watch(
        lambda progress, stop: resume_copying(
            run, budget_s=budget_s, progress=progress, stop=stop, begun=BEGUN, executor=executor
        ),
        json=json,
        quiet=quiet,
        no_progress=silent,
        open=open,
    )


def _one_subject(model: str | None, train: CopyTrainConfig, *, fine_tune: bool) -> None:
    if fine_tune and model is None:
        raise InputError(problem("MODEL with --fine-tune", "none", "name the model to train further"))
    if model is not None and "kind" in train.model_fields_set:
        got = f"{model} and --kind {train.kind}"
        raise InputError(problem("MODEL, or --kind of one to train", got, "leave one of them out"))


def _can_train_so(load: LoadConfig) -> None:
    """Refuse model options that training has others for: they would be passed over in silence."""
    if load.dtype != "float32":
        raise InputError(
            problem("float32 weights in training", f"--dtype {load.dtype}", "use --precision bf16 or fp16")
        )
    if load.device_map is not None:
        raise InputError(problem("a model in one place in training", "--device-map", "leave it out"))
    if load.allow_pickle:
        got = "--allow-pickle in training"
        raise InputError(problem("weights that are data (safetensors, GGUF)", got, "convert them first"))
    if load.device not in ("auto", "cpu"):
        raise InputError(
            problem("--device auto or cpu in training", load.device, "choose a GPU by CUDA_VISIBLE_DEVICES")
        )


def _only_when_trained(train: CopyTrainConfig, config: CopyPlan) -> None:
    """Refuse training options where nothing is trained: they would be passed over in silence."""
    flags = {option.path[-1]: option.typed for option in options(CopyTrainConfig)}
    names = [flags[name] for name in train.model_fields if name in train.model_fields_set]
    names += ["--test-alphabet"] if config.test_alphabet else []
    if names:
        raise InputError(
            problem(
                "no training options for a model as it is",
                ", ".join(names),
                "leave them out, or add --fine-tune",
            )
        )


def _training(
    preset: Literal["quick", "paper"],
    train: CopyTrainConfig,
    config: CopyPlan,
    load: LoadConfig,
    parent: str | None,
) -> CopyTrainConfig:
    """Return how a copier is trained: a preset, with what was given in its place."""
    given = {name: getattr(train, name) for name in train.model_fields_set}
    if parent is not None:
        of_hub = {name: getattr(load, name) for name in ("revision", "offline", "trust_remote_code")}
        given |= {"fine_tune": parent, **of_hub}
    kind = given.pop("kind", train.kind)
    return CopyTrainConfig.preset(
        preset, kind, **given, letters=config.alphabet, seed=config.seed, device=load.device
    )
