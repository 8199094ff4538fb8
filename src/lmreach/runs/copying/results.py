"""What a copying run says, put together from its records; nothing is measured here.

``counted`` says which answers count: ``exact`` (end mark included, for trained copiers) or ``complete`` (all
characters, whatever follows, where nobody was taught an end mark).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool
from scipy.stats import binomtest

from lmreach.experiments.copying.measure import share
from lmreach.experiments.copying.mistakes import ORDERS
from lmreach.results.base import Share
from lmreach.results.copying import CopyLength, Counted, Layout, Mistakes, Order
from lmreach.results.records import CopyRecord, Mistake
from lmreach.runs.intervals import half_of
from lmreach.stats.posterior import CurveFit, fit_points

__all__ = [
    "counting",
    "counts",
    "fall_lengths",
    "fit_of",
    "layout_parts",
    "length_parts",
    "mistake_parts",
]


def counts(records: Sequence[CopyRecord], counted: Counted) -> dict[int, tuple[int, int]]:
    """Return length -> (answers that count, strings)."""
    shares = {one.length: counting(one, counted) for one in records}
    return {length: (share.count, share.of) for length, share in shares.items()}


def counting(record: CopyRecord, counted: Counted) -> Share:
    """Return the answers of a length that count."""
    return record.exact if counted == "exact" else record.complete


def fit_of(records: Sequence[CopyRecord], counted: Counted) -> CurveFit:
    """Return the curve through all shares: log-logistic with lapses.

    In the logarithm of the length, because lengths are compared as ratios and spread over two decades. Where
    the fall is sharp a curve in the length itself gives the same.
    """
    found = counts(records, counted)
    n = np.asarray(sorted(found), dtype=np.int64)
    right, of = (np.asarray([found[int(k)][i] for k in n], dtype=np.int64) for i in (0, 1))
    return fit_points(n, right, of, shape="log-logistic")


def length_parts(records: Sequence[CopyRecord]) -> tuple[CopyLength, ...]:
    """Return the records in order of length, mistakes replaced by quartiles of where the first ones stand."""
    lengths = []
    for record in sorted(records, key=lambda record: record.length):
        places = [place for place in record.first_wrong if place is not None]
        middle = np.quantile(places, (0.25, 0.5, 0.75)).tolist() if places else None
        lengths.append(CopyLength.from_object(record, first_wrong_quartiles=middle))
    return tuple(lengths)


def mistake_parts(records: Sequence[CopyRecord], trained_to: int | None) -> Mistakes | None:
    """Return what the first wrong characters of all lengths have in common; None without any.

    Three questions, for k = 1, 2, ...: how many wrong symbols followed another occurrence of the last k
    characters, and how many stand at most k places from the right one, beside what a random wrong symbol
    would do; and how many mistakes stand where the last k characters have another occurrence that goes on
    differently, beside all places of the same strings.
    """
    mistakes = [mistake for record in records for mistake in record.mistakes]
    if not mistakes:
        return None
    symbols = [mistake for mistake in mistakes if mistake.kind == "symbol"]
    inside = [mistake for mistake in mistakes if mistake.kind != "did not end"]
    places = [mistake.place for mistake in mistakes]
    low, middle, high = np.quantile(places, (0.25, 0.5, 0.75)).tolist()
    return Mistakes(
        strings=len(mistakes),
        kinds=dict(Counter(mistake.kind for mistake in mistakes).most_common()),
        place_quartiles=(low, middle, high),
        within_training_length=None if trained_to is None else sum(place < trained_to for place in places),
        orders=tuple(_order(i, k, symbols, inside) for i, k in enumerate(ORDERS)),
    )


def _order(i: int, k: int, symbols: Sequence[Mistake], inside: Sequence[Mistake]) -> Order:
    """Return what wrong symbols, and mistakes inside the string, have to do with the last k characters."""
    near = sum(0 < symbol.distance <= k for symbol in symbols)
    return Order(
        k=k,
        followed=_share(sum(symbol.order >= k for symbol in symbols), len(symbols)),
        followed_by_chance=_mean([symbol.chance[i] for symbol in symbols]),
        ambiguous=_share(sum(mistake.ambiguity >= k for mistake in inside), len(inside)),
        ambiguous_usually=_mean([mistake.usual[i] for mistake in inside]),
        near=_share(near, len(symbols)),
        near_by_chance=_mean([symbol.near[i] for symbol in symbols]),
    )


def _share(count: int, of: int) -> Share | None:
    return share(count, of) if of else None


def fall_lengths(records: Sequence[CopyRecord], counted: Counted) -> list[int]:
    """Return at most four measured lengths at which layouts are compared.

    The two on either side of the fall, and those nearest to half and to twice as long, so that a fall that
    moves is still seen. Without a fall: the longest length (all right), or none (nothing right).
    """
    found = counts(records, counted)
    order = sorted(found)
    if not any(right for right, _ in found.values()):
        return []
    below = next((i for i, n in enumerate(order) if 2 * found[n][0] < found[n][1]), len(order))
    around = order[max(0, below - 1) : below + 1]
    wanted = (around[0] / 2, 2 * around[-1])
    further = [min(order, key=lambda n: abs(math.log(n / at))) for at in wanted]
    return sorted({*around, *further})


def layout_parts(
    by_layout: Mapping[str, Sequence[CopyRecord]], usual: str, counted: Counted
) -> tuple[Layout, ...]:
    """Return one entry per layout: positions, n50, and the same strings compared with the usual layout.

    The strings of a length are the same in all layouts, so those that come out in one of two layouts alone
    decide (McNemar's exact test).
    """
    base = {record.length: record for record in by_layout[usual]}
    shared = set.intersection(*({record.length for record in own} for own in by_layout.values()))
    entries = []
    for name, records in by_layout.items():
        kept = sorted(
            (record for record in records if record.length in shared), key=lambda record: record.length
        )
        pairs = [(_right(base[record.length], counted), _right(record, counted)) for record in kept]
        only_usual = sum(int((a & ~b).sum()) for a, b in pairs)
        only_here = sum(int((b & ~a).sum()) for a, b in pairs)
        differ = only_usual + only_here
        entries.append(
            Layout(
                layout=name,
                lengths=tuple(record.length for record in kept),
                prompts=tuple(record.prompt for record in kept),
                right=tuple(counting(record, counted) for record in kept),
                n50=half_of(fit_of(kept, counted)),
                only_usual=only_usual,
                only_here=only_here,
                p_value=float(binomtest(only_here, differ).pvalue) if differ else 1.0,
            )
        )
    return tuple(entries)


def _right(record: CopyRecord, counted: Counted) -> Bool[np.ndarray, " strings"]:
    if counted == "exact":
        return np.asarray([place is None for place in record.first_wrong])
    whole: Bool[np.ndarray, " strings"] = np.equal(record.right, record.of)
    return whole


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
