"""The result of a census in sentences, for readers who know no theory."""

import math

from lmreach.report.census.entries import rough
from lmreach.report.kit.format import hundredths, number
from lmreach.results.census import Census, GridCount, TokenCount

__all__ = ["sentences"]

_START = {
    "none": "without a start token",
    "before": "after the start token",
    "after": "followed by the start token",
}


def sentences(census: Census) -> list[str]:
    """Say the result, one sentence per entry."""
    return [*map(_grid_sentence, census.grids), *map(_token_sentence, census.tokens)]


def _grid_sentence(grid: GridCount) -> str:
    last = grid.lengths[-1]
    length, vectors = int(last.length), "1 vector" if grid.m == 1 else f"{grid.m} vectors"
    known = "" if grid.exact else "about "
    all_texts = rough(math.exp(min(length * math.log(grid.vocab), 690.0)))
    orders = "" if grid.order == "all" else " (order before the last vector aside)"
    text = (
        f"All {number(int(grid.prompts))} prompts{orders} of {vectors} with {grid.q} values per "
        f"coordinate were tried: they give {known}{rough(float(last.distinct))} different outputs of "
        f"{length} tokens, of {all_texts} that there are."
    )
    full = grid.fully_reachable
    if full is None:
        return text
    if full == 0:
        return f"{text} Not even every single token can be produced."
    unit = "token" if full == 1 else "tokens"
    return f"{text} Every text of up to {full} {unit} can be produced; longer ones only in part."


def _token_sentence(entry: TokenCount) -> str:
    last = entry.lengths[-1]
    prompts, length = int(entry.prompts), int(last.length)
    kind = "one token" if entry.prompt_tokens == 1 else f"{entry.prompt_tokens} tokens"
    tried = f"all {number(prompts)}" if entry.complete else f"{number(prompts)} random"
    text = (
        f"After {tried} prompts of {kind} {_START[entry.bos]} the model goes on in "
        f"{number(int(last.distinct))} different ways ({length} tokens each)"
    )
    if last.top:
        best = last.top[0]
        share = best.prompts / prompts
        times = "1 prompt" if best.prompts == 1 else f"{number(int(best.prompts))} prompts"
        text += f"; the most popular way follows {times} ({hundredths(share)})"
    chao = last.chao1
    if chao:
        text += (
            f". All prompts of that length together have more: at least about {rough(chao.value)} "
            f"different ways (95 % interval {rough(chao.low)} to {rough(chao.high)}, an estimate "
            "from below)"
        )
    return text + "."
