"""Where a run is."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmreach.engine.run import Run


def status(run: str, /) -> int:
    """Say how far a run of any kind is, what is left and why, and how to go on.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.engine.run import RunKind, open_run

    begun = open_run(Path(run))
    with begun.ledger() as store:
        counts = store.counts()
    print(f"{begun.kind} of {begun.envelope.model or begun.envelope.config.model or 'a model trained here'}")
    if begun.kind is RunKind.STUDY:
        _print_study(begun, counts)
    else:
        for cell, count in counts.items():
            print(f"{cell}: {count} {_NOUNS[begun.kind][count > 1]}")
        if begun.kind is RunKind.COPY:
            _print_training(begun)
    return _print_end(begun)


_NOUNS = {"census": ("part", "parts"), "copy": ("record", "records"), "reachable": ("answer", "answers")}


def _print_study(run: "Run", counts: dict[str, int]) -> None:
    from lmreach.config import StudyConfig
    from lmreach.runs.study.reach_schedule import ReachSchedule

    config = run.envelope.config
    assert isinstance(config, StudyConfig)
    asked = config.cram
    grid = asked.protocol == "published" and not asked.length
    wanted = asked.strings * max(len(set(asked.length)), 1)
    noun = "strings" if asked.protocol == "frontier" else "trials"
    for condition in ReachSchedule.of(config.targets, config.m, asked.strings, 1).conditions:
        done = counts.get(condition.name, 0)
        ends = "trials; the grid ends where almost no string is reached" if grid else f"of {wanted} {noun}"
        print(f"{condition.name}: {done} {ends}")


def _print_training(run: "Run") -> None:
    from lmreach.engine.folder import read_json

    path = run.folder / "training" / "training.json"
    if path.is_file():
        kept = read_json(path)
        print(f"training {'ended' if kept['ended'] else 'stopped'} after {kept['step']} steps")


def _print_end(run: "Run") -> int:
    """Say what is left, and how to go on with it."""
    writer, end = run.writer(), run.end()
    if writer is not None:
        print(f"running: {writer} writes to it")
        return 0
    going_on = f"go on with: lmreach resume {run.folder}"
    if end is None:
        print(f"it has not come to its end; {going_on}")
        return 0
    for failed in end.failed:
        print(f"failed: {failed}")
    for left in end.left:
        print(f"{'open' if left.open else 'not needed'}: {left.what} ({left.why})")
    print(going_on if end.open or end.failed else "nothing left to do")
    return 0
