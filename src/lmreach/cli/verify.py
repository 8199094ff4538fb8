"""Check a run's claims."""

from dataclasses import asdict
from json import dumps
from pathlib import Path

from lmreach.cli.options import Json


def verify(run: str, /, *, json: Json = False) -> int:
    """Decode every certificate of a run again, and say which claims hold; exit code 1 if one does not.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.study.verify import verify_run

    verdicts = verify_run(Path(run))
    failed = [one for one in verdicts if not one.held]
    if json:
        print(dumps([asdict(one) for one in verdicts], indent=1))
    else:
        for one in failed:
            print(f"FAILED {one.key} ({one.cell}): {one.why}")
        tokens = sum(one.emitted for one in verdicts if one.held)
        print(f"{len(verdicts) - len(failed)} of {len(verdicts)} certificates held ({tokens} tokens)")
    return 1 if failed else 0
