"""The cells of a model's decoder: their shares, unreachable tokens, and a map."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmreach.cli.options import Json, Load, NoProgress
from lmreach.config import LoadConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from lmreach.cli.progress import Interrupt

_EVERY_S = 10.0
_NAMED = 12


def cells(
    model: str,
    /,
    *,
    measure: Annotated[
        str | None,
        Parameter(help="Shares of what: gaussian (norm-shaped; default), ellipsoid, ball, box, empirical."),
    ] = None,
    support: Annotated[
        str | None,
        Parameter(help="File written by lmreach support: for ball and box, and the box of --unreachable."),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative_iterable=(),
            help="Prompts of the empirical measure: random, self, text:FILE, ...; default: random self.",
        ),
    ] = None,
    samples: Annotated[
        int | None, Parameter(help="States to draw; default: about a minute's worth on two cores.")
    ] = None,
    convention: Annotated[
        str | None,
        Parameter(help="argmax (what decoding takes; default) or nearest-row (as published)."),
    ] = None,
    rare: Annotated[
        int | None,
        Parameter(help="Tokens to draw from each distribution for E ln share, rare cells included."),
    ] = None,
    text: Annotated[
        str | None, Parameter(help="Text file whose token frequencies are one distribution of --rare.")
    ] = None,
    unreachable: Annotated[
        bool, Parameter(negative="", help="Say of every token whether any hidden state can emit it.")
    ] = False,
    map_texts: Annotated[
        list[str] | None,
        Parameter(
            name="--map",
            consume_multiple=True,
            negative_iterable=(),
            help="Three texts: draw the cells on the plane through their last hidden states.",
        ),
    ] = None,
    out: Annotated[str, Parameter(name=["--out", "-o"], help="Folder for map.svg and map.png.")] = ".",
    seed: Annotated[int, Parameter(help="Seed of the states.")] = 0,
    load: Load = LoadConfig(),
    json: Json = False,
    no_progress: NoProgress = False,
) -> int:
    """Estimate how big each token's cell is; find unreachable tokens; draw the cells between three texts.

    Shares are estimated unless another part is asked for; with --samples, --measure or --convention in any
    case.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    chosen = measure or "gaussian"
    others = unreachable or map_texts is not None or rare is not None
    wants_shares = not others or measure is not None or samples is not None or convention is not None
    _check(chosen, wants_shares, support, prompts, unreachable, map_texts, seed)
    if text is not None and rare is None:
        raise InputError(problem("--rare with --text", "none", "say how many tokens, such as --rare 64"))

    def say(line: str) -> None:
        if not no_progress:
            print(line, file=sys.stderr)

    from lmreach.cli.progress import Interrupt
    from lmreach.experiments.cells.decoder import decoder_of
    from lmreach.experiments.cells.rare import RareStopped
    from lmreach.models.load import load as load_model
    from lmreach.runs.cells import parts

    loaded = load_model(model, load, progress=say)
    decoder = decoder_of(loaded)
    saved = None if support is None else parts.support_of(loaded, support)
    found: dict[str, Any] = {"model": loaded.facts.name, "vocab": decoder.vocab, "width": decoder.width}
    with Interrupt() as interrupt:
        if map_texts:
            found["map"] = parts.map_record(loaded, decoder, map_texts)
            found["files"] = _draw(found["map"], Path(out))
        if wants_shares:
            states = parts.measure_of(
                loaded, chosen, support=saved, kinds=tuple(prompts or ("random", "self")), seed=seed
            )
            total = parts.default_samples(decoder) if samples is None else samples
            found["shares"] = parts.shares_record(
                loaded,
                decoder,
                states,
                samples=total,
                convention=convention or "argmax",
                say=_counting(say, total),
                stop=_stopping(interrupt),
            )
        if rare is not None and not interrupt.asked:
            with suppress(RareStopped):
                found["rare"] = parts.rare_record(
                    loaded,
                    decoder,
                    tokens=rare,
                    text=text,
                    seed=seed,
                    progress=_estimating(say),
                    stop=interrupt,
                )
        if unreachable and not interrupt.asked:
            found["unreachable"] = parts.unreachable_record(
                loaded, decoder, support=saved, stop=interrupt, on_progress=_judging(say)
            )
    if json:
        print(dumps(found, indent=1, allow_nan=False))
    else:
        _print(found)
    return 130 if interrupt.asked else 0


def _check(
    measure: str,
    wants_shares: bool,
    support: str | None,
    prompts: list[str] | None,
    unreachable: bool,
    map_texts: list[str] | None,
    seed: int,
) -> None:
    """Refuse before the model is loaded what can be refused then."""
    if seed < 0:
        raise InputError(problem("a seed of at least 0", str(seed), "pass another"))
    if map_texts is not None and len(map_texts) != 3:
        raise InputError(problem("three texts for the map", str(len(map_texts)), 'give --map "a" "b" "c"'))
    needs = wants_shares and measure in ("ball", "box")
    if needs and support is None:
        remedy = "measure one: lmreach support MODEL --out FILE, then --support FILE"
        raise InputError(problem(f"a support for the {measure} measure", "support missing", remedy))
    if support is not None and not (needs or unreachable):
        raise InputError(
            problem("--measure ball or box, or --unreachable, with --support", "none of them", "leave it out")
        )
    if prompts and not (wants_shares and measure == "empirical"):
        raise InputError(problem("--measure empirical with --prompts", f"{measure}", "leave --prompts out"))


def _draw(record: dict[str, Any], folder: Path) -> list[str]:
    from lmreach.report.cells.map import save_cell_map

    return [str(path) for path in save_cell_map(record, folder)]


def _stopping(interrupt: "Interrupt") -> Callable[[], bool]:
    """Stop at the next block, but not before the first: shares of no states are none."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 1 and interrupt()

    return stop


def _counting(say: Callable[[str], None], total: int) -> Callable[[int], None]:
    begun = spoke = time.monotonic()
    say(f"{total:,} states")

    def told(done: int) -> None:
        nonlocal spoke
        now = time.monotonic()
        if done < total and now - spoke > _EVERY_S:
            spoke = now
            left = (now - begun) / done * (total - done)
            say(f"{done:,} of {total:,} states, about {left:.0f} s left")

    return told


def _estimating(say: Callable[[str], None]) -> Callable[[int, int], None]:
    begun = spoke = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal spoke
        now = time.monotonic()
        if 0 < done < total and now - spoke > _EVERY_S:
            spoke = now
            say(f"{done:,} of {total:,} cells, about {(now - begun) / done * (total - done):.0f} s left")

    return told


def _judging(say: Callable[[str], None]) -> Callable[[str, int, int], None]:
    spoke, stage_before = time.monotonic(), ""

    def told(stage: str, done: int, total: int) -> None:
        nonlocal spoke, stage_before
        now = time.monotonic()
        if stage != stage_before or now - spoke > _EVERY_S:
            spoke, stage_before = now, stage
            say(f"{stage}: {done:,} of {total:,} tokens")

    return told


def _print(found: dict[str, Any]) -> None:
    print(f"{found['model']}: {found['vocab']:,} usable tokens, hidden width {found['width']:,}")
    if "shares" in found:
        _print_shares(found["shares"], found["vocab"])
    if "rare" in found:
        _print_rare(found["rare"])
    if "unreachable" in found:
        _print_unreachable(found["unreachable"])
    if "map" in found:
        _print_map(found["map"], found["files"])


def _print_shares(part: dict[str, Any], vocab: int) -> None:
    level = f"{100 * part['confidence']:g} %"
    even = 1 / vocab
    rest = vocab - part["hit"]
    print(f"\nShares of {part['measure_words']}; {part['convention']} cells")
    print(f"  states drawn          {part['samples']:,} (seed {part['seed']})")
    print(f"  cells hit             {part['hit']:,} of {vocab:,} ({100 * part['coverage']:.3g} %)")
    print(f"  80 % of the states    in {part['holders_80']:,} cells ({100 * part['share_holding_80']:.3g} %)")
    print(f"  Gini coefficient      {part['gini']:.4f} (0: all cells alike)")
    if rest:
        print(f"  cells without a hit   {rest:,}, each below {part['unhit_limit']:.2e} ({level});")
        print(f"                        together {_mass(part)} (Good-Turing estimate)")
    if not part["independent"]:
        print("  states of one prompt depend on each other: true intervals are wider than those below")
    print(f"\n  {'largest cells':<26}{'share':>10}{f'{level} interval':>26}{'share x V':>12}")
    for cell in part["largest"]:
        interval = f"{cell['low']:.3e} to {cell['high']:.3e}"
        print(
            f"  {_shown(cell['text']):<26}{cell['share']:>10.3e}{interval:>26}{cell['share'] / even:>12.1f}"
        )


def _print_rare(part: dict[str, Any]) -> None:
    count = len(part["tokens"])
    print("\nMean log share of the cells of drawn tokens")
    print(f"  {part['measure']}")
    print(f"  {part['draws_per_source']} draws from each distribution, {count} different tokens in all\n")
    print(f"  {'tokens drawn from':<24}{'nats per token':>15}{'s.e.':>8}{'95 % interval':>22}")
    for mean in part["means"]:
        interval = f"{mean['low']:.2f} to {mean['high']:.2f}"
        value = f"{_SIGNS[mean['verdict']]}{mean['value']:.3f}"
        print(f"  {_cut(mean['name'], 23):<24}{value:>15}{mean['se']:>8.3f}{interval:>22}")
    print(f"\n  tokens per vector these leave ({part['limit_dtype']}):")
    for mean in part["means"]:
        for name, limit in mean["limits"].items():
            high = "no upper end" if limit["high"] is None else f"{limit['high']:.1f}"
            value = f"{_SIGNS[limit['verdict']]}{limit['value']:.1f}"
            print(f"  {_cut(mean['name'], 23):<24}{name:<22}{value:>9} ({limit['low']:.1f} to {high})")
    for ratio in part["ratios"]:
        told = f"{_SIGNS[ratio['verdict']]}{ratio['value']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"
        print(f"  predicted slope of {ratio['text']} over uniform tokens: {told}")


_SIGNS = {"estimated": "", "at_most": "<= ", "at_least": ">= ", "unknown": "not known, about "}


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _mass(part: dict[str, Any]) -> str:
    if part["unseen_mass"] > 0:
        return f"about {100 * part['unseen_mass']:.2g} %"
    return f"under {100 / part['samples']:.1g} %"


def _print_unreachable(part: dict[str, Any]) -> None:
    print(f"\nTokens that some hidden state can emit ({part['support']})")
    for verdict, count in part["counts"].items():
        print(f"  {verdict:<14}{count:>10,}")
    for verdict in ("unreachable", "tie-only"):
        lost = part[verdict]
        if lost:
            named = ", ".join(f"{i} {_shown(part['texts'][str(i)])}" for i in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
            print(f"  {verdict}: {named}{more}")
    if part["unreachable"] or part["tie-only"]:
        removed = part["share_removed_with_ties"].items()
        shares = "; ".join(f"n = {n}: {100 * share:.3g} %" for n, share in removed)
        print(f"  uniform sequences of n tokens that hold one of them, hence inaccessible: {shares}")


def _print_map(part: dict[str, Any], files: list[str]) -> None:
    print(f"\nMap: {len(part['cells'])} tokens win on the plane through the three texts")
    for i, text in enumerate(part["texts"], 1):
        print(f"  {i}  {_shown(text['text'], 50)} -> {_shown(text['token'])}, lead {text['margin']:.3g}")
    for file in files:
        print(f"written: {file}")


def _shown(text: str, characters: int = 22) -> str:
    from lmreach.report.kit.format import plain

    told = plain(text)
    return f"'{told}'" if len(told) <= characters else f"'{told[: characters - 1]}…'"
