"""The result of a census in sentences, for readers who know no theory."""

import math

from lmreach.report.census.entries import grid_entries, lengths, rough, token_entries
from lmreach.report.kit.format import is_number, number
from lmreach.report.kit.reading import Record

__all__ = ["sentences"]


def sentences(census: Record) -> list[str]:
    """Say the result, one sentence per entry."""
    return [*map(_grid_sentence, grid_entries(census)), *map(_token_sentence, token_entries(census))]


def _grid_sentence(grid: Record) -> str:
    last = lengths(grid)[-1]
    length, vectors = int(last["length"]), "1 vector" if grid["m"] == 1 else f"{grid['m']} vectors"
    known = "" if grid.get("exact", True) else "about "
    all_texts = rough(math.exp(min(length * math.log(grid["vocab"]), 690.0)))
    orders = "" if grid.get("order", "all") == "all" else " (order before the last vector aside)"
    text = (
        f"All {number(int(grid['prompts']))} prompts{orders} of {vectors} with {grid['q']} values per "
        f"coordinate were tried: they give {known}{rough(float(last['distinct']))} different outputs of "
        f"{length} tokens, of {all_texts} that there are."
    )
    full = grid.get("fully_reachable")
    if not is_number(full):
        return text
    if full == 0:
        return f"{text} Not even every single token can be produced."
    unit = "token" if full == 1 else "tokens"
    return f"{text} Every text of up to {full} {unit} can be produced; longer ones only in part."


def _token_sentence(entry: Record) -> str:
    last = lengths(entry)[-1]
    prompts, length = int(entry["prompts"]), int(last["length"])
    kind = "one token" if entry["prompt_tokens"] == 1 else f"{entry['prompt_tokens']} tokens"
    tried = f"all {number(prompts)}" if entry.get("complete") else f"{number(prompts)} random"
    text = (
        f"After {tried} prompts of {kind} the model goes on in {number(int(last['distinct']))} different "
        f"ways ({length} tokens each)"
    )
    if last.get("top"):
        best = last["top"][0]
        share = best["prompts"] / prompts
        times = "1 prompt" if best["prompts"] == 1 else f"{number(int(best['prompts']))} prompts"
        text += f"; the most popular way follows {times} ({100 * share:.2g} %)"
    chao = last.get("chao1")
    if chao:
        text += (
            f". All prompts of that length together have more: at least about {rough(chao['value'])} "
            f"different ways (95 % interval {rough(chao['low'])} to {rough(chao['high'])}, an estimate "
            "from below)"
        )
    return text + "."
