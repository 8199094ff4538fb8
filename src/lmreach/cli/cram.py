"""Cramming alone: a fixed number of strings at each m, without a budget."""

from lmreach.cli.options import CramRun, Fresh, Json, NoProgress, Out, Quiet
from lmreach.config import CramRunConfig


def cram(
    model: str,
    /,
    *,
    config: CramRun = CramRunConfig(),
    out: Out = None,
    fresh: Fresh = False,
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Optimise prompt vectors until greedy decoding emits the target; gives curve, n50 and slope.

    Runs every string asked for, however long it takes (Ctrl-C leaves a valid run; go on with
    'lmreach resume').

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.study.call import cram as run_cram

    return watch(
        lambda progress, stop: run_cram(
            model, config, out=out, fresh=fresh, command=command_line(), progress=progress, stop=stop
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
    )
