"""What a census counts: outputs of all prompts of a grid, or of prompts of real tokens."""

from collections.abc import Sequence
from typing import Literal

from lmreach.results.base import Floats, Interval, Result
from lmreach.results.run import RunResults

__all__ = [
    "Auc",
    "Census",
    "CensusResults",
    "Discovery",
    "GridCount",
    "GridLength",
    "Missing",
    "Popular",
    "Reasons",
    "Richness",
    "TokenCount",
    "TokenLength",
]


class Popular(Result):
    """An output that many prompts give; ``text`` is empty where no tokenizer can read it."""

    ids: tuple[int, ...]
    prompts: int
    text: str = ""


class Richness(Interval):
    """An estimate of how many different outputs there are.

    Attributes
    ----------
    standard_error, seen
        In outputs.
    """

    value: float
    low: float
    high: float
    standard_error: float
    seen: int


class _Length(Result):
    """What is known of the outputs of one length.

    Attributes
    ----------
    distinct
        Different outputs.
    log_bound_nats
        ln of the most there could be.
    log_share_nats
        ln of the share of all V^length sequences, at most 0.
    top
        The most popular outputs. Empty for an estimate.
    """

    length: int
    distinct: int | float
    log_bound_nats: float
    log_share_nats: float
    top: tuple[Popular, ...] = ()


class GridLength(_Length):
    """Outputs of one length of all prompts of a grid.

    Attributes
    ----------
    standard_error
        Of ``distinct``; 0 where it is a count. None: counted exactly.
    entropy_bits, seen_once, seen_twice
        None: estimated, not counted.
    """

    entropy_bits: float | None = None
    seen_once: int | None = None
    seen_twice: int | None = None
    standard_error: float | None = None


class TokenLength(_Length):
    """Outputs of one length of prompts of real tokens.

    Attributes
    ----------
    seen_once, seen_twice
        Outputs that so many prompts give.
    chao1, ace, coverage
        What a sample says of all prompts. None: the census is complete, nothing is left to estimate.
    """

    entropy_bits: float
    seen_once: int
    seen_twice: int
    chao1: Richness | None = None
    ace: Richness | None = None
    coverage: Interval | None = None


class Auc(Interval):
    """Chance that a sequence that came ranks above one that is missing."""

    value: float
    positives: int
    negatives: int


class Reasons(Result):
    """How far known reasons explain missing sequences; see `lmreach.experiments.census.missing.Explained`.

    Attributes
    ----------
    auc_cell_shares, auc_cell_shares_of_occurring_tokens
        None: all sequences came, or none.
    """

    measure: str
    unreachable_tokens: tuple[int, ...]
    missing_with_unreachable_token: int
    auc_cell_shares: Auc | None
    auc_cell_shares_of_occurring_tokens: Auc | None


class Missing(Result):
    """Sequences of one length that no prompt emits; see `lmreach.experiments.census.missing.Missing`.

    Attributes
    ----------
    listed
        How many of ``sequences`` there are.
    reasons
        None: nothing is missing, or the final norm has no known gain.
    """

    length: int
    count: int
    of: int
    never_first: tuple[int, ...]
    never: tuple[int, ...]
    missing_though_all_tokens_occur: int
    repeats: int
    repeats_missing: int
    listed: int
    sequences: tuple[tuple[int, ...], ...] = ()
    reasons: Reasons | None = None


class GridCount(Result):
    """All prompts of one grid; see `lmreach.experiments.census.exact.GridCensus`.

    Attributes
    ----------
    fully_reachable, half_reachable
        Longest length at which all, and at least half, of the sequences came. None: estimated.
    lengths
        Counted, or estimated where ``exact`` is false.
    missing
        None: estimated, or too many sequences to remember.
    """

    q: int
    width: int
    m: int
    n: int
    vocab: int
    order: str
    extent: float
    prompts: int
    exact: bool
    fully_reachable: int | None
    half_reachable: int | None
    lengths: tuple[GridLength, ...]
    tied: int
    close: int
    decoded_again: int
    missing: Missing | None
    seconds: float


class Discovery(Result):
    """Different outputs of a length expected among so many prompts."""

    length: int
    prompts: tuple[int, ...]
    distinct: Floats


class TokenCount(Result):
    """Prompts of so many real tokens; see `lmreach.experiments.census.tokens.TokenCensus`.

    Attributes
    ----------
    prompts, planned, complete
        Prompts decoded, planned, and whether these are all there are.
    """

    prompt_tokens: int
    n: int
    vocab: int
    bos: str
    seed: int
    prompts: int
    planned: int
    complete: bool
    lengths: tuple[TokenLength, ...]
    discovery: tuple[Discovery, ...]
    tied: int
    close: int
    seconds: float


class Census(Result):
    """Counts over grids (one entry per m) and over prompts of tokens (one per prompt length)."""

    grids: tuple[GridCount, ...] = ()
    tokens: tuple[TokenCount, ...] = ()


class CensusResults(RunResults):
    """The results of a census."""

    kind: Literal["census"] = "census"
    census: Census

    def rows(self) -> Sequence[Result]:
        """Return what was counted at each length: of grids and of prompts of real tokens, in this order."""
        grids = [length for grid in self.census.grids for length in grid.lengths]
        return [*grids, *(length for counted in self.census.tokens for length in counted.lengths)]
