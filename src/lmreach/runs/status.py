"""How far a run is, read from its folder alone; no model is loaded."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from lmreach.config import StudyConfig
from lmreach.engine.folder import read_json
from lmreach.engine.run import Run, RunKind, open_run
from lmreach.results.status import PartStatus, RunStatus, Unfinished
from lmreach.runs.study.reach_schedule import ReachSchedule

__all__ = ["status"]

_NOUNS = {RunKind.CENSUS: "part", RunKind.COPY: "record", RunKind.REACHABLE: "answer"}


def status(run: str | Path) -> RunStatus:
    """Say how far a run of any kind is, what is left and why, and how to go on.

    Parameters
    ----------
    run
        Folder of the run; one that another process writes to as well.

    Raises
    ------
    OutputError
        The folder is that of no run.
    """
    there = open_run(Path(run))
    with there.ledger() as store:
        counts = store.counts()
    writer, end = there.writer(), there.end()
    goes_on = end is None or bool(end.open or end.failed)
    return RunStatus(
        folder=str(there.folder),
        kind=there.kind.value,
        model=there.envelope.model or there.envelope.config.model or "",
        state="running" if writer is not None else "stopped" if goes_on else "done",
        writer=writer,
        parts=tuple(_study(there, counts) if there.kind is RunKind.STUDY else _others(there, counts)),
        left=() if end is None else tuple(Unfinished(what=x.what, why=x.why, open=x.open) for x in end.left),
        failed=() if end is None else end.failed,
        came_to_its_end=end is not None,
        go_on=f"lmreach resume {there.folder}" if goes_on and writer is None else "",
    )


def _study(run: Run, counts: Mapping[str, int]) -> Iterator[PartStatus]:
    config = run.envelope.config
    assert isinstance(config, StudyConfig)
    asked = config.cram
    # The published grid ends where almost no string is reached: nobody knows before where that is.
    grid = asked.protocol == "published" and not asked.length
    wanted = None if grid else asked.strings * max(len(set(asked.length)), 1)
    noun = "string" if asked.protocol == "frontier" else "trial"
    for condition in ReachSchedule.of(config.targets, config.m, asked.strings, 1).conditions:
        done = counts.get(condition.name, 0)
        yield PartStatus(name=condition.name, done=done, of=wanted, noun=noun)


def _others(run: Run, counts: Mapping[str, int]) -> Iterator[PartStatus]:
    for name, count in counts.items():
        yield PartStatus(name=name, done=count, of=None, noun=_NOUNS[run.kind])
    path = run.folder / "training" / "training.json"
    if run.kind is RunKind.COPY and path.is_file():
        kept = read_json(path)
        yield PartStatus(
            name="training", done=int(kept["step"]), of=None, noun="step", ended=bool(kept["ended"])
        )
