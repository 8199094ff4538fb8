"""Cramming alone: a fixed number of strings at each m."""

from lmreach.cli.options import CramRun, Fresh, Json, NoProgress, On, Open, Out, Quiet
from lmreach.config import CramRunConfig, ExecutorConfig


def cram(
    model: str,
    /,
    *,
    config: CramRun = CramRunConfig(),
    out: Out = None,
    fresh: Fresh = False,
    executor: On = ExecutorConfig(),
    open: Open = False,
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Optimise prompt vectors until greedy decoding emits the target; gives curve, n50 and slope.

    Runs every string asked for, however long it takes, unless --budget ends it. Ctrl-C leaves a valid run;
    'lmreach resume' goes on with it.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.study.call import cram as run_cram

    return watch(
        lambda progress, stop: run_cram(
            model,
            config,
            out=out,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
            executor=executor,
            begun=BEGUN,
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
        open=open,
    )
