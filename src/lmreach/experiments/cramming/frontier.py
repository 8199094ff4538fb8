"""How many target ids a row's loss covers: blocks that are won in parallel, then the way back to the prefix.

The steps that a block of tokens takes hardly depend on how many tokens it has, as long as the vectors can
hold them: they are won in parallel, in any order. So blocks are long, in proportion to the coordinates at
hand, and the next begins when most of one has been won, not when the prefix has come to its end: one hard
token among the first would hold up all the rest (docs/log/cramming.md).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from lmreach.config import CramSettings

# Tokens of a block: at least these, or one for so many coordinates of the vectors. Blocks of six to nine
# tenths of the reach did best, and the reach in random tokens was one token for 15 to 65 coordinates.
_LEAST, _COORDINATES = 8, 36

# Share of the frontier that has to come out, wherever it stands, for the next block to begin.
_WON = 0.75

# Shares of the steps between which the frontier closes in on the prefix.
CLOSING, CLOSED = 0.5, 0.9


# Where vectors are held to a set that cannot tell apart so many tokens, blocks are a share of those it can.
_LEAST_HELD, _SHARE_HELD = 4, 0.18


def block_length(config: CramSettings, m: int, width: int, *, most: float | None = None) -> int:
    """Return how many tokens a block has: what was asked for, or what suits m vectors of ``width``.

    Parameters
    ----------
    most
        Tokens that the set to which vectors are held can tell apart; None: vectors are free.
    """
    if config.lookahead:
        return config.lookahead
    free = max(_LEAST, m * width // _COORDINATES)
    return free if most is None else min(free, max(_LEAST_HELD, round(_SHARE_HELD * most)))


def next_frontier(
    frontier: Int[Tensor, " r"],
    best: Int[Tensor, " r"],
    hits: Int[Tensor, " r"],
    steps: Int[Tensor, " r"],
    *,
    block: int,
    max_steps: int,
) -> Int[Tensor, " r"]:
    """Return frontiers that grow by blocks and, in the second half of the steps, close in.

    Parameters
    ----------
    frontier
        Target ids in the loss of each row as it stands.
    best
        Longest prefix seen.
    hits
        Target ids within the frontier that come out, wherever they stand.
    steps
        Steps taken by each row.
    block
        See `block_length`.
    max_steps
        Steps a row has in all.

    Notes
    -----
    What is won stays in the loss. At the end of a string's reach, tokens that it will never emit only pull at
    those it could, so the frontier comes back to one token beyond the prefix.
    """
    won = (hits >= _WON * frontier) | (best >= frontier - 1)
    grown = torch.where(won, frontier + block, frontier)
    done = steps.float() / max_steps
    left = ((CLOSED - done) / (CLOSED - CLOSING)).clamp(min=0.0, max=1.0)
    nearest = best + 1 + ((block - 1) * left).round().long()
    return torch.where(done > CLOSING, torch.minimum(grown, nearest), grown)
