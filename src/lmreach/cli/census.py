"""How many outputs there are, counted."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmreach.cli.options import Fresh, Json, Load, NoProgress, Out, Quiet, Vectors, seconds
from lmreach.config import Bos, LoadConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from lmreach.engine.run import RunEnd
    from lmreach.progress import Progress

Several = {"consume_multiple": True, "negative_iterable": ()}


def census(
    model: str,
    /,
    *,
    grid: Annotated[
        str | None,
        Parameter(help="Exact: try every prompt whose coordinates take q values, e.g. --grid q=4 or 4."),
    ] = None,
    vectors: Vectors = None,
    length: Annotated[
        int | None,
        Parameter(name=["-n", "--length"], help="Tokens after each prompt; default 12 on a grid, else 8."),
    ] = None,
    extent: Annotated[
        float | None, Parameter(help="Largest coordinate on the grid; default: that of real inputs.")
    ] = None,
    order: Annotated[
        str, Parameter(help="all: every prompt; sorted: one order of the vectors before the last.")
    ] = "all",
    max_prompts: Annotated[int, Parameter(help="Refuse a grid of more prompts.")] = 10_000_000,
    sketch: Annotated[
        bool, Parameter(negative="", help="Estimate in fixed memory, error stated, instead of counting.")
    ] = False,
    memory_rows: Annotated[int, Parameter(help="Distinct outputs in memory; more go to disk.")] = 1 << 23,
    missing: Annotated[
        str | None, Parameter(help="File for the sequences that no prompt produces, one per line.")
    ] = None,
    list_missing: Annotated[
        int, Parameter(help="Most missing sequences to list; their count is exact.")
    ] = 1000,
    prompt_tokens: Annotated[
        list[int] | None, Parameter(help="Prompts of real tokens: how many in each, e.g. 1 2.", **Several)
    ] = None,
    prompts: Annotated[
        int | None, Parameter(help="Prompts to try; default: every id for 1 token, 4096 for more.")
    ] = None,
    is_reachable: Annotated[
        str | None, Parameter(help="Ask whether this text (or ids:1,2,3) can be produced at all.")
    ] = None,
    runs: Annotated[
        list[str] | None, Parameter(help="Run folders whose certificates count as proofs.", **Several)
    ] = None,
    budget: Annotated[str, Parameter(help="Time to search for --is-reachable: 90s, 5m, 1h.")] = "5m",
    bos: Annotated[Bos, Parameter(help="Where a start token stands.")] = "none",
    seed: Annotated[int, Parameter(help="Seed of sampled prompts and of searches.")] = 0,
    out: Out = None,
    fresh: Fresh = False,
    load: Load = LoadConfig(),
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
    _one_question(grid, prompt_tokens, is_reachable)
    if is_reachable is not None:
        from lmreach.cli.census_ask import ask
        from lmreach.config.census import ReachableConfig

        asked = ReachableConfig(
            model=model,
            text=is_reachable,
            load=load,
            m=(1, 2, 4, 8) if vectors is None else tuple(vectors),
            runs=tuple(runs or ()),
            budget_s=seconds(budget),
            bos=bos,
            seed=seed,
        )
        place = None if out is None else Path(out)
        return ask(asked, place, fresh=fresh, json=json, silent=quiet or no_progress)
    from lmreach.runs.census.run import CensusConfig

    given: dict[str, Any] = {"m": vectors, "prompt_tokens": prompt_tokens}
    config = CensusConfig(
        model=model,
        load=load,
        n=length,
        bos=bos,
        seed=seed,
        grid=None if grid is None else _levels(grid),
        extent=extent,
        order=order,  # type: ignore[arg-type]
        sketch=sketch,
        memory_rows=memory_rows,
        max_prompts=max_prompts,
        list_missing=list_missing,
        prompts=prompts,
        **{name: tuple(values) for name, values in given.items() if values is not None},
    )
    from lmreach.engine.provenance import command_line
    from lmreach.runs.census.run import run_census

    folder = None if out is None else Path(out)
    return _watch(
        lambda progress, stop: run_census(
            config, folder, command=command_line(), progress=progress, stop=stop, fresh=fresh
        ),
        missing=missing,
        json=json,
        quiet=quiet,
        silent=quiet or no_progress,
    )


def go_on(folder: Path, *, json: bool, quiet: bool, silent: bool) -> int:
    """Go on with a census from its folder alone; returns the exit code."""
    from lmreach.runs.census.run import resume_census

    return _watch(
        lambda progress, stop: resume_census(folder, progress=progress, stop=stop),
        missing=None,
        json=json,
        quiet=quiet,
        silent=silent,
    )


def _one_question(grid: str | None, prompt_tokens: list[int] | None, text: str | None) -> None:
    asked = {"--grid": grid, "--prompt-tokens": prompt_tokens, "--is-reachable": text}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InputError(
            problem(f"one of {', '.join(asked)}", " and ".join(given), "ask one question at a time")
        )


def _levels(text: str) -> int:
    """Read ``q=4`` or ``4``."""
    try:
        return int(text.removeprefix("q="))
    except ValueError:
        wanted = "values per coordinate such as --grid q=4"
        raise InputError(problem(wanted, repr(text), "write a whole number")) from None


def _watch(
    run: "Callable[[Progress, Callable[[], bool]], RunEnd]",
    *,
    missing: str | None,
    json: bool,
    quiet: bool,
    silent: bool,
) -> int:
    from lmreach.cli.census_table import print_census, write_missing
    from lmreach.cli.running import watch

    ended: list[Path] = []

    def kept(progress: "Progress", stop: Callable[[], bool]) -> "RunEnd":
        end = run(progress, stop)
        ended.append(end.folder)
        return end

    def summary(folder: Path, results: dict[str, Any]) -> None:
        print_census(results["results"]["census"])
        print(f"\nreport: {folder / 'report.html'}")

    code = watch(kept, quiet=quiet, no_progress=silent, json=json, summary=summary)
    if missing is not None:
        from lmreach.engine.folder import read_json

        write_missing(read_json(ended[0] / "results.json")["results"]["census"], Path(missing))
    return code
