"""An invented census: three grids and two kinds of real prompts."""

import math

from lmreach.results import CensusResults, Interval
from lmreach.results.census import (
    Auc,
    Census,
    Discovery,
    GridCount,
    GridLength,
    Missing,
    Popular,
    Reasons,
    Richness,
    TokenCount,
    TokenLength,
)

from . import sample

VOCAB, PROMPTS = 2, (8, 64, 512)
TEXT = "<b>& it\n</b>"


def bounds(k: int, distinct: int, prompts: int, vocab: int) -> tuple[float, float]:
    return min(math.log(prompts), k * math.log(vocab)), math.log(distinct) - k * math.log(vocab)


def grid_length(k: int, distinct: int, prompts: int) -> GridLength:
    bound, share = bounds(k, distinct, prompts, VOCAB)
    return GridLength(
        length=k,
        distinct=distinct,
        entropy_bits=1.44,
        seen_once=3,
        seen_twice=1,
        top=(Popular(ids=(1,) * k, prompts=5, text=TEXT),),
        log_bound_nats=bound,
        log_share_nats=share,
    )


def estimated(k: int) -> GridLength:
    return GridLength(length=k, distinct=1e6, standard_error=8e3, log_bound_nats=20.0, log_share_nats=0.0)


def missing() -> Missing:
    return Missing(
        length=4,
        count=9,
        of=16,
        never_first=(0,),
        never=(1,),
        missing_though_all_tokens_occur=2,
        repeats=2,
        repeats_missing=1,
        listed=1,
        sequences=((1, 0, 1, 0),),
        reasons=Reasons(
            measure="given",
            unreachable_tokens=(1,),
            missing_with_unreachable_token=7,
            auc_cell_shares=Auc(value=0.8, low=0.6, high=1.0, positives=7, negatives=9),
            auc_cell_shares_of_occurring_tokens=Auc(value=0.5, low=0.2, high=0.8, positives=3, negatives=4),
        ),
    )


def grid(m: int, prompts: int) -> GridCount:
    return GridCount(
        q=2,
        width=3,
        m=m,
        n=12,
        vocab=VOCAB,
        order="all",
        extent=1.5,
        prompts=prompts,
        exact=True,
        fully_reachable=m,
        half_reachable=m + 2,
        lengths=tuple(grid_length(k, min(2**k, prompts // 2), prompts) for k in range(1, 13)),
        tied=0,
        close=2,
        decoded_again=2,
        missing=missing(),
        seconds=0.5,
    )


def sketched() -> GridCount:
    change = {
        "lengths": (estimated(1), estimated(2)),
        "exact": False,
        "fully_reachable": None,
        "half_reachable": None,
        "missing": None,
    }
    return grid(1, 8).model_copy(update=change)


def token_length(k: int, prompts: int, guess: Richness | None) -> TokenLength:
    bound, share = bounds(k, 30 * k, prompts, 1000)
    return TokenLength(
        length=k,
        distinct=30 * k,
        entropy_bits=1.44,
        seen_once=3,
        seen_twice=1,
        top=(Popular(ids=(1,) * k, prompts=5, text=TEXT),),
        log_bound_nats=bound,
        log_share_nats=share,
        chao1=guess,
        ace=guess,
        coverage=guess and Interval(value=0.42, low=0.4, high=0.44, confidence=0.95),
    )


def tokens(m: int, prompts: int, guess: Richness | None) -> TokenCount:
    return TokenCount(
        prompt_tokens=m,
        n=8,
        vocab=1000,
        bos="none",
        seed=0,
        prompts=prompts,
        planned=prompts,
        complete=guess is None,
        lengths=tuple(token_length(k, prompts, guess) for k in range(1, 9)),
        discovery=tuple(
            Discovery(length=k, prompts=(1, 10, 100, prompts), distinct=(1.0, 9.0, 25.0, 30.0 * k))
            for k in range(1, 9)
        ),
        tied=0,
        close=1,
        seconds=3.0,
    )


def census() -> Census:
    guess = Richness(value=4e7, low=1e6, high=9e8, standard_error=1e6, seen=300, confidence=0.95)
    grids = tuple(grid(m, prompts) for m, prompts in enumerate(PROMPTS, start=1))
    return Census(grids=grids, tokens=(tokens(1, 1000, None), tokens(2, 500, guess)))


def run() -> CensusResults:
    base = sample.study()
    return CensusResults(model=base.model, config=base.config, provenance=base.provenance, census=census())
