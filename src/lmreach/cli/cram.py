"""Cramming alone: a fixed number of strings at each m, without a budget."""

from pathlib import Path

from lmreach.cli.options import Cram, Fresh, Json, Load, NoProgress, Out, Quiet, TargetKinds, Vectors
from lmreach.config import CramConfig, LoadConfig, StudyConfig


def cram(
    model: str,
    /,
    *,
    vectors: Vectors = None,
    targets: TargetKinds = None,
    out: Out = None,
    fresh: Fresh = False,
    load: Load = LoadConfig(),
    cram: Cram = CramConfig(),
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Optimise prompt vectors until greedy decoding emits the target; gives curve, n50 and slope.

    Runs every string asked for, however long it takes (Ctrl-C leaves a valid run; go on with
    'lmreach resume'). Default: m = 1, random targets.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.study.run import run_study

    config = StudyConfig(
        model=model,
        load=load,
        budget_s=None,
        relative_width=None,
        support_positions=0,
        decoder_cells=False,
        cram=cram,
        m=tuple(vectors) if vectors is not None else (1,),
        targets=tuple(targets) if targets is not None else ("random",),
    )
    folder = None if out is None else Path(out)
    return watch(
        lambda progress, stop: run_study(
            config, folder, command=command_line(), progress=progress, stop=stop, fresh=fresh
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
    )
