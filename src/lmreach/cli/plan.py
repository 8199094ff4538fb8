"""What a study would do, without doing it."""

from lmreach.cli.options import Json, NoProgress, Study
from lmreach.config import StudyConfig


def plan(
    model: str,
    /,
    *,
    config: Study = StudyConfig(),
    json: Json = False,
    no_progress: NoProgress = False,
) -> int:
    """Say what 'lmreach study' would measure, for how long and in how much memory, from a few timed steps.

    Takes the options of study. The load of the machine counts: the same command says less on a busy one.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli import BEGUN
    from lmreach.cli.running import show, watched
    from lmreach.runs.study.plan import plan as run_plan

    with watched(silent=no_progress) as (progress, _):
        found = run_plan(model, config, progress=progress, begun=BEGUN)
    show(found, json=json)
    return 0
