"""The main job."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmreach.cli.options import Fresh, Json, NoProgress, On, Open, Out, Quiet, Study
from lmreach.config import ExecutorConfig, StudyConfig
from lmreach.errors import LmreachError

if TYPE_CHECKING:
    from lmreach.progress import Progress
    from lmreach.results.study import StudyResults

STUDIES = "lmreach-studies"
"""Folder of the studies of several models, unless another is named."""


def study(
    model: str,
    /,
    *others: Annotated[str, Parameter(show_default=False)],
    config: Study = StudyConfig(),
    out: Out = None,
    fresh: Fresh = False,
    executor: On = ExecutorConfig(),
    open: Open = False,
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure how many outputs a model can be made to produce, beside the limits from theory.

    Computes the limits from the weights, measures the support of hidden states, optimises prompt vectors
    at several m for random and self-sampled targets, and writes a run folder with report.html,
    results.json, the ledger and a certificate for every reached string. It plans to fit its budget.

    Several models are studied one after the other, each with the whole budget and a folder of its own in
    --out; at the end one table compares them. In a file for --config they are the list models.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    others
        Further models.
    """
    from lmreach.cli import BEGUN
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.study.call import study as run_study

    def run(
        name: str, place: str | Path | None, begun: float | None
    ) -> "Callable[[Progress, Callable[[], bool]], StudyResults]":
        return lambda progress, stop: run_study(
            name,
            config,
            out=place,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
            begun=begun,
            executor=executor,
        )

    if not others:
        return watch(run(model, out, BEGUN), quiet=quiet, no_progress=no_progress, json=json, open=open)
    from lmreach.engine.folder import names_of_folders

    folder, models = Path(out or STUDIES), [model, *others]
    _check(models)
    places = [folder / name for name in names_of_folders(models)]
    codes = []
    for name, place in zip(models, places, strict=True):
        try:
            run_one = run(name, place, None)
            codes.append(watch(run_one, quiet=True, no_progress=quiet or no_progress, json=False, open=False))
        except LmreachError as error:
            print(f"lmreach: {name}: {error}", file=sys.stderr)
            codes.append(1)
        if codes[-1] > 2:  # stopped
            return codes[-1]
    finished = [str(place) for place in places if (place / "results.json").is_file()]
    return max(*codes, _compare(finished, folder / "comparison", open=open, json=json))


def _check(models: list[str]) -> None:
    """Refuse a model that is not there before the first is studied."""
    from lmreach.models.resolve import find

    for name in models:
        find(name)


def _compare(studies: list[str], folder: Path, *, open: bool, json: bool) -> int:
    from lmreach.cli.compare import compare

    return compare(tuple(studies), out=str(folder), open=open, json=json) if studies else 1
