"""Which tokens a decoder can emit at all: a verdict with its proof for every usable token.

Definitions are those of `lmreach.maths.cells`. The cheap proof comes first: at the whitened direction
C^-1 (row_t - mean row), scaled into the support, all scores are computed, and the token is reachable if it
leads. It does for nearly every token of a trained model. The rest are solved exactly with rivals added as
they are met (a hard-margin problem with row generation, `reach.separation`) until the token
leads all others or a convex combination of other tokens, checked in float64, shows that it cannot. Of those
that cannot lead, the ones that tie are found the same way.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.errors import InputError, problem
from lmreach.experiments.cells.decoder import Decoder, decoder_of
from lmreach.experiments.reach.leads import Judge
from lmreach.experiments.reach.proof import UnreachableProof
from lmreach.experiments.reach.run import Run
from lmreach.experiments.reach.verdicts import Method
from lmreach.maths.cells import Region, Verdict, WholeSpace, log_share_without
from lmreach.maths.supports import Box, norm_ellipsoid
from lmreach.models.loaded import LoadedModel

__all__ = [
    "Judge",
    "Method",
    "Reachability",
    "SupportName",
    "UnreachableProof",
    "Witnesses",
    "judge_of",
    "reachability",
    "reachability_of",
    "region_of",
]

SupportName = Literal["space", "ellipsoid", "box"]
_VERDICTS: tuple[Verdict, ...] = ("reachable", "tie-only", "unreachable", "undetermined")


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Hidden states at which tokens lead (or tie): vectors for the few, a rule for the many.

    A token whose method is ``direction`` needs no stored vector: `at` computes its whitened direction again.
    That is the state that was judged up to the rounding of a float64 product, far below the lead required.
    """

    stored: dict[int, Float[np.ndarray, " h"]] = field(repr=False)
    _rule: Callable[[int], Float[np.ndarray, " h"]] = field(repr=False)
    _proved: frozenset[int] = field(repr=False)

    def at(self, token_id: int) -> Float[np.ndarray, " h"]:
        """Return the witness of a token: float32 where it leads, float64 where it can only tie.

        Raises
        ------
        InputError
            For a token without a witness.
        """
        if token_id not in self._proved:
            got = f"id {token_id}, which has none"
            raise InputError(
                problem("a reachable or tie-only token that was judged", got, "see the verdicts")
            )
        return self.stored[token_id] if token_id in self.stored else self._rule(token_id)


@dataclass(frozen=True, eq=False)
class Reachability:
    """Verdicts on the tokens of one decoder.

    Attributes
    ----------
    name, fingerprint, support
        Of the model; the support's name and where it came from.
    vocab
        V, usable tokens that compete.
    ids, verdicts, methods
        Judged tokens, and per token its verdict and how it was proved: ``direction`` and ``separation`` (a
        witness, from the whitened direction or from an exact problem), ``same row`` (another token has the
        same row and bias), ``certificate``; ``none`` for undetermined ones.
    margins
        Smallest lead in logits at the witness, as the judge computes it, shape as ids; 0 without witness.
    certificates
        Per token id, for ``tie-only`` and ``unreachable`` ones that were not settled by a twin.
    reasons
        Per id, why a token is undetermined.
    padded_leads
        Witnesses at which a padded row, which no token uses, has a larger logit still.
    """

    name: str
    fingerprint: str
    support: str
    vocab: int
    ids: Int[np.ndarray, " n"]
    verdicts: tuple[Verdict, ...]
    methods: tuple[Method, ...]
    margins: Float[np.ndarray, " n"]
    certificates: dict[int, UnreachableProof]
    reasons: dict[int, str]
    padded_leads: int
    witnesses: Witnesses
    seconds: float

    def having(self, verdict: Verdict) -> Int[np.ndarray, " k"]:
        """Return the ids with a verdict."""
        kept: Int[np.ndarray, " k"] = self.ids[np.array([v == verdict for v in self.verdicts], dtype=bool)]
        return kept

    @property
    def counts(self) -> dict[str, int]:
        """Number of judged tokens by verdict."""
        found = Counter(self.verdicts)
        return {verdict: found[verdict] for verdict in _VERDICTS}

    def share_removed(
        self,
        length: int,
        *,
        verdicts: tuple[Verdict, ...] = ("unreachable",),
        unigram: Float[np.ndarray, " V"] | None = None,
        vocabulary: Int[np.ndarray, " V"] | None = None,
    ) -> float:
        """Return the share of length-n sequences that hold a token with one of the verdicts.

        1 - (1 - q)^n, with q the weight of those tokens: one such token makes a sequence inaccessible.

        Parameters
        ----------
        unigram, vocabulary
            Weights of tokens (any common unit) and their ids. None: all judged tokens alike.
        """
        log_kept = self._log_kept(verdicts, unigram, vocabulary)
        return float(-np.expm1(log_share_without(length, log_kept)))

    def log_share_kept(
        self,
        length: int,
        *,
        verdicts: tuple[Verdict, ...] = ("unreachable",),
        unigram: Float[np.ndarray, " V"] | None = None,
        vocabulary: Int[np.ndarray, " V"] | None = None,
    ) -> float:
        """Return the log share of sequences free of such tokens, nats (arguments as `share_removed`).

        Raises
        ------
        InputError
            If nothing is left: every token of the distribution has one of the verdicts.
        """
        log_kept = self._log_kept(verdicts, unigram, vocabulary)
        if log_kept == -np.inf and length:
            got = "none in this distribution"
            raise InputError(problem("a token without these verdicts", got, "look at the verdicts"))
        return log_share_without(length, log_kept)

    @property
    def proved_by(self) -> dict[str, int]:
        """Number of judged tokens by what proved their verdict."""
        return dict(Counter(method for method in self.methods if method != "none"))

    @property
    def smallest_margin(self) -> float | None:
        """Smallest lead at a witness, in logits; None without one."""
        proved = self.margins[self.margins > 0]
        return float(proved.min()) if len(proved) else None

    def _log_kept(
        self,
        verdicts: tuple[Verdict, ...],
        unigram: Float[np.ndarray, " V"] | None,
        vocabulary: Int[np.ndarray, " V"] | None,
    ) -> float:
        bad = np.concatenate([self.having(verdict) for verdict in verdicts])
        if unigram is None:
            q = len(bad) / max(len(self.ids), 1)
        else:
            if vocabulary is None or vocabulary.shape != unigram.shape or (unigram < 0).any():
                raise InputError(
                    problem("weights of at least 0, one per id", "others", "pass counts and their ids")
                )
            q = float(unigram[np.isin(vocabulary, bad)].sum() / unigram.sum())
        with np.errstate(divide="ignore"):
            return float(np.log1p(-min(q, 1.0)))


def region_of(
    decoder: Decoder,
    support: SupportName | None = None,
    *,
    low: Float[np.ndarray, " h"] | None = None,
    high: Float[np.ndarray, " h"] | None = None,
) -> Region:
    """Return the support the user names; None: the norm ellipsoid where the norm is known, else all of space.

    An ellipsoid is that of the final norm with its inside; LayerNorm's sum(u) = 0 is not used. Without a head
    bias, and with 0 inside, inside and surface give the same verdicts.

    Raises
    ------
    InputError
        For a box without corners, or an ellipsoid of a model whose final norm is not known.
    """
    known = decoder.norm.kind in ("rms", "layer")
    if support is None:
        support = "ellipsoid" if known else "space"
    if support == "space":
        return WholeSpace(decoder.width)
    if support == "box":
        if low is None or high is None:
            raise InputError(problem("a box of hidden states", "none", "measure one: lmreach support MODEL"))
        return Box(low, high)
    if not known:
        got = f"a final norm of kind {decoder.norm.kind}"
        raise InputError(problem("a final norm with a known gain", got, "name the support space or box"))
    return norm_ellipsoid(decoder.norm.kind, decoder.norm.gain, decoder.norm.bias)


def judge_of(model: LoadedModel) -> Judge:
    """Return the head of a loaded model as the judge of witnesses."""
    return Judge(model.head_logits, abs(model.facts.logit_scale), model.facts.soft_cap)


def reachability_of(model: LoadedModel, region: Region | None = None, **options: Any) -> Reachability:
    """Judge the tokens of a loaded model by its own head; options as `reachability`."""
    decoder = decoder_of(model)
    chosen = region_of(decoder) if region is None else region
    return reachability(decoder, chosen, judge=judge_of(model), **options)


@torch.no_grad()
def reachability(
    decoder: Decoder,
    region: Region,
    *,
    judge: Judge | None = None,
    tokens: Int[np.ndarray, " n"] | None = None,
    limit_s: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Reachability:
    """Give a verdict on every token.

    Parameters
    ----------
    region
        Where hidden states may lie, see `region_of`.
    judge
        The model's own head; None: the decoder's scores in float32 are taken as logits.
    tokens
        Ids to judge (all usable tokens still compete); None: all of them.
    limit_s
        Seconds after which what remains is undetermined.
    stop
        Asked before every block; True ends the run in the same way.
    on_progress
        Told the stage, tokens done and tokens in it.

    Raises
    ------
    InputError
        For a region of another width, ids that are not usable, or rows that are not finite or all zero.
    """
    begun = time.monotonic()
    _check(decoder, region, tokens)

    def over() -> bool:
        return stop() or (limit_s is not None and time.monotonic() - begun > limit_s)

    places = np.arange(decoder.vocab) if tokens is None else np.searchsorted(decoder.ids, np.unique(tokens))
    run = Run(decoder, region, judge, over, on_progress)
    run.judge_all(np.unique(run.group[places]))
    return _result(run, decoder, region, places, time.monotonic() - begun)


def _result(
    run: Run, decoder: Decoder, region: Region, places: Int[np.ndarray, " n"], seconds: float
) -> Reachability:
    found = run.verdicts
    verdicts, methods = zip(*(run.verdict_of(place) for place in places.tolist()), strict=True)
    ids, row = decoder.ids[places], run.group[places]
    row_of = dict(zip(ids.tolist(), row.tolist(), strict=True))
    proved = frozenset(i for i, v in zip(row_of, verdicts, strict=True) if v in ("reachable", "tie-only"))
    alone = [i for i, method in zip(row_of, methods, strict=True) if method == "certificate"]
    kind = "space" if isinstance(region, WholeSpace) else f"{region.kind}, {region.source}"
    return Reachability(
        name=decoder.name,
        fingerprint=decoder.fingerprint,
        support=kind,
        vocab=decoder.vocab,
        ids=ids,
        verdicts=verdicts,
        methods=methods,
        margins=np.where(np.array(verdicts) == "reachable", found.margin[row], 0.0),
        certificates={i: found.proof[row_of[i]] for i in alone if row_of[i] in found.proof},
        reasons={i: found.reason[r] for i, r in row_of.items() if r in found.reason},
        padded_leads=found.padded,
        witnesses=Witnesses(
            {i: found.vectors[r] for i, r in row_of.items() if r in found.vectors and i in proved},
            lambda i: run.direction_state(row_of[i]),
            proved,
        ),
        seconds=seconds,
    )


def _check(decoder: Decoder, region: Region, tokens: Int[np.ndarray, " n"] | None) -> None:
    if region.dimension != decoder.width:
        got = f"one of dimension {region.dimension}"
        raise InputError(problem(f"a support of dimension {decoder.width}", got, "measure it on this model"))
    if not bool(decoder.rows.isfinite().all() and decoder.bias.isfinite().all()):
        raise InputError(problem("a head of finite numbers", "NaN or infinity", "bring intact weights"))
    if not bool((decoder.rows != 0).any()):
        raise InputError(problem("rows that tell tokens apart", "zeros only", "bring trained weights"))
    if tokens is None:
        return
    if len(tokens) == 0:
        raise InputError(problem("at least 1 token", "none", "name ids, or leave them out for all"))
    bad = np.setdiff1d(tokens, decoder.ids)
    if len(bad):
        got = f"id {bad[0]}"
        raise InputError(problem(f"ids that {decoder.name} can use", got, "take ids the tokenizer knows"))
