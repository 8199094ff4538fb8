"""Where a run is."""

from collections import Counter
from pathlib import Path


def status(run: str, /) -> int:
    """Say how many strings of each condition a run has finished, and how to go on.

    Parameters
    ----------
    run
        Folder of the run.
    """
    from lmreach.config import StudyConfig
    from lmreach.engine.folder import existing
    from lmreach.engine.store import Store
    from lmreach.runs.study.reach_schedule import ReachSchedule

    folder = existing(Path(run))
    with Store(folder) as store:
        if store.meta("census") is not None:
            print(f"census: {len(store.keys())} parts counted")
            print("nothing left to do" if _finished(folder) else f"go on with: lmreach resume {run}")
            return 0
        if store.meta("copy") is not None:
            print(f"copying: {len(store.keys())} lengths and cramming conditions measured{_training(folder)}")
            print("nothing left to do" if _copied(folder) else f"go on with: lmreach resume {run}")
            return 0
        config = StudyConfig.model_validate(store.meta("config"))
        done = Counter(trial["cell"] for trial in store.trials())
    conditions = ReachSchedule.of(config.targets, config.m, config.cram.strings, 1).conditions
    asked = config.cram
    if asked.protocol == "published" and not asked.length:
        for condition in conditions:
            ran = done[condition.name]
            print(f"{condition.name}: {ran} trials; the grid ends where almost no string is reached")
        print("nothing left to do" if _finished(folder) else f"go on with: lmreach resume {run}")
        return 0
    wanted = asked.strings * max(len(set(asked.length)), 1)
    noun = "strings" if asked.protocol == "frontier" else "trials"
    for condition in conditions:
        print(f"{condition.name}: {done[condition.name]} of {wanted} {noun}")
    open_strings = sum(max(wanted - done[condition.name], 0) for condition in conditions)
    print(
        "nothing left to do"
        if open_strings == 0
        else f"{open_strings} open; go on with: lmreach resume {run}"
    )
    return 0


def _finished(folder: Path) -> bool:
    """Whether the results that a census wrote last leave nothing out."""
    from lmreach.engine.folder import read_json

    path = folder / "results.json"
    return path.is_file() and not read_json(path)["not_done"]


def _training(folder: Path) -> str:
    """Say where the training of a copier is, if there is one."""
    from lmreach.engine.folder import read_json

    path = folder / "training" / "training.json"
    if not path.is_file():
        return ""
    kept = read_json(path)
    return f"; training {'ended' if kept['ended'] else 'stopped'} after {kept['step']} steps"


def _copied(folder: Path) -> bool:
    """Whether the results that a copying run wrote last are those of a whole run."""
    from lmreach.engine.folder import read_json

    path = folder / "results.json"
    return path.is_file() and not read_json(path)["provenance"]["interrupted"]
