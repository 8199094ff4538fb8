"""A census as sentences, and one table per grid or prompt length."""

from collections.abc import Iterator
from math import exp

from lmreach.report.census.section import sentences
from lmreach.results.census import Census, GridLength, TokenLength

__all__ = ["census_lines"]


def census_lines(census: Census) -> Iterator[str]:
    """Give the sentences, then what was counted at each length."""
    yield from sentences(census)
    for grid in census.grids:
        yield ""
        yield f"m = {grid.m}, {grid.prompts:,} prompts, {grid.seconds:.1f} s"
        yield f"{'length':>8}{'distinct':>16}{'of at most':>16}{'ln share':>11}"
        yield from map(_length, grid.lengths)
    for entry in census.tokens:
        kind = "token" if entry.prompt_tokens == 1 else "tokens"
        yield ""
        yield f"prompts of {entry.prompt_tokens} {kind}, {entry.prompts:,} tried, {entry.seconds:.1f} s"
        yield f"{'length':>8}{'distinct':>16}{'of at most':>16}{'ln share':>11}{'bits':>9}{'Chao1':>14}"
        for counted in entry.lengths:
            guess = "" if counted.chao1 is None else f"{counted.chao1.value:>14,.0f}"
            yield f"{_length(counted)}{counted.entropy_bits:>9.2f}{guess}"


def _length(counted: GridLength | TokenLength) -> str:
    bound = counted.log_bound_nats
    most = f"{exp(bound):,.0f}" if bound < 30 else f"e^{bound:.1f}"
    return f"{counted.length:>8}{counted.distinct:>16,.0f}{most:>16}{counted.log_share_nats:>11.2f}"
