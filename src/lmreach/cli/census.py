"""How many outputs there are, counted."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmreach.cli.options import Census, Fresh, Json, NoProgress, On, Open, Out, Quiet
from lmreach.config import CensusConfig, ExecutorConfig, ReachableConfig
from lmreach.config.settings import several
from lmreach.errors import InputError, problem
from lmreach.files import check_place

if TYPE_CHECKING:
    from lmreach.cli.running import Ended
    from lmreach.progress import Progress
    from lmreach.results.answers import ReachabilityResults

_SEARCH = ReachableConfig()


def census(
    model: str,
    /,
    *,
    config: Census = CensusConfig(),
    missing: Annotated[
        str | None, Parameter(help="File for the sequences that no prompt produces, one per line.")
    ] = None,
    is_reachable: Annotated[
        str | None, Parameter(help="Ask whether this text (or ids:1,2,3) can be produced at all.")
    ] = None,
    runs: Annotated[
        tuple[str, ...],
        several(),
        Parameter(help="Run folders whose certificates count as proofs for --is-reachable."),
    ] = _SEARCH.runs,
    out: Out = None,
    fresh: Fresh = False,
    executor: On = ExecutorConfig(),
    open: Open = False,
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Count the different outputs of a model: exactly where every prompt can be tried.

    Three questions. --grid: all prompts of a finite grid of a tiny model, exactly. --prompt-tokens: prompts
    of real tokens, every id once, or a random sample with estimates of what it has not seen. --is-reachable:
    can this text be produced at all; "no" only with a proof. Without any of them: every one-token prompt.
    Stopped runs go on with the same command and the same --out.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:verse / builtin:random, or a tiny model to count exactly:
        tiny:llama,width=3,vocab=8,layers=1,bits=8,seed=0 (also gpt2 and mamba; positions=0, train=300).
    """
    _one_question(config, is_reachable)
    if missing is not None:
        check_place(Path(missing), remedy="choose another place for --missing")
    if is_reachable is not None:
        asked = _question(config, runs)
        return _ask(model, is_reachable, asked, out=out, fresh=fresh, json=json, silent=quiet or no_progress)
    from lmreach.cli import BEGUN
    from lmreach.engine.provenance import command_line
    from lmreach.runs.census.call import census as run_census

    return _watch(
        lambda progress, stop: run_census(
            model,
            config,
            out=out,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
            begun=BEGUN,
            executor=executor,
        ),
        missing=missing,
        json=json,
        quiet=quiet,
        silent=quiet or no_progress,
        open=open,
    )


def go_on(
    folder: Path,
    budget_s: float | None,
    executor: ExecutorConfig,
    *,
    json: bool,
    quiet: bool,
    silent: bool,
    open: bool,
) -> int:
    """Go on with a census from its folder alone; returns the exit code."""
    from lmreach.cli import BEGUN
    from lmreach.runs.census.run import resume_census

    return _watch(
        lambda progress, stop: resume_census(
            folder, budget_s=budget_s, progress=progress, stop=stop, begun=BEGUN, executor=executor
        ),
        missing=None,
        json=json,
        quiet=quiet,
        silent=silent,
        open=open,
    )


def search_on(folder: Path, budget_s: float | None, *, json: bool, silent: bool) -> int:
    """Go on with the search of a text from its folder alone; returns the exit code."""
    from lmreach.runs.census.reachability import resume_reachability

    return _search(
        lambda progress, stop: resume_reachability(folder, budget_s=budget_s, progress=progress, stop=stop),
        json=json,
        silent=silent,
    )


def _question(config: CensusConfig, runs: tuple[str, ...]) -> ReachableConfig:
    """Return the settings that both kinds of question have, where they were given."""
    from lmreach.config.given import configure

    both = {"load", "m", "bos", "seed", "budget_s"}
    shared = {name: getattr(config, name) for name in config.model_fields_set & both}
    return configure(ReachableConfig, None, {**shared, "runs": runs})


def _ask(
    model: str, text: str, asked: ReachableConfig, *, out: str | None, fresh: bool, json: bool, silent: bool
) -> int:
    from lmreach.engine.provenance import command_line
    from lmreach.runs.census.reachability import reachability

    return _search(
        lambda progress, stop: reachability(
            model,
            text,
            asked,
            out=out,
            save=True,
            fresh=fresh,
            command=command_line(),
            progress=progress,
            stop=stop,
        ),
        json=json,
        silent=silent,
    )


def _search(
    run: "Callable[[Progress, Callable[[], bool]], ReachabilityResults]", *, json: bool, silent: bool
) -> int:
    from lmreach.cli.running import show, watched

    with watched(silent=silent) as (progress, stop):
        answer = run(progress, stop)
    show(answer, json=json)
    if answer.interrupted and answer.folder is not None:
        print(f"lmreach: interrupted; go on with: lmreach resume {answer.folder}", file=sys.stderr)
        return stop.code
    return 0


def _one_question(config: CensusConfig, text: str | None) -> None:
    asked = {
        "--grid": config.grid is not None,
        "--prompt-tokens": "prompt_tokens" in config.model_fields_set,
        "--is-reachable": text is not None,
    }
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise InputError(
            problem(f"one of {', '.join(asked)}", " and ".join(given), "ask one question at a time")
        )


def _watch(
    run: "Callable[[Progress, Callable[[], bool]], Ended]",
    *,
    missing: str | None,
    json: bool,
    quiet: bool,
    silent: bool,
    open: bool,
) -> int:
    from lmreach.cli.census_table import write_missing
    from lmreach.cli.running import watch

    ended: list[Path] = []

    def kept(progress: "Progress", stop: Callable[[], bool]) -> "Ended":
        end = run(progress, stop)
        ended.extend([] if end.folder is None else [end.folder])
        return end

    code = watch(kept, quiet=quiet, no_progress=silent, json=json, open=open)
    if missing is not None:
        from lmreach.results import open_results

        write_missing(open_results(ended[0]), Path(missing))
    return code
