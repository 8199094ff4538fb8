"""What is known of a decoder's cells: shares of a measure, rare cells, unreachable tokens, a map."""

from lmreach.results.base import Floats, Interval, Result, Words

__all__ = [
    "Band",
    "CellLimit",
    "CellMap",
    "CellShare",
    "Cells",
    "MapCell",
    "MapText",
    "MeanLogShare",
    "Proof",
    "RankedShare",
    "Rare",
    "RareToken",
    "Shares",
    "SlopeRatio",
    "Unreachable",
]


class RankedShare(Result):
    """Share of the cell of a rank (1: the largest), with its own interval."""

    rank: int
    share: float
    low: float
    high: float


class CellShare(Result):
    """Share of one token's cell, with its own interval."""

    id: int
    text: str
    share: float
    low: float
    high: float


class Shares(Result):
    """Shares of all cells under a measure, from drawn states; see `lmreach.stats.shares.ShareSummary`.

    Attributes
    ----------
    independent
        Whether states are drawn independently; if not, intervals are too narrow.
    convention
        ``argmax`` or ``nearest``.
    decided_in_float64
        States whose winner float32 could not decide.
    hit_mean_log_share
        Mean ln share of the cells that were hit, in nats.
    held_out
        Whether cells were ranked by one half of the states and measured with the other; False in older
        records, which did both with the same states.
    """

    measure: str
    measure_words: str
    independent: bool
    convention: str
    seed: int
    decided_in_float64: int
    words: Words
    hit_mean_log_share: float
    cells: int
    samples: int
    hit: int
    coverage: float
    hit_once: int
    hit_twice: int
    unseen_mass: float
    unhit_limit: float
    gini: float
    holders_80: int
    share_holding_80: float
    confidence: float
    ranks: tuple[RankedShare, ...]
    largest: tuple[CellShare, ...]
    held_out: bool = False


class RareToken(Interval):
    """ln share of one token's cell, in nats; verdict ``below``: not more than ``at_most``.

    Attributes
    ----------
    levels, rivals, seconds
        What the estimate took.
    se, at_most
        None: the other verdict.
    logs
        ln of single replicates. Empty for ``below``.
    twin
        Id of a token with the same row that this one never beats. None: there is none.
    """

    id: int
    text: str
    levels: int
    se: float | None
    at_most: float | None
    logs: Floats
    rivals: int
    twin: int | None
    seconds: float


class CellLimit(Interval):
    """C_cells = ln P / CE, tokens per vector; no upper end where the cross-entropy may be 0."""

    value: float
    low: float
    log_packing: float


class MeanLogShare(Interval):
    """E_q ln v, nats per token, of tokens drawn from q; see `lmreach.stats.refined.MeanLogShare`.

    Attributes
    ----------
    limits
        Name of a limit to what the cells make of it.
    """

    value: float
    low: float
    high: float
    name: str
    draws: int
    distinct: int
    below: int
    se: float
    se_draws: float
    se_estimates: float
    replicates: Floats
    limits: dict[str, CellLimit]


class SlopeRatio(Interval):
    """Predicted slope of a text over that of uniform tokens."""

    value: float
    low: float
    high: float
    text: str
    uniform: str
    se_log: float


class Rare(Result):
    """Cells too small for plain sampling, by multilevel splitting.

    Attributes
    ----------
    measure
        In words.
    floor_nats
        ln share below which no cell is followed.
    limit_dtype
        Number format whose roundoff sets eps in ln P.
    """

    measure: str
    particles: int
    replicates: int
    start: int
    floor_nats: float
    draws_per_source: int
    limit_dtype: str
    tokens: tuple[RareToken, ...]
    means: tuple[MeanLogShare, ...]
    ratios: tuple[SlopeRatio, ...]
    seconds: float


class Proof(Result):
    """A convex combination of tokens that no hidden state lets a token lead."""

    ids: tuple[int, ...]
    weights: Floats
    uniform: float
    bound: float


class Unreachable(Result):
    """Verdicts on tokens; see `lmreach.experiments.reach.reachability.Reachability`.

    Attributes
    ----------
    counts, methods
        Judged tokens by verdict, and by what proved it.
    tie_only, unreachable, undetermined
        Their ids.
    certificates, reasons, texts
        By id, as text: proofs, why a token is undetermined, and what those that never win alone read as.
    smallest_margin
        Smallest lead at a witness, in logits. None: there is no witness.
    share_removed, share_removed_with_ties
        Length n as text to the share of uniform sequences that hold an unreachable token, or one that only
        ties as well.
    """

    support: str
    resolution: float
    vocab: int
    judged: int
    counts: dict[str, int]
    methods: dict[str, int]
    tie_only: tuple[int, ...]
    unreachable: tuple[int, ...]
    undetermined: tuple[int, ...]
    certificates: dict[str, Proof]
    reasons: dict[str, str]
    smallest_margin: float | None
    padded_leads: int
    seconds: float
    texts: dict[str, str]
    share_removed: dict[str, float]
    share_removed_with_ties: dict[str, float]


class MapCell(Result):
    """A token's cell on a plane: its share of the rectangle and its corners."""

    id: int
    text: str
    area: float
    corners: tuple[tuple[float, float], ...]


class Band(Result):
    """A piece of a cell within which its token leads by at least a level."""

    id: int
    corners: tuple[tuple[float, float], ...]


class MapText(Result):
    """A text through whose last hidden state the plane goes: where it lies, what comes next, by what lead."""

    text: str
    x: float
    y: float
    id: int
    token: str
    margin: float


class CellMap(Result):
    """Decoder cells on the plane through three hidden states.

    Attributes
    ----------
    rectangle
        x0, x1, y0, y1 in the units of hidden states.
    cells
        The largest first.
    levels, bands
        Leads in units of the head's scores, and per level the pieces of cells.
    outline
        Line on which the final norm puts every state. None: the norm has no known gain, or the plane misses
        that surface.
    """

    model: str
    rectangle: tuple[float, float, float, float]
    cells: tuple[MapCell, ...]
    levels: Floats
    bands: tuple[tuple[Band, ...], ...]
    texts: tuple[MapText, ...]
    outline: tuple[tuple[float, float], ...] | None


class Cells(Result):
    """Parts of the question about decoder cells; None: left out, as the run's ``not_done`` says."""

    shares: Shares | None = None
    map: CellMap | None = None
    unreachable: Unreachable | None = None
    rare: Rare | None = None
