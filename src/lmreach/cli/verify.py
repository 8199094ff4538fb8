"""Check a run's claims."""

from lmreach.cli.options import Json, NoProgress, Quiet
from lmreach.cli.options import Verify as VerifyOptions
from lmreach.config import VerifyConfig


def verify(
    run: str,
    /,
    *,
    config: VerifyOptions = VerifyConfig(),
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Decode every certificate of a run again, and say which claims hold; exit code 1 if one does not.

    Decoding is greedy, at batch 1 in the run's dtype and in float32, and in a batch of eight: a claim that
    holds in some of these only is fragile, and counts as one that does not hold.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.cli.running import show, telling
    from lmreach.runs.certificates.call import verify as run_verify

    with telling(silent=quiet or no_progress) as progress:
        found = run_verify(run, config, progress=progress)
    show(found, json=json)
    return 0 if found.held else 1
