"""Shares that rise with length: what emits n tokens emits fewer, so such shares have no curve."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from scipy import stats

__all__ = ["Rise", "rise"]


@dataclass(frozen=True, slots=True)
class Rise:
    """The clearest rise of shares along rising lengths.

    Attributes
    ----------
    last, first
        Longest length before the rise and shortest after it.
    before, after
        (reached, tried) up to the one and from the other on.
    chance
        At most, of so clear a rise where the share never rises.
    """

    last: int
    first: int
    before: tuple[int, int]
    after: tuple[int, int]
    chance: float

    def words(self) -> str:
        """Return the rise as a person would say it."""
        (low, under), (high, above) = self.before, self.after
        return f"{low} of {under} up to {self.last} tokens, {high} of {above} from {self.first} on"


def rise(
    n: Int[np.ndarray, " lengths"], reached: Int[np.ndarray, " lengths"], tried: Int[np.ndarray, " lengths"]
) -> Rise | None:
    """Return the clearest rise, None with fewer than two lengths.

    Parameters
    ----------
    n, reached, tried
        Rising lengths, strings reached and strings tried (at least 1) there.

    Notes
    -----
    Fisher's exact test on both sides of every cut, its smallest chance times the number of cuts (Bonferroni).
    Where the share never rises, the strings before a cut are at least as likely to be reached as those after
    it, so each test keeps its level whatever the lengths; the same string at several lengths makes rises
    rarer still.
    """
    cuts = list[Rise]()
    for k in range(1, n.size):
        before, after = (
            (int(reached[part].sum()), int(tried[part].sum())) for part in (slice(k), slice(k, None))
        )
        total, hits = before[1] + after[1], before[0] + after[0]
        chance = float(stats.hypergeom.sf(after[0] - 1, total, hits, after[1]))
        cuts.append(Rise(int(n[k - 1]), int(n[k]), before, after, min(1.0, chance * (n.size - 1))))
    return min(cuts, key=lambda cut: cut.chance, default=None)
