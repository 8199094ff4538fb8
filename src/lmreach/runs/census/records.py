"""Counts as results hold them."""

import math

import numpy as np

from lmreach.experiments.census.count import LengthCounts
from lmreach.experiments.census.exact import GridCensus
from lmreach.experiments.census.missing import Explained
from lmreach.experiments.census.missing import Missing as MissingCount
from lmreach.experiments.census.tokens import TokenCensus
from lmreach.models.loaded import LoadedModel
from lmreach.results import Interval
from lmreach.results.census import (
    Auc,
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
from lmreach.stats.richness import Frequencies, ace, chao1, coverage, discovery

__all__ = ["grid_record", "missing_record", "token_record"]

_POINTS = 40  # of a discovery curve, spaced evenly, and as many by ratios


def grid_record(found: GridCensus, missing: Missing | None) -> GridCount:
    """Return the counts over all prompts of one grid; ``missing``: of `missing_record`."""
    counted = tuple(
        GridLength(
            length=one.length,
            distinct=one.distinct,
            entropy_bits=one.entropy_nats / math.log(2.0),
            seen_once=one.seen(1),
            seen_twice=one.seen(2),
            top=tuple(Popular(ids=best.ids, prompts=best.prompts) for best in one.top),
            log_bound_nats=found.log_bound(one.length),
            log_share_nats=_log_share(one.length, one.distinct, found.vocab),
        )
        for one in found.lengths
    )
    estimated = tuple(
        GridLength(
            length=one.length,
            distinct=one.distinct,
            standard_error=one.standard_error,
            log_bound_nats=found.log_bound(one.length),
            log_share_nats=_log_share(one.length, one.distinct, found.vocab),
        )
        for one in found.estimates
    )
    return GridCount.from_object(
        found,
        fully_reachable=found.fully_reachable if found.exact else None,
        half_reachable=found.half_reachable if found.exact else None,
        lengths=counted or estimated,
        decoded_again=found.settled,
        missing=missing,
        seconds=round(found.seconds, 3),
    )


def _log_share(length: int, distinct: float, vocab: int) -> float:
    return min(math.log(distinct) - length * math.log(vocab), 0.0)


def missing_record(found: MissingCount, why: Explained | None) -> Missing:
    """Return which sequences never came, and how far known reasons explain it."""
    explained = None
    if why is not None:
        explained = Reasons(
            measure=why.measure,
            unreachable_tokens=why.unreachable,
            missing_with_unreachable_token=why.with_unreachable,
            auc_cell_shares=None if why.shares is None else Auc.from_object(why.shares),
            auc_cell_shares_of_occurring_tokens=None
            if why.shares_reachable is None
            else Auc.from_object(why.shares_reachable),
        )
    return Missing.from_object(
        found,
        missing_though_all_tokens_occur=found.without_never,
        listed=len(found.sequences),
        sequences=found.sequences.tolist(),
        reasons=explained,
    )


def token_record(model: LoadedModel, found: TokenCensus) -> TokenCount:
    """Return the counts over prompts of tokens; texts come from the model's tokenizer."""
    plan = found.plan
    return TokenCount(
        prompt_tokens=plan.tokens,
        n=plan.n,
        vocab=found.vocab,
        bos=plan.bos,
        seed=plan.seed,
        prompts=found.prompts,
        planned=plan.prompts,
        complete=found.complete,
        lengths=tuple(_token_length(model, found, one) for one in found.lengths),
        discovery=tuple(_discovery(found.prompts, one) for one in found.lengths),
        tied=found.tied,
        close=found.close,
        seconds=round(found.seconds, 3),
    )


def _token_length(model: LoadedModel, found: TokenCensus, one: LengthCounts) -> TokenLength:
    # Of a complete census there is nothing left to estimate.
    sample = None if found.complete else Frequencies(dict(one.frequencies))
    return TokenLength(
        length=one.length,
        distinct=one.distinct,
        entropy_bits=one.entropy_nats / math.log(2.0),
        seen_once=one.seen(1),
        seen_twice=one.seen(2),
        top=tuple(
            Popular(ids=best.ids, prompts=best.prompts, text=model.text(list(best.ids))) for best in one.top
        ),
        log_bound_nats=min(found.plan.tokens, one.length) * math.log(found.vocab),
        log_share_nats=_log_share(one.length, one.distinct, found.vocab),
        chao1=None if sample is None else Richness.from_object(chao1(sample)),
        ace=None if sample is None else Richness.from_object(ace(sample)),
        coverage=None if sample is None else Interval.from_object(coverage(sample)),
    )


def _discovery(prompts: int, one: LengthCounts) -> Discovery:
    spaced = [np.geomspace(1, prompts, _POINTS), np.linspace(1, prompts, _POINTS)]
    sizes = np.unique(np.concatenate(spaced).round().astype(int))
    expected = discovery(Frequencies(dict(one.frequencies)), sizes)
    return Discovery(length=one.length, prompts=tuple(sizes.tolist()), distinct=tuple(expected.tolist()))
