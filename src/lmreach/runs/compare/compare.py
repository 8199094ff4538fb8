"""Several studies side by side: read, named apart, and compared; nothing is computed again."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lmreach.errors import InputError, problem
from lmreach.results import AnyResults, StudyResults, open_results
from lmreach.results.compare import Comparison
from lmreach.runs.compare.differences import differences
from lmreach.runs.compare.entries import measured_entries, published_entries

__all__ = ["compare"]

Run = str | Path | AnyResults


def compare(*runs: Run, published: Sequence[str] = ()) -> Comparison:
    """Put studies beside one another, and say where they differ in more than their models.

    Parameters
    ----------
    runs
        Folders of studies, results.json files of any version, or results as `open_results` or a call returned
        them. One is enough where published slopes stand beside it.
    published
        Names of models whose published slopes stand beside, or ``all``; they are marked as published.

    Returns
    -------
    Comparison
        n50 and slopes in tokens and tokens per vector, limits, ratios, and differences. Print it, or use
        ``plot()``, ``to_pandas()`` and ``to_json()``.

    Raises
    ------
    OutputError
        A run that cannot be read.
    InputError
        No run at all, a run that is no study, or a model with no published slope.

    Examples
    --------
    >>> compare("docs/results/verse", "docs/results/gemma-3-270m").entries[0].slope.value  # doctest: +SKIP
    4.345652173913043
    """
    if not runs:
        raise InputError(problem("at least one RUN", "none", "name the folders of the studies to compare"))
    studies = [(_folder(run), _study(run)) for run in runs]
    named = dict(zip(_names(studies), (one for _, one in studies), strict=True))
    entries = [entry for name, one in named.items() for entry in measured_entries(name, one)]
    entries += published_entries(published)
    return Comparison(entries=tuple(entries), differences=differences(named, entries))


def _study(run: Run) -> StudyResults:
    results = open_results(Path(run)) if isinstance(run, str | Path) else run
    if not isinstance(results, StudyResults):
        place = f"'{run}', " if isinstance(run, str | Path) else ""
        got = f"{place}results of kind {results.kind}"
        raise InputError(problem("a study", got, "give the folder or the results.json of 'lmreach study'"))
    if not results.accessibility:
        place = f"'{run}'" if isinstance(run, str | Path) else results.model.name
        got = f"{place}, in which nothing was measured"
        raise InputError(problem("a study with measured strings", got, "go on with 'lmreach resume' first"))
    return results


def _folder(run: Run) -> str:
    """Return the name of the folder that a run lies in; empty for results without one."""
    if not isinstance(run, str | Path):
        return ""
    path = Path(run).resolve()
    return path.name if path.is_dir() or path.name != "results.json" else path.parent.name


def _within(study: StudyResults) -> str:
    """Return what the vectors of a study were held to; empty: nothing."""
    return study.accessibility[0].within


def _names(studies: Sequence[tuple[str, StudyResults]]) -> list[str]:
    """Name each study by its model; where that names two, by its set, folder or number too."""
    names = [one.model.name for _, one in studies]
    sets = {
        name: {_within(one) for other, (_, one) in zip(names, studies, strict=True) if other == name}
        for name in names
    }
    names = [
        f"{name} within {_within(one) or 'any float32'}" if len(sets[name]) > 1 else name
        for name, (_, one) in zip(names, studies, strict=True)
    ]
    shared = Counter(names)
    names = [
        f"{name} ({folder})" if shared[name] > 1 and folder else name
        for name, (folder, _) in zip(names, studies, strict=True)
    ]
    shared, seen = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(f"{name} #{seen[name]}" if shared[name] > 1 else name)
    return numbered
