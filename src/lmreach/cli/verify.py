"""Check a run's claims."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from lmreach.cli.options import Json, NoProgress, Quiet
from lmreach.cli.options import Verify as VerifyOptions
from lmreach.config import VerifyConfig

if TYPE_CHECKING:
    from lmreach.results.certificates import Quantised, Verdict


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
    from lmreach.experiments.cramming.quantise import FORMATS
    from lmreach.progress.terminal import Terminal
    from lmreach.results.certificates import Verification
    from lmreach.runs.certificates.verify import quantised_summary, verify_run

    formats = tuple(FORMATS) if config.quantise else ()
    terminal = None if quiet or no_progress else Terminal()
    try:
        verdicts = verify_run(Path(run), formats=formats, progress=terminal)
    finally:
        if terminal is not None:
            terminal.close()
    rows = quantised_summary(verdicts)
    if json:
        whole = Verification(verdicts=tuple(verdicts), quantised=rows)
        print(dumps(whole.model_dump(mode="json"), indent=1, allow_nan=False))
    else:
        _print(verdicts, rows)
    return 0 if all(one.held for one in verdicts) else 1


def _print(verdicts: "list[Verdict]", rows: "tuple[Quantised, ...]") -> None:
    for one in verdicts:
        if not one.held:
            print(f"{one.status.upper()} {one.key} ({one.cell}): {one.why}")
    held = [one for one in verdicts if one.held]
    tokens = sum(one.emitted for one in held)
    print(f"{len(held)} of {len(verdicts)} certificates held ({tokens} tokens)")
    if rows:
        print("\nvectors rounded to    bits/coordinate   claims that hold whole   tokens that still come out")
    for row in rows:
        whole, kept = f"{row.hold_whole} of {row.claims}", f"{row.tokens_kept} of {row.tokens_claimed}"
        print(f"{row.format:<20}{row.bits_per_coordinate:>17.2f}{whole:>25}{kept:>29}")
