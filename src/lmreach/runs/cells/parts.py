"""Parts of the question about decoder cells: shares, rare cells, unreachable tokens, a map."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.errors import InputError, problem
from lmreach.experiments.cells.decoder import Decoder
from lmreach.experiments.cells.rare import DEFAULT, TokenShare, rare_cells
from lmreach.experiments.cells.shares import count_cells
from lmreach.experiments.reach.reachability import Reachability, judge_of, reachability, region_of
from lmreach.experiments.states import measures
from lmreach.experiments.states.file import SavedSupport, read_support
from lmreach.experiments.states.measures import Measure
from lmreach.experiments.states.stream import HiddenSupport
from lmreach.experiments.targets.draw import draw
from lmreach.experiments.targets.files import text_of
from lmreach.maths import plane
from lmreach.maths.cells import RESOLUTION, Verdict
from lmreach.maths.splitting import Splitting
from lmreach.models import tokens
from lmreach.models.loaded import LoadedModel
from lmreach.results.cells import (
    Band,
    CellLimit,
    CellMap,
    CellShare,
    MapCell,
    MapText,
    MeanLogShare,
    Proof,
    Rare,
    RareToken,
    Shares,
    SlopeRatio,
    Unreachable,
)
from lmreach.runs.model_limits import model_limits
from lmreach.stats import refined
from lmreach.stats.refined import cell_limit, draw_unigram, hit_cells, mean_log_share, slope_ratio
from lmreach.stats.shares import Largest, cell_shares

__all__ = [
    "default_samples",
    "judged",
    "map_record",
    "measure_of",
    "rare_record",
    "rare_seconds",
    "shares_record",
    "support_of",
    "unreachable_record",
]

_TERA = 1e13  # multiply-adds x 2 that take about a minute on two CPU cores
_MOST = 1_000_000
_LARGEST = 10
_RARE, _SELF_STRINGS, _SELF_LENGTH = 21, 32, 64
_BALL = "ball (paper)"
_LENGTHS = (10, 100, 1000)
_LEVELS = (0.25, 0.5, 0.75)
_ASPECT, _MARGIN = 1.0, 0.3


def default_samples(decoder: Decoder) -> int:
    """Return how many states take about a minute on two CPU cores, as 1, 2 or 5 times a power of ten."""
    wanted = min(_MOST, max(1000, _TERA / (2 * decoder.vocab * decoder.width)))
    return int(_round_down(wanted))


def _round_down(value: float) -> float:
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (5, 2, 1) if step * power <= value * (1 + 1e-9)))


def support_of(model: LoadedModel, file: str | Path) -> SavedSupport:
    """Read a support file and refuse it if it was measured on another model."""
    found = read_support(Path(file))
    facts = model.facts
    found.check(
        name=facts.name,
        width=facts.hidden_width,
        gain=model.final_norm.gain,
        fingerprint=facts.fingerprint if facts.dtype == "float32" else None,
    )
    return found


def measure_of(
    model: LoadedModel,
    name: str,
    *,
    support: SavedSupport | HiddenSupport | None = None,
    kinds: tuple[str, ...] = ("random", "self"),
    seed: int = 0,
) -> Measure:
    """Return a reference measure by its name.

    Parameters
    ----------
    name
        One of `lmreach.experiments.states.measures.MEASURES`.
    support
        Radius of ``ball``, ends of ``box``; the others need none.
    kinds
        Kinds of prompts of ``empirical``.

    Raises
    ------
    InputError
        For an unknown name, a ball or box without a support, a norm-shaped measure without a known gain.
    """
    measures.check_measure(name)
    if name == "gaussian":
        return measures.gaussian(model.final_norm, seed=seed)
    if name == "ellipsoid":
        return measures.ellipsoid(model.final_norm, seed=seed)
    if name == "ball":
        radius = None if support is None else support.l2_max
        return measures.ball(radius, width=model.facts.hidden_width, seed=seed)
    if name == "box":
        low, high = (None, None) if support is None else (support.low, support.high)
        return measures.box(low, high, seed=seed)
    return measures.empirical(model, kinds=kinds, seed=seed)


def shares_record(
    model: LoadedModel,
    decoder: Decoder,
    measure: Measure,
    *,
    samples: int | None = None,
    convention: str = "argmax",
    largest: int = _LARGEST,
    say: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> Shares:
    """Estimate the share of every cell by sampling and return what a reader needs of it.

    Parameters
    ----------
    samples
        States; None: `default_samples`.
    largest
        Number of cells listed, the largest first by one half of the states, with shares from the other.
    say, stop
        As in `lmreach.experiments.cells.shares.count_cells`.

    Raises
    ------
    InputError
        For no samples, an unknown convention, or a stop before the first block.
    """
    counted = count_cells(
        decoder,
        measure,
        default_samples(decoder) if samples is None else samples,
        convention=convention,
        say=say,
        stop=stop,
    )
    shares = cell_shares(counted.counts)
    summary = shares.summary()
    top = shares.largest(largest)
    return Shares.from_object(
        summary,
        measure=measure.name,
        measure_words=measure.words,
        independent=measure.independent,
        convention=counted.convention,
        seed=counted.seed,
        decided_in_float64=counted.close,
        hit_mean_log_share=hit_cells(counted.counts).mean_log_share,
        largest=[] if top is None else [_large_cell(model, decoder, top, i) for i in top.cells.tolist()],
        held_out=True,
    )


def _large_cell(model: LoadedModel, decoder: Decoder, top: Largest, cell: int) -> CellShare:
    token = int(decoder.ids[cell])
    share, low, high = (float(one[cell]) for one in (top.shares.share, top.shares.low, top.shares.high))
    return CellShare(id=token, text=model.text([token]), share=share, low=low, high=high)


def rare_record(
    model: LoadedModel,
    decoder: Decoder,
    *,
    tokens: int,
    text: str | Path | None = None,
    seed: int = 0,
    options: Splitting = DEFAULT,
    limit_dtype: str = "float16",
    progress: Callable[[int, int], None] = lambda done, total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Rare:
    """Estimate E_q ln v_t for q uniform, of self-sampled text and of a text, and the slopes they allow.

    Parameters
    ----------
    tokens
        Draws from each q, at least 2 and at most V.
    text
        File whose token frequencies are the third q.
    options
        Work per token, see `lmreach.maths.splitting.Splitting`.
    limit_dtype
        Number format whose unit roundoff sets eps in ln P.
    stop
        Asked often.

    Raises
    ------
    InputError
        For another number of tokens, or a text that is missing or has no tokens.
    RareStopped
        If ``stop`` said so: unfinished tokens are the smallest cells, so nothing can be said without them.
    """
    _check_tokens(tokens, decoder)
    sources = _sources(model, decoder, text, seed)
    rng = np.random.default_rng([seed, _RARE])
    drawn = {name: draw_unigram(ids, decoder.ids, tokens, rng=rng) for name, ids in sources.items()}
    found = rare_cells(
        decoder,
        np.concatenate(list(drawn.values())),
        rng=rng,
        options=options,
        progress=progress,
        stop=stop,
    )
    means = {name: mean_log_share(ids, found.by_id(), name=name) for name, ids in drawn.items()}
    packings = _packings(model, limit_dtype)
    return Rare(
        measure=found.measure,
        particles=options.particles,
        replicates=options.replicates,
        start=options.start,
        floor_nats=options.floor,
        draws_per_source=tokens,
        limit_dtype=limit_dtype,
        tokens=tuple(_rare_token(model, one) for one in found.tokens),
        means=tuple(_with_limits(mean, packings) for mean in means.values()),
        ratios=tuple(
            SlopeRatio.from_object(slope_ratio(means[name], means["uniform"]))
            for name in means
            if name != "uniform"
        ),
        seconds=round(found.seconds, 3),
    )


def _with_limits(mean: refined.MeanLogShare, packings: Mapping[str, float]) -> MeanLogShare:
    limits = {name: CellLimit.from_object(cell_limit(packing, mean)) for name, packing in packings.items()}
    return MeanLogShare.from_object(mean, limits=limits)


def _rare_token(model: LoadedModel, one: TokenShare) -> RareToken:
    return RareToken.from_object(
        one.share,
        id=one.id,
        text=model.text([one.id]),
        rivals=one.rivals,
        twin=one.twin,
        seconds=round(one.seconds, 3),
    )


def rare_seconds(
    decoder: Decoder,
    *,
    seed: int,
    options: Splitting = DEFAULT,
    stop: Callable[[], bool] = lambda: False,
) -> float:
    """Return the seconds that one uniformly drawn token takes, measured; stops as `rare_record` does."""
    rng = np.random.default_rng([seed, _RARE, 1])
    found = rare_cells(decoder, [int(rng.choice(decoder.ids))], rng=rng, options=options, stop=stop)
    return found.tokens[0].seconds


def _check_tokens(tokens: int, decoder: Decoder) -> None:
    if not 2 <= tokens <= decoder.vocab:
        wanted = f"from 2 to {decoder.vocab} tokens, the usable ones of {decoder.name}"
        raise InputError(problem(wanted, str(tokens), "ask for another number"))


def _sources(
    model: LoadedModel, decoder: Decoder, text: str | Path | None, seed: int
) -> dict[str, Int[np.ndarray, " n"]]:
    """Return the ids whose frequencies each q has, by the name of q."""
    context = model.facts.context
    length = _SELF_LENGTH if context is None else max(1, min(_SELF_LENGTH, context - 1))
    found = {
        "uniform": decoder.ids,
        "self": draw(model, "self", _SELF_STRINGS, length, seed=seed).ids.ravel(),
    }
    if text is not None:
        path = Path(text)
        found[f"text:{path.name}"] = _text_ids(model, path)
    return found


def _text_ids(model: LoadedModel, path: Path) -> Int[np.ndarray, " n"]:
    ids = model.encode(text_of(path))
    if len(ids) == 0:
        raise InputError(problem("a text with tokens", f"'{path}', which has none", "give another text"))
    return ids


def _packings(model: LoadedModel, dtype: str) -> dict[str, float]:
    """Return ln P of the paper's ball, and of the tightest proved limit on hidden states."""
    limits = model_limits(model, dtype=dtype)
    found = {limit.name: limit.log_packing for limit in limits if limit.name == _BALL}
    proved = [limit for limit in limits if limit.premise == "hidden" and limit.packing == "proved"]
    if proved:
        best = min(proved, key=lambda limit: limit.log_packing)
        found[best.name] = best.log_packing
    return found


def unreachable_record(
    model: LoadedModel,
    decoder: Decoder,
    *,
    support: SavedSupport | HiddenSupport | None = None,
    lengths: Sequence[int] = _LENGTHS,
    **options: Any,
) -> Unreachable:
    """Judge every token and return the verdicts, and what the tokens that never win alone cost.

    ``share_removed`` counts the unreachable ones, ``share_removed_with_ties`` also those that can only tie,
    which greedy decoding emits at no gap above 0.

    Parameters
    ----------
    support
        Its box is where hidden states may lie; None: the norm ellipsoid, or all of space where the final norm
        has no known gain.
    lengths
        Lengths n for which the share of uniform sequences with an unreachable token in them is stated.
    options
        Passed to `lmreach.experiments.reach.reachability.reachability`: ``tokens``, ``limit_s``, ``stop``,
        ``on_progress``.
    """
    if support is None:
        region = region_of(decoder)
    else:
        region = region_of(decoder, "box", low=support.low, high=support.high)
    found = reachability(decoder, region, judge=judge_of(model), **options)
    lost = [*found.having("unreachable").tolist(), *found.having("tie-only").tolist()]
    return judged(found, {i: model.text([i]) for i in lost}, lengths)


def judged(found: Reachability, texts: Mapping[int, str], lengths: Sequence[int] = _LENGTHS) -> Unreachable:
    """Return verdicts as results hold them; ``texts``: what tokens read as, by id."""
    ties: tuple[Verdict, ...] = ("unreachable", "tie-only")
    return Unreachable.from_object(
        found,
        resolution=RESOLUTION,
        judged=len(found.ids),
        methods=found.proved_by,
        tie_only=found.having("tie-only").tolist(),
        unreachable=found.having("unreachable").tolist(),
        undetermined=found.having("undetermined").tolist(),
        certificates={str(i): Proof.from_object(proof) for i, proof in found.certificates.items()},
        reasons={str(i): reason for i, reason in found.reasons.items()},
        seconds=round(found.seconds, 3),
        texts={str(i): text for i, text in texts.items()},
        share_removed={str(n): found.share_removed(n) for n in lengths},
        share_removed_with_ties={str(n): found.share_removed(n, verdicts=ties) for n in lengths},
    )


def map_record(model: LoadedModel, decoder: Decoder, texts: Sequence[str]) -> CellMap:
    """Compute the cells on the plane through the last hidden states of three texts.

    Returns
    -------
    CellMap
        What `lmreach.report.cells.map.cell_map_svg` draws. Levels and margins are in units of the scores
        W h + b, before any constant factor and soft cap.

    Raises
    ------
    InputError
        For another number of texts, one that has no tokens or does not fit the context, or three whose states
        lie on one line.
    """
    if len(texts) != 3:
        raise InputError(problem("three texts for the map", str(len(texts)), 'give --map "a" "b" "c"'))
    states = np.stack([_last_state(model, text) for text in texts])
    through = plane.plane_through(states)
    scores = plane.plane_scores(decoder.rows.cpu().numpy(), decoder.bias.cpu().numpy(), through)
    rectangle = plane.rectangle_around(through.points, aspect=_ASPECT, margin=_MARGIN)
    found = plane.plane_map(scores, rectangle, _levels(scores, rectangle))
    winners, leads = plane.margins(scores, through.points)

    def text_of(cell: int) -> str:
        return model.text([int(decoder.ids[cell])])

    return CellMap(
        model=model.facts.name,
        rectangle=rectangle,
        cells=tuple(
            MapCell(
                id=int(decoder.ids[cell.token]),
                text=text_of(cell.token),
                area=cell.area,
                corners=cell.corners.tolist(),
            )
            for cell in found.cells
        ),
        levels=found.levels,
        bands=tuple(
            tuple(Band(id=int(decoder.ids[cell.token]), corners=cell.corners.tolist()) for cell in band)
            for band in found.bands
        ),
        texts=tuple(
            MapText(
                text=text,
                x=float(x),
                y=float(y),
                id=int(decoder.ids[winner]),
                token=text_of(winner),
                margin=float(lead),
            )
            for text, (x, y), winner, lead in zip(texts, through.points, winners.tolist(), leads, strict=True)
        ),
        outline=_outline(decoder, through),
    )


@torch.no_grad()
def _last_state(model: LoadedModel, text: str) -> Float[np.ndarray, " h"]:
    ids = model.encode(text)
    if len(ids) == 0:
        raise InputError(problem("texts with tokens", f"{text!r}, which has none", "write something in it"))
    ids = np.concatenate([_start(model), ids])
    context = model.facts.context
    if context is not None and len(ids) > context:
        raise InputError(
            problem(f"texts of at most {context} tokens", f"one of {len(ids)}", "give a shorter text")
        )
    states = model.hidden(model.input_vectors(torch.from_numpy(ids)[None]))
    return np.asarray(states[0, -1].double().cpu().numpy())


def _start(model: LoadedModel) -> Int[np.ndarray, " n"]:
    """Return the start token where the tokenizer puts one in front of a text, else nothing."""
    bos = model.facts.bos_id
    usual = [] if model.tokenizer is None else model.tokenizer(_any_text(model))["input_ids"]
    return np.array([bos] if bos is not None and usual[:1] == [bos] else [], dtype=np.int64)


def _any_text(model: LoadedModel) -> str:
    """Return a text that the tokenizer can read, whatever its alphabet: that of a token of its own."""
    assert model.tokenizer is not None
    return tokens.decode(model.tokenizer, [int(model.plain_ids[0])])


def _levels(scores: Float[np.ndarray, "V 3"], rectangle: plane.Rectangle) -> tuple[float, ...]:
    """Return round margins near the quartiles over the rectangle."""
    x0, x1, y0, y1 = rectangle
    steps = np.stack(np.meshgrid(np.linspace(x0, x1, 24), np.linspace(y0, y1, 24)), axis=-1).reshape(-1, 2)
    _, leads = plane.margins(scores, steps)
    return tuple(sorted({_round_down(q) for q in np.quantile(leads, _LEVELS) if q > 0}))


def _outline(decoder: Decoder, through: plane.Plane) -> tuple[tuple[float, float], ...] | None:
    """Return the line on the plane where ||(h - b) / g||^2 = h, on which the final norm puts every state."""
    norm = decoder.norm
    if norm.kind not in ("rms", "layer") or (norm.gain == 0).any():
        return None
    inner = (through.origin - norm.bias) / norm.gain
    axes = through.axes / norm.gain
    form, linear = axes @ axes.T, axes @ inner
    center = -np.linalg.solve(form, linear)
    left = decoder.width - inner @ inner - linear @ center
    if left <= 0:
        return None
    turns = np.linspace(0, 2 * np.pi, 361)[:-1]
    circle = np.sqrt(left) * np.column_stack([np.cos(turns), np.sin(turns)])
    line = center + np.linalg.solve(np.linalg.cholesky(form).T, circle.T).T
    return tuple((float(x), float(y)) for x, y in line)
