"""The main job."""

from lmreach.cli.options import Fresh, Json, NoProgress, Open, Out, Quiet, Study
from lmreach.config import StudyConfig


def study(
    model: str,
    /,
    *,
    config: Study = StudyConfig(),
    out: Out = None,
    fresh: Fresh = False,
    open: Open = False,
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure how many outputs a model can be made to produce, beside the limits from theory.

    Computes the limits from the weights, measures the support of hidden states, optimises prompt vectors
    at several m for random and self-sampled targets, and writes a run folder with report.html,
    results.json, the ledger and a certificate for every reached string. It plans to fit its budget.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.study.call import study as run_study

    return watch(
        lambda progress, stop: run_study(
            model,
            config,
            out=out,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
            begun=BEGUN,
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
        open=open,
    )
